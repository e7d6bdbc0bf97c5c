package attach

import (
	"errors"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/image/exfat"
)

// TestCrashAmidADeletion: a crash after a file was deleted while it was open leaves the file or lost clusters, and the
// next mount frees those.
func TestCrashAmidADeletion(t *testing.T) {
	errCut := errors.New("power failed")
	data := noise(30_000)
	for at := 2; ; at++ {
		cut, written := at/2, at%2 == 1
		dev := blockdevtest.NewMem(1 << 20)
		require.NoError(t, exfat.Format(dev, exfat.FormatOptions{}))
		s, err := openVolume(dev, serveRequest{}, false, &failures{})
		require.NoError(t, err)
		require.NoError(t, s.volume.Mkdir("d"))
		f, err := s.volume.Create("d/x", 0)
		require.NoError(t, err)
		_, err = f.WriteAt(data, 0)
		require.NoError(t, errors.Join(err, s.volume.Sync()))
		left := cut
		dev.Hook = func(op blockdevtest.Op, _, _ int64) error {
			if op == blockdevtest.OpRead {
				return nil
			}
			if left--; left <= 0 {
				return errCut
			}
			return nil
		}
		crash := s.volume.Remove("d/x")
		if crash == nil && written {
			_, crash = f.WriteAt(data, int64(len(data)))
			crash = errors.Join(crash, f.Sync())
		}
		if crash == nil {
			crash = s.volume.Sync()
		}
		dev.Hook = nil
		if crash == nil && written {
			break
		}
		s, err = openVolume(dev, serveRequest{}, false, &failures{})
		require.NoError(t, err)
		list, err := s.volume.List("")
		require.NoError(t, err)
		require.Len(t, list, 1)
		f, err = s.volume.Create("all the rest", s.volume.Free())
		require.NoError(t, errors.Join(err, f.Close()))
		if f, err := s.volume.Open("d/x"); err == nil {
			got := make([]byte, len(data)) // of either length
			_, err = f.ReadAt(got, 0)
			require.NoError(t, errors.Join(err, f.Close()))
			assert.Equal(t, data, got)
		}
		require.NoError(t, s.close())
		report, err := exfat.Check(dev, exfat.CheckOptions{})
		require.NoError(t, err)
		assert.True(t, report.Clean(), "%d: %v", cut, report.Findings)
	}
}

// TestReplacedByAnotherSpelling: a name that the kernel knows is looked up anew when another spelling of it has been
// given to another file.
func TestReplacedByAnotherSpelling(t *testing.T) {
	dev := blockdevtest.NewMem(1 << 20)
	require.NoError(t, exfat.Format(dev, exfat.FormatOptions{}))
	s, err := openVolume(dev, serveRequest{}, false, &failures{})
	require.NoError(t, err)
	for _, name := range []string{"saved", "new"} {
		f, err := s.volume.Create(name, 0)
		require.NoError(t, errors.Join(err, f.Close()))
	}
	raw := s.raw()
	look := func(name string) uint64 {
		var out fuse.EntryOut
		require.Equal(t, fuse.OK, raw.Lookup(nil, &fuse.InHeader{NodeId: 1}, name, &out))
		return out.Attr.Ino
	}
	old, next := look("saved"), look("new")
	assert.NotEqual(t, old, next)
	assert.Equal(t, old, look("SAVED"))
	require.Equal(t, fuse.OK, raw.Rename(nil, &fuse.RenameIn{InHeader: fuse.InHeader{NodeId: 1}, Newdir: 1}, "new", "SAVED"))
	assert.Equal(t, next, look("SAVED"))
	assert.Equal(t, next, look("saved"))
	require.NoError(t, s.close())
}
