package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
)

func TestSecretComesFromFileThenEnvironmentThenTheRun(t *testing.T) {
	state, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	file := filepath.Join(t.TempDir(), "pass")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	a := &app{env: map[string]string{"DMGBENCH_PASSPHRASE_FILE": file, "DMGBENCH_PASSPHRASE": "from the environment"}}
	p, err := a.passphrase(state, "")
	require.NoError(t, err)
	assert.Equal(t, "from a file", string(p), "without the newline that editors add")
	delete(a.env, "DMGBENCH_PASSPHRASE_FILE")
	p, err = a.passphrase(state, dir)
	require.NoError(t, err)
	assert.Equal(t, "from the environment", string(p))
	assert.Nil(t, a.generated, "what the user gave is kept nowhere")

	a.env = nil
	made, err := a.passphrase(state, "")
	require.NoError(t, err)
	assert.Regexp(t, "^[A-Z2-7]{52}$", string(made))
	other, err := a.passphrase(state, "")
	require.NoError(t, err)
	assert.NotEqual(t, made, other)
	require.NoError(t, (&app{generated: made}).savePassphrase(runner.Config{StateDir: state, Out: dir, Plan: encrypted(t)}))
	info, err := os.Stat(passphraseFile(state, dir))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	p, err = a.passphrase(state, dir)
	require.NoError(t, err)
	assert.Equal(t, made, p, "a session that goes on has the passphrase of the one before")

	c := runner.Config{StateDir: state, Out: dir}
	a.dropPassphrase(c, runner.Outcome{Status: runner.StatusPaused})
	assert.Len(t, files(t, state), 1)
	a.dropPassphrase(c, runner.Outcome{Status: runner.StatusDone})
	assert.Empty(t, files(t, state))
}

// encrypted is a plan with an encrypted image.
func encrypted(t *testing.T) *plan.Plan {
	t.Helper()
	p, problems := plan.Parse("tiny", []byte(strings.Replace(tinyPlan, `format = "UDSB"`, "format = \"UDSB\"\nencryption = \"AES-128\"", 1)))
	require.NotNil(t, p, "%v", problems)
	return p
}

func files(t *testing.T, state string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(state, passphraseFolder))
	require.NoError(t, err)
	return list
}

func TestSecretsThatCannotBe(t *testing.T) {
	passphraseFrom := func(file string) ([]byte, error) {
		return (&app{env: map[string]string{"DMGBENCH_PASSPHRASE_FILE": file}}).passphrase(t.TempDir())
	}
	long := strings.Repeat("x", maxPassphrase+1)
	for name, content := range map[string]string{"empty": "\n", "long": long} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := passphraseFrom(file)
		require.Equal(t, exitUsage, exitStatus(err), name)
		assert.NotContains(t, err.Error(), long)
	}
	_, err := passphraseFrom(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = (&app{env: map[string]string{"DMGBENCH_PASSPHRASE": long}}).passphrase(t.TempDir(), "")
	require.Equal(t, exitUsage, exitStatus(err))
}

func TestCleanRemovesPassphrasesAndMountPointsOfTheKilled(t *testing.T) {
	state := t.TempDir()
	a := newApp(strings.NewReader(""), io.Discard, io.Discard, []string{"DMGBENCH_STATE=" + state})
	require.NoError(t, (&app{generated: []byte("x")}).savePassphrase(runner.Config{StateDir: state, Out: "run", Plan: encrypted(t)}))
	point := filepath.Join(state, mountsFolder, "mnt1")
	require.NoError(t, os.MkdirAll(point, 0o700))
	a.clock = clock.NewVirtual(time.Unix(0, 0)) // no real wait for the lock
	active, err := host.Lock(state)
	require.NoError(t, err)
	require.NoError(t, a.cleanAll(t.Context(), state))
	assert.DirExists(t, point, "it may be that of the active run")
	assert.Len(t, files(t, state), 1)
	active()
	require.NoError(t, os.WriteFile(filepath.Join(point, "file"), nil, 0o600))
	require.Error(t, a.cleanAll(t.Context(), state), "what is in it may be somebody's")
	assert.FileExists(t, filepath.Join(point, "file"))
	assert.Empty(t, files(t, state))
	require.NoError(t, os.Remove(filepath.Join(point, "file")))
	require.NoError(t, a.cleanAll(t.Context(), state))
	assert.NoDirExists(t, point)
}
