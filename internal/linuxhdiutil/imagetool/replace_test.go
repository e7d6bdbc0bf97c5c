package imagetool

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// TestOldBundleThatCannotBeRemoved: when the host fails in the middle of it (a file of somebody else, a locked one), the old
// bundle is none any more, and the new image has to stay.
func TestOldBundleThatCannotBeRemoved(t *testing.T) {
	m := newMachine(t)
	m.do("create -fs ExFAT -size 8m -type SPARSEBUNDLE -volname old a.sparsebundle")
	m.do("create -fs ExFAT -size 8m -type SPARSEBUNDLE -volname new b.sparsebundle")
	faults := &hostiotest.Faults{}
	dir, err := hostio.OpenDir(m.dir, hostio.WithHook(faults))
	require.NoError(t, err)
	defer dir.Close()
	faults.FailNth(hostio.OpRemoveAll, "", 1, syscall.EPERM)
	p := place{dir: dir, name: "a.sparsebundle", path: m.path("a.sparsebundle")}
	c := &call{opts: map[string][]string{"ov": {""}}}
	err = c.replace(p, func(tmp place) error { return os.Rename(m.path("b.sparsebundle"), tmp.path) })
	require.ErrorIs(t, err, container.ErrPartlyRemoved)
	assert.ErrorContains(t, err, asideMark, "where the rest of the old one is")
	assert.Contains(t, m.do("imageinfo a.sparsebundle"), "ExFAT: new")
}
