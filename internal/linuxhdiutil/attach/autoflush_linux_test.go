package attach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev/blockdevtest"
	"dmgbench/internal/image/exfat"
)

// timers are the timers of a test; they go off when the test says that time has passed.
type timers struct {
	now time.Duration
	set map[*func()]time.Duration // when each goes off
}

func (c *timers) after(d time.Duration, f func()) (stop func() bool) {
	c.set[&f] = c.now + d
	return func() bool {
		_, waiting := c.set[&f]
		delete(c.set, &f)
		return waiting
	}
}

func (c *timers) advance(d time.Duration) {
	for c.now += d; ; {
		due := (*func())(nil)
		for f, at := range c.set {
			if at <= c.now {
				due = f
			}
		}
		if due == nil {
			return
		}
		delete(c.set, due)
		(*due)()
	}
}

// requests are a volume in memory, and the kernel's requests to it.
type requests struct {
	*testing.T
	dev   *blockdevtest.MemDevice
	count *counted
	fs    *volumeFS
	raw   fuse.RawFileSystem
	time  *timers
}

func newRequests(t *testing.T) *requests {
	dev := blockdevtest.NewMem(4 << 20)
	require.NoError(t, exfat.Format(dev, exfat.FormatOptions{}))
	count := &counted{Device: dev}
	fs, err := openVolume(count, serveRequest{}, false, &failures{})
	require.NoError(t, err)
	r := &requests{T: t, dev: dev, count: count, fs: fs, raw: fs.raw(), time: &timers{set: map[*func()]time.Duration{}}}
	fs.auto.after = r.time.after
	return r
}

var atRoot = fuse.InHeader{NodeId: 1}

func (r *requests) create(name string) fuse.CreateOut {
	var out fuse.CreateOut
	require.Equal(r, fuse.OK, r.raw.Create(nil, &fuse.CreateIn{InHeader: atRoot, Flags: unix.O_RDWR}, name, &out))
	return out
}

func (r *requests) write(f fuse.CreateOut, data []byte) {
	n, status := r.raw.Write(nil, &fuse.WriteIn{InHeader: fuse.InHeader{NodeId: f.NodeId}, Fh: f.Fh, Size: uint32(len(data))}, data)
	require.Equal(r, fuse.OK, status)
	require.EqualValues(r, len(data), n)
}

func (r *requests) fsync(f fuse.CreateOut) {
	require.Equal(r, fuse.OK, r.raw.Fsync(nil, &fuse.FsyncIn{InHeader: fuse.InHeader{NodeId: f.NodeId}, Fh: f.Fh}))
}

func (r *requests) release(f fuse.CreateOut) {
	r.raw.Release(nil, &fuse.ReleaseIn{InHeader: fuse.InHeader{NodeId: f.NodeId}, Fh: f.Fh})
}

// found is what the next mount finds after the serving process was killed: files with their sizes, folders with -1.
func (r *requests) found() map[string]int64 {
	dev := r.dev.Clone()
	fs, err := openVolume(dev, serveRequest{}, false, &failures{})
	require.NoError(r, err)
	list, err := fs.volume.List("")
	require.NoError(r, err)
	all := map[string]int64{}
	for _, i := range list {
		if all[i.Name] = i.Size; i.Dir {
			all[i.Name] = -1
		}
	}
	require.NoError(r, fs.close())
	return all
}

// TestVolumeFlushesItself: whatever changes the volume is in the image 5 s later, and no timer runs before and after
// that.
func TestVolumeFlushesItself(t *testing.T) {
	base := map[string]int64{"a": 100, "d": -1}
	tests := map[string]struct {
		do   func(r *requests, a fuse.CreateOut)
		want map[string]int64
	}{
		"create":                {func(r *requests, _ fuse.CreateOut) { r.create("b") }, map[string]int64{"a": 100, "b": 0, "d": -1}},
		"write":                 {func(r *requests, a fuse.CreateOut) { r.write(a, noise(70_000)) }, map[string]int64{"a": 70_000, "d": -1}},
		"truncate":              {func(r *requests, a fuse.CreateOut) { r.resize(a, 5) }, map[string]int64{"a": 5, "d": -1}},
		"grow within a cluster": {func(r *requests, a fuse.CreateOut) { r.resize(a, 101) }, map[string]int64{"a": 101, "d": -1}},
		"allocate": {func(r *requests, a fuse.CreateOut) {
			in := &fuse.FallocateIn{InHeader: fuse.InHeader{NodeId: a.NodeId}, Fh: a.Fh, Length: 9000}
			require.Equal(r, fuse.OK, r.raw.Fallocate(nil, in))
		}, map[string]int64{"a": 9000, "d": -1}},
		"mkdir": {func(r *requests, _ fuse.CreateOut) {
			require.Equal(r, fuse.OK, r.raw.Mkdir(nil, &fuse.MkdirIn{InHeader: atRoot}, "e", &fuse.EntryOut{}))
		}, map[string]int64{"a": 100, "d": -1, "e": -1}},
		"rmdir": {func(r *requests, _ fuse.CreateOut) {
			require.Equal(r, fuse.OK, r.raw.Rmdir(nil, &atRoot, "d"))
		}, map[string]int64{"a": 100}},
		"unlink": {func(r *requests, _ fuse.CreateOut) {
			require.Equal(r, fuse.OK, r.raw.Unlink(nil, &atRoot, "a"))
		}, map[string]int64{"d": -1}},
		"rename": {func(r *requests, _ fuse.CreateOut) {
			require.Equal(r, fuse.OK, r.raw.Rename(nil, &fuse.RenameIn{InHeader: atRoot, Newdir: 1}, "a", "b"))
		}, map[string]int64{"b": 100, "d": -1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRequests(t)
			a := r.create("a")
			r.write(a, noise(100))
			require.Equal(t, fuse.OK, r.raw.Mkdir(nil, &fuse.MkdirIn{InHeader: atRoot}, "d", &fuse.EntryOut{}))
			r.time.advance(flushDelay)
			require.Equal(t, base, r.found())
			require.Empty(t, r.time.set, "a timer without a change")

			test.do(r, a)
			r.time.advance(flushDelay - 1)
			require.Equal(t, base, r.found(), "too early")
			r.time.advance(1)
			require.Equal(t, test.want, r.found())
			flushes := r.count.flushes.Load()
			r.time.advance(time.Hour)
			assert.Empty(t, r.time.set)
			assert.Equal(t, flushes, r.count.flushes.Load(), "a flush without a change")
			r.release(a)
			require.NoError(t, r.fs.close())
		})
	}
}

