package directory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

func place(t *testing.T, opts ...hostio.Option) *hostio.Dir {
	d, err := hostio.OpenDir(t.TempDir(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func attach(t *testing.T, c engine.Container) engine.Attachment {
	a, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.NoError(t, err)
	return a
}

func options(t *testing.T) workload.Options {
	d := workload.NewData(3, 1, "case", workload.DataRandom, 0)
	return workload.Options{Clock: clock.NewReal(), Data: d, Sync: hostio.SyncFsync, Memory: 1 << 30}
}

// oddSizes are around the edges of sectors, pages and blocks.
func oddSizes() []workload.Item {
	var list []workload.Item
	for i, n := range []int64{0, 1, 511, 512, 513, 4095, 4096, 4097, 65537, 1 << 20, 1<<20 + 4095, 2_000_000} {
		list = append(list, workload.Item{Name: fmt.Sprintf("%s/f%02d", workload.BatchFolder(1), i), Size: n, Batch: 1, Set: 1, Index: i})
	}
	return list
}

// The whole workload on a real folder, in every mode, every byte checked.
func TestWorkloadOnAFolder(t *testing.T) {
	for _, cache := range []string{workload.CacheDirect, workload.CacheBuffered, workload.CacheCold} {
		for _, workers := range []int{1, 3} {
			for _, block := range []int64{0, 100_000} {
				for _, preallocate := range []bool{false, true} {
					if preallocate != (block == 0 && workers == 1) && os.Getenv("DMGBENCH_LONG") == "" {
						continue // preallocating does not depend on the others
					}
					name := fmt.Sprintf("%s/%d workers/block %d/preallocate %v", cache, workers, block, preallocate)
					t.Run(name, func(t *testing.T) {
						c, err := directory.Engine{}.Create(t.Context(), place(t), "base", engine.Spec{})
						require.NoError(t, err)
						exercise(t, c, cache, workers, block, preallocate)
					})
				}
			}
		}
	}
}

func exercise(t *testing.T, c engine.Container, cache string, workers int, block int64, preallocate bool) {
	a, list, o := attach(t, c), oddSizes(), options(t)
	o.Cache, o.Workers, o.Block, o.Preallocate = cache, workers, block, preallocate
	out, err := workload.Write(t.Context(), a.Volume(), list, o)
	require.NoError(t, err)
	assert.Len(t, out.Samples, len(list))
	assert.Equal(t, "fsync", out.Sync.Asked)
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)

	a = attach(t, c)
	read, err := workload.Read(t.Context(), a.Volume(), list, o)
	require.NoError(t, err)
	assert.Equal(t, workload.Total(list), read.Bytes)
	found, err := workload.Verify(t.Context(), a.Volume(), list, o)
	require.NoError(t, err)
	assert.Empty(t, found.Findings)
	assert.Equal(t, workload.Total(list), found.Bytes)

	u, err := c.Usage(t.Context())
	require.NoError(t, err)
	assert.Equal(t, workload.Total(list), u.Apparent)
	assert.GreaterOrEqual(t, u.Allocated, u.Apparent)
	require.NoError(t, c.Evict(t.Context()))
	require.NoError(t, c.Remove(t.Context()))
}

func TestFolderIsRefusedWhatItIsNot(t *testing.T) {
	e := directory.Engine{}
	require.NoError(t, e.Supports(engine.Spec{Encryption: "none", Size: 1 << 40, Filesystems: []string{"APFS"}}))
	for _, s := range []engine.Spec{{Format: "UDRW"}, {Encryption: "AES-256"}} {
		var no *engine.UnsupportedError
		require.ErrorAs(t, e.Supports(s), &no)
		_, err := e.Create(t.Context(), place(t), "x", s)
		require.ErrorAs(t, err, &no)
	}
	dir := place(t)
	c, err := e.Create(t.Context(), dir, "base", engine.Spec{})
	require.NoError(t, err)
	_, err = c.Compact(t.Context(), engine.CompactOptions{})
	require.EqualError(t, err, "native folder does not support compacting")
	_, err = c.Resize(t.Context(), 1)
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	_, err = c.Convert(t.Context(), dir, "y", engine.Spec{})
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	require.ErrorAs(t, c.Damage(t.Context(), engine.Damage{Kind: "header"}), new(*engine.UnsupportedError))
	r, err := c.Check(t.Context(), engine.CheckOptions{What: "volume"})
	require.NoError(t, err)
	assert.Empty(t, r.Findings)
	_, err = e.Create(t.Context(), dir, "base", engine.Spec{})
	require.ErrorIs(t, err, os.ErrExist)
}

// What only images have is refused before a case writes; LZFSE takes Apple's tool.
func TestAllowsWhatAFolderCanDo(t *testing.T) {
	allows := func(do, kind string) bool {
		err := directory.Engine{}.Allows(engine.Spec{}, engine.Action{Do: do, Kind: kind})
		if err != nil {
			require.ErrorAs(t, err, new(*engine.UnsupportedError))
		}
		return err == nil
	}
	for _, do := range []string{"compact", "resize", "convert", "xattr", "damage"} {
		assert.False(t, allows(do, ""), do)
	}
	for _, do := range []string{"create", "write", "transfer", "check", "trim"} {
		assert.True(t, allows(do, ""), do)
	}
	assert.True(t, allows("stream", workload.CodecZstd))
	assert.Equal(t, runtime.GOOS == "darwin", allows("stream", workload.CodecLZFSE))
}

// A folder that somebody swapped is neither opened nor removed.
func TestSwappedFolderIsGone(t *testing.T) {
	dir := place(t)
	c, err := directory.Engine{}.Create(t.Context(), dir, "base", engine.Spec{})
	require.NoError(t, err)
	id, err := c.Identity(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dir.Path(), "base"), filepath.Join(dir.Path(), "old")))
	_, err = c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, engine.ErrGone)
	require.NoError(t, os.Mkdir(filepath.Join(dir.Path(), "base"), 0o755))
	keep := filepath.Join(dir.Path(), "base", "foreign")
	require.NoError(t, os.WriteFile(keep, []byte("x"), 0o644))
	_, err = c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, engine.ErrGone)
	require.ErrorIs(t, c.Remove(t.Context()), engine.ErrGone)
	require.FileExists(t, keep)
	require.NoError(t, os.RemoveAll(filepath.Join(dir.Path(), "base")))
	require.NoError(t, os.Symlink("old", filepath.Join(dir.Path(), "base")))
	require.ErrorIs(t, c.Remove(t.Context()), engine.ErrGone)
	again, err := directory.Engine{}.Open(t.Context(), dir, "old", engine.Spec{})
	require.NoError(t, err)
	now, err := again.Identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, id, now)
}

