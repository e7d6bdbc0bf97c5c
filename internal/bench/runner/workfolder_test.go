package runner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

const someID = "20260102T030405Z-abcdef"

// dies fails every change from the n-th on, as if the program had been killed there.
type dies struct{ left int }

var errDied = errors.New("killed here")

func (d *dies) Before(op hostio.Op) error {
	switch op.Kind {
	case hostio.OpRead, hostio.OpOpen, hostio.OpEvict:
		return nil
	}
	if d.left--; d.left < 0 {
		return errDied
	}
	return nil
}
func (*dies) After(hostio.Op, int, error) {}

// Wherever a run is killed while it makes its folder at a place or removes it,
// the next one knows the folder as its own and leaves nothing.
func TestAPlaceIsKnownAfterEveryMomentOfDeath(t *testing.T) {
	died := 0
	for n := 0; ; n++ {
		at := t.TempDir()
		d := &dies{left: n}
		p, err := openWorkFolder(Place{Path: at}, someID, d)
		if err == nil {
			if err = p.dir.Mkdir("bundle"); err == nil {
				err = p.dir.WriteFileAtomic("image.dmg", []byte("image"), 0o600)
			}
			err = errors.Join(err, p.remove(someID))
		}
		left, e := os.ReadDir(at)
		require.NoError(t, e)
		if err == nil {
			require.Empty(t, left)
			break
		}
		require.ErrorIs(t, err, errDied)
		died++
		p, err = openWorkFolder(Place{Path: at}, someID, nil)
		require.NoError(t, err, "dead at change %d", n)
		require.NoError(t, p.remove(someID), "dead at change %d", n)
		left, e = os.ReadDir(at)
		require.NoError(t, e)
		require.Empty(t, left, "dead at change %d", n)
	}
	assert.Greater(t, died, 8)
}

// A folder of the run's name that is not empty and not marked is somebody else's.
func TestAFolderOfTheRunsNameThatIsNotTheRuns(t *testing.T) {
	for name, file := range map[string][2]string{
		"a file in it":   {"precious", "precious"},
		"another marker": {markerName, `{"run":"20200101T000000Z-000000"}`},
		"a wrong marker": {markerName, "no JSON"},
		"an empty one":   {markerName, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			path := filepath.Join(at, workFolderName(someID), file[0])
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(file[1]), 0o600))
			_, err := openWorkFolder(Place{Path: at}, someID, nil)
			require.ErrorContains(t, err, `opening the run's own folder in folder "`)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, file[1], string(text))
			list, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			assert.Len(t, list, 1)
		})
	}
}

// A folder with the run's marker that another user owns is nobody's to write to, or to remove.
func TestAFolderOfAnotherUserIsNotTheRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	at := t.TempDir()
	p, err := openWorkFolder(Place{Path: at}, someID, nil)
	require.NoError(t, err)
	defer p.close()
	path := filepath.Join(at, workFolderName(someID))
	require.NoError(t, os.Chown(path, 54321, 54321))
	_, err = openWorkFolder(Place{Path: at}, someID, nil)
	require.ErrorContains(t, err, "it belongs to another user")
	require.ErrorContains(t, p.remove(someID), "it belongs to another user")
	assert.DirExists(t, path)
}

// A place that nobody gave lies with the run, whichever way the folder is written.
func TestPlacesOfOneFolderAreOne(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	p, err := openWorkFolder(Place{Path: "."}, someID, nil)
	require.NoError(t, err)
	defer p.close()
	assert.True(t, p.isAt(dir))
	assert.True(t, p.isAt("."))
	assert.False(t, p.isAt(filepath.Dir(dir)))
	assert.False(t, p.isAt(filepath.Join(dir, "none")))
	link := filepath.Join(t.TempDir(), "link") // as /tmp on a Mac, where "Bench" is "bench" too
	require.NoError(t, os.Symlink(dir, link))
	assert.True(t, p.isAt(link))
}
