package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
)

// life goes once through everything that a case does: create, attach, write,
// detach, evict, attach, read back, delete, detach, check, remove.
func (r *rig) life() {
	t := r.t
	c := r.create("img")
	made := c.Made()
	if !r.folder() {
		assert.GreaterOrEqual(t, made.Size, r.s.Size)
		assert.LessOrEqual(t, made.Size, r.s.Size+1<<20)
		assert.NotEmpty(t, made.Filesystem)
		assert.NotEmpty(t, c.OpenWith(filepath.Join(r.dir.Path(), c.Name())))
	}
	if r.s.BandSize != 0 {
		assert.Equal(t, r.s.BandSize, made.BandSize)
	}
	first, second := batch(1, odd...), batch(2, odd...)
	r.with(c, func(v workload.Volume) {
		free, err := v.Free()
		require.NoError(t, err)
		assert.Greater(t, free, int64(0))
		r.write(v, first, workload.CacheDirect)
		r.intact(v, first)
	})
	require.NoError(t, c.Evict(r.ctx))
	r.with(c, func(v workload.Volume) {
		r.intact(v, first)
		r.write(v, second, workload.CacheBuffered)
		out, err := workload.Read(r.ctx, v, slices.Concat(first, second), r.work(workload.CacheCold))
		require.NoError(t, err)
		assert.Equal(t, workload.Total(first)+workload.Total(second), out.Bytes)
	})
	u := r.usage(c)
	live := workload.Total(first) + workload.Total(second)
	assert.GreaterOrEqual(t, u.Allocated, live, "what was flushed is on the host")
	assert.LessOrEqual(t, u.Allocated, r.peak(live)+1<<20, "more than was said that it can be")
	r.with(c, func(v workload.Volume) {
		_, err := workload.Delete(r.ctx, v, first, r.work(""))
		require.NoError(t, err)
		_, err = v.Open(first[3].Name, workload.FileOptions{})
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
	r.holds(c, second)
	r.sound(c)
	require.NoError(t, c.Remove(r.ctx))
	left, err := r.dir.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left)
	_, err = c.Attach(r.ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, engine.ErrGone)
}

// remount attaches and detaches many times; each time the container is opened anew by its name.
func (r *rig) remount() {
	c := r.create("img")
	list := batch(1, odd[:10]...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheDirect) })
	id, err := c.Identity(r.ctx)
	require.NoError(r.t, err)
	for range r.o.Remounts {
		again, err := r.e.Open(r.ctx, r.dir, c.Name(), r.s)
		require.NoError(r.t, err)
		now, err := again.Identity(r.ctx)
		require.NoError(r.t, err)
		require.Equal(r.t, id, now, "attaching makes no other container of it")
		r.holds(again, list)
	}
	r.sound(c)
}

// readOnly reads without leaving a trace, refuses to write, and attaches without mounting.
func (r *rig) readOnly() {
	t := r.t
	c := r.create("img")
	list := batch(1, odd...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheBuffered) })
	before := r.digest(c)
	a := r.attach(c, engine.AttachOptions{ReadOnly: true})
	r.intact(a.Volume(), list)
	_, err := a.Volume().Create("new", 1, workload.FileOptions{})
	require.Error(t, err)
	require.Error(t, a.Volume().Remove(list[1].Name))
	require.Error(t, a.Volume().Mkdir("folder"))
	r.detach(a)
	assert.Equal(t, before, r.digest(c), "reading changed the container")
	a = r.attach(c, engine.AttachOptions{NoMount: true})
	assert.Nil(t, a.Volume())
	rep, err := c.Check(r.ctx, engine.CheckOptions{What: "volume", Repair: true}) // as fsck on the device of an image
	if no, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		t.Logf("not checked while attached: %v", no)
	} else {
		require.NoError(t, err)
		assert.Empty(t, rep.Findings)
	}
	r.detach(a)
	r.holds(c, list)
}

// digest is of all files of the container, their names included.
func (r *rig) digest(c engine.Container) string {
	r.t.Helper()
	sum := sha256.New()
	root := filepath.Join(r.dir.Path(), c.Name())
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		size, err := io.Copy(sum, f)
		inside, _ := filepath.Rel(root, path) // a copy has another name
		fmt.Fprint(sum, size)
		sum.Write([]byte(inside))
		return err
	})
	require.NoError(r.t, err)
	return hex.EncodeToString(sum.Sum(nil))
}

// refusals are what an engine must not do: take a name that is there, attach
// twice, change or remove what is attached.
func (r *rig) refusals() {
	t := r.t
	c := r.create("img")
	list := batch(1, odd[:9]...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheBuffered) })
	_, err := r.e.Create(r.ctx, r.dir, "img", r.s)
	require.ErrorIs(t, err, fs.ErrExist)
	r.holds(c, list)
	_, err = r.e.Open(r.ctx, r.dir, "missing", r.s)
	require.ErrorIs(t, err, fs.ErrNotExist)
	if r.folder() {
		t.Log("a folder may be opened twice")
		return
	}
	a := r.attach(c, engine.AttachOptions{})
	_, err = c.Attach(r.ctx, engine.AttachOptions{})
	require.Error(t, err, "attached twice")
	require.Error(t, c.Remove(r.ctx), "removed while attached")
	_, err = c.Compact(r.ctx, engine.CompactOptions{})
	require.Error(t, err, "compacted while attached")
	_, err = c.Resize(r.ctx, 2*r.s.Size)
	require.Error(t, err, "resized while attached")
	_, err = c.Transfer(r.ctx, r.dir, "twin")
	require.Error(t, err, "copied while attached")
	require.Error(t, c.Evict(r.ctx), "evicted while attached")
	r.intact(a.Volume(), list)
	r.detach(a)
	_, err = a.Detach(r.ctx, false)
	require.NoError(t, err, "a second detach does nothing")
	r.holds(c, list)
}

// canceled starts nothing, and leaves nothing.
func (r *rig) canceled() {
	t := r.t
	c := r.create("img")
	gone, cancel := context.WithCancel(r.ctx)
	cancel()
	if !r.folder() { // making a folder is over before anybody can cancel it
		_, err := r.e.Create(gone, r.dir, "other", r.s)
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.Attach(gone, engine.AttachOptions{})
		require.ErrorIs(t, err, context.Canceled)
	}
	list, err := r.dir.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, list, 1)
	r.holds(c, nil)
}