func (r *requests) resize(a fuse.CreateOut, size uint64) {
	in := &fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: fuse.InHeader{NodeId: a.NodeId}, Valid: fuse.FATTR_SIZE, Size: size}}
	require.Equal(r, fuse.OK, r.raw.SetAttr(nil, in, &fuse.AttrOut{}))
}

// TestFlushOfTheVolumeWaitsFromTheFirstChange: further changes do not put it off, and after an fsync that leaves nothing to
// flush it does nothing.
func TestFlushOfTheVolumeWaitsFromTheFirstChange(t *testing.T) {
	r := newRequests(t)
	a, b := r.create("a"), r.create("b")
	for range 9 {
		r.time.advance(flushDelay / 10)
		r.write(a, noise(100))
		assert.Len(t, r.time.set, 1)
	}
	assert.Empty(t, r.found())
	r.time.advance(flushDelay / 10)
	assert.Equal(t, map[string]int64{"a": 100, "b": 0}, r.found())

	r.write(a, noise(200))
	r.write(b, noise(200))
	r.fsync(a)
	assert.Len(t, r.time.set, 1, "the other file is not saved")
	r.time.advance(flushDelay - 1)
	r.fsync(b)
	flushes := r.count.flushes.Load()
	r.time.advance(1)
	assert.Equal(t, flushes, r.count.flushes.Load(), "all is flushed")
	assert.Empty(t, r.time.set)
	r.write(a, noise(300))
	r.time.advance(flushDelay)
	assert.Equal(t, map[string]int64{"a": 300, "b": 200}, r.found())

	r.write(a, noise(400))
	r.release(a)
	r.release(b)
	require.NoError(t, r.fs.close())
	assert.Empty(t, r.time.set, "a timer of a volume that is unmounted")
}

// TestFailedFlushOfTheVolumeIsRepeated until it succeeds, and told once.
func TestFailedFlushOfTheVolumeIsRepeated(t *testing.T) {
	r := newRequests(t)
	a := r.create("a")
	r.dev.Hook = func(op blockdevtest.Op, _, _ int64) error {
		if op == blockdevtest.OpRead {
			return nil
		}
		return errors.New("no power")
	}
	for range 5 {
		r.time.advance(flushDelay)
		require.Len(t, r.time.set, 1)
	}
	r.dev.Hook = nil
	assert.Empty(t, r.found())
	r.time.advance(flushDelay)
	assert.Equal(t, map[string]int64{"a": 0}, r.found())
	assert.Empty(t, r.time.set)
	word := r.fs.fails.lost
	assert.Len(t, word, 1)
	r.release(a)
	require.NoError(t, r.fs.close())
}

// TestKilledHelperLosesFiveSeconds kills the process that serves a volume on which nobody called fsync.
func TestKilledHelperLosesFiveSeconds(t *testing.T) {
	privileged(t)
	path, a := served(t, 64<<20)
	files := map[string][]byte{}
	for i := range 5 {
		name := fmt.Sprintf("folder/file %d", i)
		require.NoError(t, os.MkdirAll(filepath.Join(a.MountPoint, "folder"), 0o755))
		files[name] = noise(3<<20 + i)
		require.NoError(t, os.WriteFile(filepath.Join(a.MountPoint, name), files[name], 0o644))
	}
	open, err := os.Create(filepath.Join(a.MountPoint, "open"))
	require.NoError(t, err)
	defer open.Close()
	files["open"] = noise(1 << 20)
	_, err = open.Write(files["open"])
	require.NoError(t, err)
	require.NoError(t, wall.Sleep(t.Context(), flushDelay+time.Second))
	require.NoError(t, os.WriteFile(filepath.Join(a.MountPoint, "lost"), noise(1<<20), 0o644))
	kill(t, a.HelperPID)
	open.Close()

	b := attach(t, path)
	for name, data := range files {
		requireFile(t, filepath.Join(b.MountPoint, name), data)
	}
	checked(t, path, b)
}
