package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// The plan of a run folder keeps the name it was run under, unless it was changed, or its journal, which may be
// somebody else's, has a name that leads to another folder.
func TestThePlanOfARunFolderKeepsItsName(t *testing.T) {
	quick, _, err := loadPlan("quick")
	require.NoError(t, err)
	var path string
	for name, want := range map[string]string{"quick": "quick", "../quick": "plan", "-rf": "plan", "": "plan"} {
		dir := filepath.Join(t.TempDir(), "run")
		d, err := result.CreateRun(dir, "r1")
		require.NoError(t, err)
		require.NoError(t, d.WriteFile(result.PlanFile, quick.Canonical()))
		require.NoError(t, d.Append(result.Record{At: time.Unix(0, 0), Run: &result.RunStart{ID: "r1", Rounds: 3,
			Plan: result.PlanRef{Name: name, Title: quick.Title, Digest: quick.Digest()}}}))
		require.NoError(t, d.Close())
		path = filepath.Join(dir, result.PlanFile)
		p, _, err := loadPlan(path)
		require.NoError(t, err)
		assert.Equal(t, want, p.Name, "%q", name)
	}
	require.NoError(t, os.WriteFile(path, append([]byte("summary = \"another\"\n"), []byte("schema = 1\ntitle = \"Other\"\n[target]\nkind = \"directory\"\n[files.a]\nsizes = [\"64 kB\"]\n[[protocol]]\nsteps = [{ do = \"create\" }, { do = \"attach\" }, { do = \"write\" }]\n")...), 0o644))
	p, _, err := loadPlan(path)
	require.NoError(t, err)
	assert.Equal(t, "plan", p.Name)
}

// A run of less than a second leaves its second, and so its name, to the next one.
func TestAFolderThatNobodyChoseIsANewOne(t *testing.T) {
	t.Chdir(t.TempDir())
	runs := []runner.Config{{Plan: &plan.Plan{Name: "quick"}}, {Plan: &plan.Plan{Name: "quick"}}}
	want := []string{filepath.Join("runs", "quick-now"), filepath.Join("runs", "quick-now-2")}
	assert.Equal(t, want, outFolders("", runs, "now"))
	require.NoError(t, os.MkdirAll(want[0], 0o755))
	assert.Equal(t, []string{want[1], filepath.Join("runs", "quick-now-3")}, outFolders("", runs, "now"))
	assert.Equal(t, []string{want[0]}, outFolders(want[0], runs[:1], "now"), "one that somebody chose is taken or refused")
}
