package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/runner"
)

func TestSecretComesFromFileThenEnvironmentThenTheRun(t *testing.T) {
	state, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	file := filepath.Join(t.TempDir(), "pass")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	a := &app{env: map[string]string{"DMGBENCH_PASSPHRASE_FILE": file, "DMGBENCH_PASSPHRASE": "from the environment"}}
	p, err := a.secret(state, "")
	require.NoError(t, err)
	assert.Equal(t, "from a file", string(p), "without the newline that editors add")
	delete(a.env, "DMGBENCH_PASSPHRASE_FILE")
	p, err = a.secret(state, dir)
	require.NoError(t, err)
	assert.Equal(t, "from the environment", string(p))
	assert.Nil(t, a.forRun, "what the user gave is kept nowhere")

	a.env = nil
	made, err := a.secret(state, "")
	require.NoError(t, err)
	assert.Regexp(t, "^[0-9a-f]{64}$", string(made))
	other, err := a.secret(state, "")
	require.NoError(t, err)
	assert.NotEqual(t, made, other)
	require.NoError(t, rememberSecret(state, dir, made))
	info, err := os.Stat(filepath.Join(state, secretsFolder, secretName(dir)))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	p, err = a.secret(state, dir)
	require.NoError(t, err)
	assert.Equal(t, made, p, "a session that goes on has the passphrase of the one before")

	c := runner.Config{StateDir: state, Out: dir}
	a.settleSecret(c, runner.Outcome{Status: runner.StatusPaused})
	assert.Len(t, files(t, state), 1)
	a.settleSecret(c, runner.Outcome{Status: runner.StatusDone})
	assert.Empty(t, files(t, state))
}

func files(t *testing.T, state string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(state, secretsFolder))
	require.NoError(t, err)
	return list
}

func TestSecretsThatCannotBe(t *testing.T) {
	long := strings.Repeat("x", secretLimit+1)
	for name, content := range map[string]string{"empty": "\n", "long": long} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := passphraseFile(file)
		require.ErrorAs(t, err, new(*usageError), name)
		assert.NotContains(t, err.Error(), long)
	}
	_, err := passphraseFile(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = (&app{env: map[string]string{"DMGBENCH_PASSPHRASE": long}}).secret(t.TempDir(), "")
	require.ErrorAs(t, err, new(*usageError))
}

func TestCleanRemovesPassphrasesAndMountPointsOfTheKilled(t *testing.T) {
	a, state := &app{}, t.TempDir()
	require.NoError(t, rememberSecret(state, "run", []byte("x")))
	dir, free, err := mountFolder(state)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mnt1"), 0o700))
	var said strings.Builder
	require.NoError(t, a.cleanMounts(t.Context(), state, &said))
	assert.DirExists(t, dir, "of an engine that lives")
	require.NoError(t, a.cleanSecrets(t.Context(), state, &said))
	assert.Empty(t, files(t, state))
	require.NoError(t, free())
	assert.NoDirExists(t, dir)

	// A killed engine leaves folders and a lock that nobody holds.
	dead := filepath.Join(state, mountsFolder, "dead")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "mnt1"), 0o700))
	require.NoError(t, os.WriteFile(dead+lockSuffix, nil, 0o600))
	root, err := openState(state, mountsFolder)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, emptyMounts(root, "dead"))
	assert.NoDirExists(t, dead)
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "mnt1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dead, "mnt1", "file"), nil, 0o600))
	require.Error(t, emptyMounts(root, "dead"), "what is in it may be somebody's")
	assert.FileExists(t, filepath.Join(dead, "mnt1", "file"))
}
