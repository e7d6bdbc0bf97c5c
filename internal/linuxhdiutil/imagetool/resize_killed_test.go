package imagetool

import (
	"dmgbench/internal/linuxhdiutil/attach"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
)

// edit opens an image of the machine to be changed, and calls f.
func (m *machine) edit(name string, f func(img container.Image) error) {
	m.t.Helper()
	p, err := placeAt(m.path(name))
	require.NoError(m.t, err)
	defer p.close()
	img, err := container.Open(p.dir, p.name, container.OpenOptions{})
	require.NoError(m.t, err)
	require.NoError(m.t, errors.Join(f(img), img.Close()))
}

// TestResizeGoesOnWhereOneWasKilled: of a resize that was killed between container, partition table and file system the same one
// does the rest.
func TestResizeGoesOnWhereOneWasKilled(t *testing.T) {
	const size = 32 << 20
	stops := map[string]func(img container.Image) error{
		"behind the container": func(img container.Image) error { return img.Resize(size) },
		"behind the partition table": func(img container.Image) error {
			if err := img.Resize(size); err != nil {
				return err
			}
			_, err := gpt.Resize(img, size, 0)
			return err
		},
	}
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.write("src/data", "kept")
			m.do("create -srcfolder src -format UDSB -size 16m ours")
			m.do("create -srcfolder src -format UDSB -size 16m whole")
			m.do("resize -size 32m whole.sparsebundle")
			m.edit("ours.sparsebundle", stop)
			m.do("resize -size 32m ours.sparsebundle")
			m.sound("ours.sparsebundle", "src/data")
			assert.Equal(t, m.do("resize -limits whole.sparsebundle"), m.do("resize -limits ours.sparsebundle"))
			assert.Equal(t, freeOn(m, "whole.sparsebundle"), freeOn(m, "ours.sparsebundle"))

			m.at.fs, m.at.loops = []attach.FS{{Name: "ext4", Present: true}}, true
			m.do("create -size 16m -fs ext4 host")
			m.edit("host.dmg", func(img container.Image) error {
				_, err := img.WriteAt([]byte("\x53\xef"), 1<<20+1080)
				return errors.Join(err, stop(img))
			})
			m.at.calls = nil
			m.do("resize -size 32m host.dmg")
			assert.Equal(t, []string{"CheckGrow ext4", "Attach host.dmg nomount=true", "Grow /dev/loop1p1", "Detach /dev/loop1 force=false"}, m.at.calls)
			assert.True(t, m.at.requests[len(m.at.requests)-1].Temporary, "what is attached for the work of a command does not outlive it")
			m.edit("host.dmg", func(img container.Image) error {
				_, p, err := lastVolume(img)
				require.NoError(t, err)
				assert.Greater(t, p.Size(), int64(30<<20))
				return nil
			})
		})
	}
}

// freeOn is the free space of the ExFAT volume, in bytes.
func freeOn(m *machine, name string) (free int64) {
	m.edit(name, func(img container.Image) error {
		v, err := (&imageFile{Image: img}).mountExFAT()
		require.NoError(m.t, err)
		free = v.Free()
		return v.Unmount()
	})
	return free
}

// TestResizeTriesAgainWhatFailed: the program of the host that failed is called again, though the image has its size.
func TestResizeTriesAgainWhatFailed(t *testing.T) {
	m := newMachine(t)
	m.at.fs, m.at.loops = []attach.FS{{Name: "ext4", Present: true}}, true
	m.do("create -size 8m -fs ext4 a")
	m.edit("a.dmg", func(img container.Image) error {
		_, err := img.WriteAt([]byte("\x53\xef"), 1<<20+1080)
		return err
	})
	m.at.fail["Grow"] = os.ErrPermission
	m.refused(1, "growing the volume", "resize -size 12m a.dmg")
	delete(m.at.fail, "Grow")
	m.at.calls = nil
	m.do("resize -size 12m a.dmg")
	assert.Contains(t, m.at.calls, "Grow /dev/loop2p1")
	m.at.calls = nil
	m.do("resize -imageonly -size 12m a.dmg")
	assert.Empty(t, m.at.calls)
}

// TestTheDeadAreReaped: an image that what a dead process left keeps locked is released by the command that needs it, which
// tells what was lost, by name.
func TestTheDeadAreReaped(t *testing.T) {
	for want, dead := range map[string]attach.Attached{
		"the process that served /dev/loop3 died; device and mount were released":                         {Device: "/dev/loop3", HelperPID: 9},
		"the command that attached it was ended before it was done; its device and mounts were removed\n": {HelperPID: 9, Unfinished: true},
	} {
		for _, line := range []string{"resize -limits a.dmg", "resize -size 12m a.dmg", "convert a.dmg -format UDTO -o b", "checksum -type MD5 a.dmg"} {
			m := newMachine(t)
			m.do("create -size 8m a")
			p, err := placeAt(m.path("a.dmg"))
			require.NoError(t, err)
			img, err := container.Open(p.dir, p.name, container.OpenOptions{})
			require.NoError(t, err)
			dead.Image, dead.Dead = m.path("a.dmg"), true
			m.at.attached = []attach.Attached{dead}
			m.at.reap = func() { img.Close() }
			m.do(line)
			assert.Contains(t, m.err, `hdiutil: lost: "DIR/a.dmg": `+want, line)
			p.close()
		}
	}
	m := newMachine(t)
	m.do("create -size 8m a")
	m.hold("a.dmg")
	m.refused(statusInUse, "Resource temporarily unavailable", "resize -limits a.dmg")
	assert.Empty(t, m.leftovers())
}
