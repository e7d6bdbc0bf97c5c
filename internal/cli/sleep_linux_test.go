package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Where nothing keeps the machine awake, the run is made and warns of it.
func TestARunWarnsThatTheMachineMaySleep(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // without systemd-inhibit
	dir := t.TempDir()
	tiny := filepath.Join(dir, "tiny.toml")
	require.NoError(t, os.WriteFile(tiny, []byte(tinyPlan), 0o600))
	env := []string{"DMGBENCH_STATE=" + filepath.Join(dir, "state"), "HOME=" + dir}
	code, _, said := call(t, env, "run", tiny, "--engine", "inprocess", "--out", filepath.Join(dir, "run"))
	require.Zero(t, code, said)
	assert.Contains(t, said, "warning: the machine may sleep during the run (")
}
