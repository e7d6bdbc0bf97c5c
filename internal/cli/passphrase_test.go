package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
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
	assert.Regexp(t, "^[0-9a-f]{64}$", string(made))
	other, err := a.passphrase(state, "")
	require.NoError(t, err)
	assert.NotEqual(t, made, other)
	require.NoError(t, (&app{generated: made}).savePassphrase(runner.Config{StateDir: state, Out: dir, Plan: encrypted(t)}))
	info, err := os.Stat(filepath.Join(state, passphraseFolder, passphraseName(dir)))
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
	long := strings.Repeat("x", maxPassphrase+1)
	for name, content := range map[string]string{"empty": "\n", "long": long} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := readPassphrase(file)
		require.Equal(t, exitUsage, exitStatus(err), name)
		assert.NotContains(t, err.Error(), long)
	}
	_, err := readPassphrase(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = (&app{env: map[string]string{"DMGBENCH_PASSPHRASE": long}}).passphrase(t.TempDir(), "")
	require.Equal(t, exitUsage, exitStatus(err))
}

func TestCleanRemovesPassphrasesAndMountPointsOfTheKilled(t *testing.T) {
	a, state := &app{}, t.TempDir()
	require.NoError(t, (&app{generated: []byte("x")}).savePassphrase(runner.Config{StateDir: state, Out: "run", Plan: encrypted(t)}))
	dir, free, err := makeMountFolder(state)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mnt1"), 0o700))
	var said strings.Builder
	require.NoError(t, a.cleanMountFolders(t.Context(), state, &said))
	assert.DirExists(t, dir, "of an engine that lives")
	require.NoError(t, a.cleanPassphrases(t.Context(), state, &said))
	assert.Empty(t, files(t, state))
	require.NoError(t, free())
	assert.NoDirExists(t, dir)

	// A killed engine leaves folders and a lock that nobody holds.
	dead := filepath.Join(state, mountsFolder, "dead")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "mnt1"), 0o700))
	require.NoError(t, os.WriteFile(dead+lockSuffix, nil, 0o600))
	root, err := openStateFolder(state, mountsFolder)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, removeMountFolder(root, "dead"))
	assert.NoDirExists(t, dead)
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "mnt1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dead, "mnt1", "file"), nil, 0o600))
	require.Error(t, removeMountFolder(root, "dead"), "what is in it may be somebody's")
	assert.FileExists(t, filepath.Join(dead, "mnt1", "file"))
}
