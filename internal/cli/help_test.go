package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// call executes one command line in this process.
func call(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(t.Context(), strings.NewReader(""), &out, &err, args, env)
	return code, out.String(), err.String()
}

// planFile is a plan of this text.
func planFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "watched.toml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

func stateEnv(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"HOME=" + t.TempDir(), "DMGBENCH_STATE=" + t.TempDir(), "TERM=xterm", "DMGBENCH_RUN_ENGINE=inprocess"}, more...)
}

func TestHelp(t *testing.T) {
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, nil)
	seen := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if strings.Contains(c.CommandPath(), "completion") || c.Name() == "help" { // cobra's own
			return
		}
		seen++
		path := strings.Fields(strings.TrimPrefix(c.CommandPath(), "dmgbench"))
		code, text, errs := call(t, nil, append(path, "--help")...)
		require.Zero(t, code, path)
		assert.Empty(t, errs, path)
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "%v: %q", path, line)
		}
		assert.Contains(t, text, "EXIT STATUS", path)
		assert.Contains(t, text, "Examples:", path)
		assert.NotContains(t, text, "string ", "%v: a flag does not say what its value is", path)
		for line := range strings.Lines(c.Example) {
			assert.True(t, strings.HasPrefix(line, "  dmgbench "), "%v: example %q", path, line)
		}
		assert.Equal(t, strings.ToLower(c.Short[:1]), c.Short[:1], path)
	}
	walk(a.newRootCommand())
	assert.Greater(t, seen, 12)
}

// parse gives the flags of a command line, from arguments, environment and settings, without executing the command.
func parse(t *testing.T, env []string, args ...string) (*app, error) {
	t.Helper()
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, env)
	root := a.newRootCommand()
	cmd, _, err := root.Find(args)
	require.NoError(t, err)
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	root.SetArgs(args)
	return a, root.ExecuteContext(t.Context())
}

func TestFlagsHaveTheTypeOfTheirRow(t *testing.T) {
	a, err := parse(t, nil, "run", "quick", "gold-standard", "--on", "/a b", "--on", "x=/c", "--sets", "2", "--yes", "--seed", "0", "--format", "json")
	require.NoError(t, err)
	assert.Equal(t, []string{"/a b", "x=/c"}, a.list("on"))
	assert.Equal(t, 2, a.number("sets"))
	assert.Equal(t, []string{"auto", "json", "0"}, []string{a.text("engine"), a.text("format"), a.text("seed")})
	assert.True(t, a.isSet("yes"))
	assert.False(t, a.isSet("keep"))
	assert.True(t, a.json)
	assert.True(t, a.isGiven("seed"))
	assert.False(t, a.isGiven("out"))
	assert.Panics(t, func() { a.text("retry-failed") }, "a flag of another command")

	a, err = parse(t, nil, "history", "--status", "done,failed", "--plan", "a", "--plan", "b")
	require.NoError(t, err)
	assert.Equal(t, []string{"done", "failed"}, a.list("status"))
	assert.Equal(t, []string{"a", "b"}, a.list("plan"))
}

func TestFlagsAreChecked(t *testing.T) {
	for line, wrong := range map[string]string{
		"run quick --workers 0":             "reading --workers: 0 is not greater than 0",
		"run quick --max-rounds -1":         "reading --max-rounds: -1 is not greater than 0",
		"run quick --scale 0":               "reading --scale: 0 is not greater than 0",
		"run quick --scale NaN":             "reading --scale: NaN is not greater than 0",
		"run quick --engine floppy":         `reading --engine: "floppy" is not one of auto, hdiutil, inprocess`,
		"history --status done,perhaps":     `reading --status: "perhaps" is not one of done, failed, skipped, unfinished`,
		"selftest --seed -1":                `reading --seed: "-1" is not a whole number`,
		"export a --table cells":            `reading --table: "cells" is not one of`,
		"history --engine anything":         "",
		"compare a b --by format":           "",
		"selftest --study drift --seed 7":   "",
		"run quick --precondition whatever": "", // the plan refuses it
	} {
		_, err := parse(t, nil, strings.Fields(line)...)
		if wrong == "" {
			assert.NoError(t, err, line)
			continue
		}
		assert.ErrorContains(t, err, wrong)
		assert.Equal(t, exitUsage, exitStatus(err), line)
	}
}

