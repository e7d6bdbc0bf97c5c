package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

const caller = 54321

const tinyPlan = `schema = 1
title = "Tiny"
[image]
format = "UDSB"
size = "32 MiB"
filesystem_preference = ["exFAT"]
[files.few]
sizes = ["100 kB"]
[run]
rounds = 1
canary = false
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "detach" }]
`

// notOwnedBy is every path below dir that does not belong to the user.
func notOwnedBy(t *testing.T, dir string, uid int) (list []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		fi, err := d.Info()
		require.NoError(t, err)
		if hostio.StatOf(fi).UID != uid {
			list = append(list, path)
		}
		return nil
	}))
	return list
}

// What sudo makes in the caller's folder is the caller's; in folders of others, and without sudo, it is root's.
func TestWhatSudoMakesIsTheCallers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root gives files away")
	}
	t.Setenv("SUDO_UID", "54321") // as the packages below the command line see it
	home, foreign := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chown(home, caller, caller))
	env := []string{"SUDO_UID=54321", "SUDO_GID=54321", "DMGBENCH_STATE=" + filepath.Join(home, "state", "dmgbench"), "PATH=" + os.Getenv("PATH")}
	made := filepath.Join(home, "deep", "plan.toml")
	require.NoError(t, os.Mkdir(filepath.Dir(made), 0o755))
	require.NoError(t, os.Chown(filepath.Dir(made), caller, caller))
	code, _, said := call(t, env, "plans", "copy", "quick", made)
	require.Zero(t, code, said)
	tiny := filepath.Join(foreign, "tiny.toml")
	require.NoError(t, os.WriteFile(tiny, []byte(tinyPlan), 0o600))
	for _, out := range []string{filepath.Join(home, "runs", "one"), filepath.Join(foreign, "runs", "one")} {
		code, _, said = call(t, env, "run", tiny, "--engine", "inprocess", "--out", out)
		require.Zero(t, code, said)
	}
	assert.Empty(t, notOwnedBy(t, home, caller))
	assert.Empty(t, notOwnedBy(t, foreign, 0))
	_, _, said = call(t, env, "report", filepath.Join(home, "runs", "one"), "--svg", filepath.Join(home, "pictures"))
	assert.Empty(t, notOwnedBy(t, home, caller), said)
	code, _, said = call(t, env, "history", "baseline", filepath.Join(home, "runs", "one"))
	require.Zero(t, code, said)
	assert.Empty(t, notOwnedBy(t, home, caller))
	kept := filepath.Join(home, "runs", "kept")
	code, _, said = call(t, env, "run", tiny, "--engine", "inprocess", "--keep", "--out", kept)
	require.Zero(t, code, said)
	assert.Empty(t, notOwnedBy(t, home, caller))
	images, err := filepath.Glob(filepath.Join(kept, "dmgbench-*"))
	require.NoError(t, err)
	require.Len(t, images, 1)
	code, _, said = call(t, env, "clean")
	require.Zero(t, code, said)
	assert.NoDirExists(t, images[0], "root by sudo removes what it gave away")
	assert.Empty(t, notOwnedBy(t, home, caller))
	_, told, _ := call(t, env, "doctor")
	assert.Contains(t, told, "root by sudo")
	_, told, _ = call(t, env[2:], "doctor")
	assert.Contains(t, told, "root, not by sudo")
}