func TestTransferCopiesEveryByte(t *testing.T) {
	from, to := place(t), place(t)
	c, err := directory.Engine{}.Create(t.Context(), from, "base", engine.Spec{})
	require.NoError(t, err)
	a, list, o := attach(t, c), oddSizes(), options(t)
	_, err = workload.Write(t.Context(), a.Volume(), list, o)
	require.NoError(t, err)
	twin, err := c.Transfer(t.Context(), to, "copy")
	require.NoError(t, err)
	found, err := workload.Verify(t.Context(), attach(t, twin).Volume(), list, o)
	require.NoError(t, err)
	assert.Empty(t, found.Findings)
	one, err := c.Identity(t.Context())
	require.NoError(t, err)
	two, err := twin.Identity(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, one, two)
}

func TestReadOnlyAndUnmounted(t *testing.T) {
	c, err := directory.Engine{}.Create(t.Context(), place(t), "base", engine.Spec{})
	require.NoError(t, err)
	a, err := c.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
	require.NoError(t, err)
	_, err = a.Volume().Create("x", 1, workload.FileOptions{})
	require.ErrorIs(t, err, syscall.EROFS)
	require.ErrorIs(t, a.Volume().Mkdir("x"), syscall.EROFS)
	require.ErrorIs(t, a.Volume().Remove("x"), syscall.EROFS)
	a, err = c.Attach(t.Context(), engine.AttachOptions{NoMount: true})
	require.NoError(t, err)
	assert.Nil(t, a.Volume())
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
}