// Without DMGBENCH_CONFIG the user's own file is read: below XDG_CONFIG_HOME, else where the system has it.
func TestSettingsFileOfTheUserIsFound(t *testing.T) {
	dir := t.TempDir()
	own := map[bool]string{false: ".config", true: "Library/Application Support"}[runtime.GOOS == "darwin"]
	for folder, sets := range map[string]string{"xdg": "2", "home/" + own: "3", "empty": ""} {
		folder = filepath.Join(dir, folder, "dmgbench")
		require.NoError(t, os.MkdirAll(folder, 0o755))
		if sets != "" {
			file := filepath.Join(folder, "config.toml")
			require.NoError(t, os.WriteFile(file, []byte("[run]\nsets = "+sets+"\n"), 0o644))
		}
	}
	xdg, home := "XDG_CONFIG_HOME="+dir+"/xdg", "HOME="+dir+"/home"
	for _, c := range []struct {
		env  []string
		sets int
	}{
		{[]string{xdg}, 2},
		{[]string{home}, 3},
		{[]string{xdg, home}, 2},
		{[]string{"XDG_CONFIG_HOME=" + dir + "/empty", home}, 0},
		{[]string{"HOME=" + dir + "/empty"}, 0},
		{nil, 0},
	} {
		a, err := parse(t, c.env, "run", "quick")
		require.NoError(t, err)
		assert.Equal(t, c.sets, a.number("sets"), c.env)
	}
}

func TestSettingsFillFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dmgbench", "config.toml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	text := "[run]\non = [\"/a b\", \"x=/c\"]\nrounds = 5\nscale = 0.5\nyes = true\nsets = 2\n[resume]\nkeep = true\n[history]\nplan = \"a,b\"\n[history.prune]\nkeep = 3\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	env := []string{"DMGBENCH_CONFIG=" + file, "DMGBENCH_RUN_ROUNDS=7", "DMGBENCH_RUN_SETS=3", "DMGBENCH_HISTORY_STATUS=done,failed"}
	a, err := parse(t, env, "run", "quick", "--sets", "4")
	require.NoError(t, err)
	assert.Equal(t, []string{"/a b", "x=/c"}, a.list("on"))
	assert.Equal(t, []string{"0.5", "true", "7", "4"}, []string{a.text("scale"), a.text("yes"), a.text("rounds"), a.text("sets")})
	a, err = parse(t, env, "resume", "x")
	require.NoError(t, err)
	assert.True(t, a.isSet("keep"))
	a, err = parse(t, env, "history")
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, a.list("plan"))
	assert.Equal(t, []string{"done", "failed"}, a.list("status"))
	a, err = parse(t, env, "history", "prune")
	require.NoError(t, err)
	assert.Equal(t, 3, a.number("keep"))

	// A folder with blanks in the environment is one folder.
	a, err = parse(t, []string{"DMGBENCH_RUN_ON=/my disk, the second"}, "run", "quick")
	require.NoError(t, err)
	assert.Equal(t, []string{"/my disk, the second"}, a.list("on"))
	for variable, wrong := range map[string]string{
		"DMGBENCH_RUN_ROUNDS=many":   `reading --rounds: want a whole number from 1, or auto, not "many"`,
		"DMGBENCH_RUN_SETS=many":     `reading DMGBENCH_RUN_SETS: "many" is not a whole number`,
		"DMGBENCH_RUN_YES=perhaps":   `reading DMGBENCH_RUN_YES: "perhaps" is not true or false`,
		"DMGBENCH_RUN_ENGINE=floppy": "reading --engine: ",
	} {
		code, _, errs := call(t, []string{variable, "HOME=" + dir}, "run", "quick", "--dry-run")
		assert.Equal(t, exitUsage, code, variable)
		assert.Contains(t, errs, wrong)
	}
}
