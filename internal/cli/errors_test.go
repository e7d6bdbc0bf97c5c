package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/plans"
)

func TestAnInterruptBeforeTheRunSaysWhatItMeans(t *testing.T) {
	err := explainInterrupt(fmt.Errorf("probing: %w", context.Canceled), "interrupted before the run began")
	require.EqualError(t, err, "interrupted before the run began")
	assert.Equal(t, exitInterrupted, exitStatus(err))
	require.NoError(t, explainInterrupt(nil, "x"))
	assert.Equal(t, exitCases, exitStatus(explainInterrupt(exitWith(exitCases), "x")))
	other := errors.New("broken")
	assert.Equal(t, other, explainInterrupt(other, "x"))
}

func TestRunFoldersAreNamedAsTheUserDid(t *testing.T) {
	abs, err := filepath.Abs("my runs/a")
	require.NoError(t, err)
	assert.Equal(t, "dmgbench resume --keep 'my runs/a'", namedAsGiven("dmgbench resume --keep "+abs, "my runs/a"))
	assert.Equal(t, "dmgbench resume a", namedAsGiven("dmgbench resume <run>", "a"))
}

// docs/architecture.md names every exit status, every variable that stands for no flag, and every file of a run folder.
func TestWhatLiesWhereIsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	page := string(raw)
	for name := range ownVariables {
		assert.Contains(t, page, "`"+name+"`")
	}
	for _, code := range []int{exitError, exitUsage, exitCases, exitNotFit, exitRegression, exitUndecided, exitInterrupted} {
		assert.Contains(t, page, fmt.Sprintf("\n| %d | ", code))
	}
	for _, name := range []string{result.PlanFile, result.JournalFile, result.ResultFile, result.ReportFile, passphraseFolder, mountsFolder, runfolders.BaselineFile} {
		assert.Contains(t, page, "`"+name+"`")
	}
}

// A file's name may hold what drives a terminal; none of what is said of the file does.
func TestNamesOfPlansDoNotDriveTheTerminal(t *testing.T) {
	dir := t.TempDir()
	good, ok := plans.Get("quick")
	require.True(t, ok)
	for name, text := range map[string][]byte{"good": good, "bad": []byte("schema = 1\ntitle = 7\n")} {
		file := filepath.Join(dir, name+"\x1b[2J\u202e.toml")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		_, out, said := call(t, nil, "check", file)
		assert.Contains(t, out+said, name+"\uFFFD[2J\uFFFD.toml", name)
		assert.NotContains(t, out+said, "\x1b", name)
	}
}