// What the host refuses is the error of the action, and nothing is made of it.
func TestRefusalsOfTheHostAreErrors(t *testing.T) {
	e, ctx := directory.Engine{}, t.Context()
	create := func(dir *hostio.Dir, _ engine.Container) (engine.Container, error) {
		return e.Create(ctx, dir, "new", engine.Spec{})
	}
	transfer := func(dir *hostio.Dir, c engine.Container) (engine.Container, error) {
		return c.Transfer(ctx, dir, "twin")
	}
	for name, x := range map[string]struct {
		op hostio.Kind
		do func(dir *hostio.Dir, c engine.Container) (engine.Container, error)
	}{
		"making": {hostio.OpMkdir, create}, "flushing its name": {hostio.OpDirSync, create}, "copying": {hostio.OpCreate, transfer},
	} {
		t.Run(name, func(t *testing.T) {
			faults := &hostiotest.Faults{}
			dir := place(t, hostio.WithHook(faults))
			c, err := e.Create(ctx, dir, "base", engine.Spec{})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir.Path(), "base", "file"), []byte("x"), 0o600))
			faults.FailFrom(x.op, "*", 1, syscall.EIO)
			_, err = x.do(dir, c)
			require.ErrorIs(t, err, syscall.EIO)
		})
	}
}

// A folder that is gone, or a run that was canceled, has no usage, no attachment and no copy.
func TestNothingIsDoneToAFolderThatIsGoneOrCanceled(t *testing.T) {
	dir, e := place(t), directory.Engine{}
	c, err := e.Create(t.Context(), dir, "base", engine.Spec{})
	require.NoError(t, err)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Usage(canceled)
	require.ErrorIs(t, err, context.Canceled)
	pipe := filepath.Join(dir.Path(), "base", "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = c.Usage(t.Context())
	require.ErrorIs(t, err, hostio.ErrNotRegular)
	require.NoError(t, os.Remove(pipe))
	_, err = c.Transfer(canceled, dir, "twin")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, os.RemoveAll(filepath.Join(dir.Path(), "base")))
	_, err = c.Usage(t.Context())
	require.ErrorIs(t, err, engine.ErrGone)
	_, err = c.Transfer(t.Context(), dir, "twin")
	require.ErrorIs(t, err, engine.ErrGone)
	_, err = c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, engine.ErrGone)
	_, err = e.Open(t.Context(), dir, "base", engine.Spec{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = e.Open(t.Context(), dir, "base", engine.Spec{Format: "UDRW"})
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
}

// Trimming and checking a folder say that they did nothing.
func TestWhatDoesNotApplyToAFolderSaysSo(t *testing.T) {
	c, err := directory.Engine{}.Create(t.Context(), place(t), "base", engine.Spec{})
	require.NoError(t, err)
	a := attach(t, c)
	r, err := a.Trim(t.Context())
	require.NoError(t, err)
	assert.Contains(t, r.Reported["trim"], "not applicable")
	r, err = c.Check(t.Context(), engine.CheckOptions{What: "volume"})
	require.NoError(t, err)
	assert.Contains(t, r.Reported["check"], "no volume of its own")
	for range 2 {
		_, err = a.Detach(t.Context(), false)
		require.NoError(t, err, "a second detach has no effect")
	}
	assert.Nil(t, a.Volume())
}

// A full disk ends the step with the file's name as the volume knows it, and
// keeps the samples of the files before.
func TestDiskFull(t *testing.T) {
	for _, workers := range []int{1, 2} {
		dir := place(t, hostio.WithHook(&full{after: 10}))
		c, err := directory.Engine{}.Create(t.Context(), dir, "base", engine.Spec{})
		require.NoError(t, err)
		list, o := oddSizes(), options(t)
		o.Workers = workers
		out, err := workload.Write(t.Context(), attach(t, c).Volume(), list, o)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.EqualError(t, err, `writing file "batch001/f11": no space left on device`)
		assert.Len(t, out.Samples, 11)
	}
}

// full is a disk on which a number of files have room.
type full struct{ after int }

func (f *full) Before(op hostio.Op) error {
	if op.Kind == hostio.OpWrite && filepath.Base(op.Path) > fmt.Sprintf("f%02d", f.after) {
		return syscall.ENOSPC
	}
	return nil
}

func (*full) After(hostio.Op, int, error) {}
