package enginetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"syscall"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

const mib = 1 << 20

// space deletes files and asks for their room back: by trimming, by compacting.
func (r *rig) space() {
	t := r.t
	c := r.create("img")
	large := int64(8 * mib)
	if !r.folder() {
		large = min(large, r.s.Size/6)
	}
	keep, drop := batch(1, odd[:12]...), batch(2, large, large, large-1)
	r.with(c, func(v workload.Volume) {
		r.write(v, keep, workload.CacheBuffered)
		r.write(v, drop, workload.CacheDirect)
	})
	before := r.usage(c).Allocated
	a := r.attach(c, engine.AttachOptions{})
	_, err := workload.Delete(r.ctx, a.Volume(), drop, r.work(""))
	require.NoError(t, err)
	require.NoError(t, a.Volume().Sync())
	r.detach(a)
	a = r.attach(c, engine.AttachOptions{}) // some volumes give back what was freed before this mount only
	rep, err := a.Trim(r.ctx)
	if no, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		t.Logf("not trimmed: %v", no)
	} else {
		require.NoError(t, err)
		assert.GreaterOrEqual(t, rep.Freed, int64(0))
	}
	r.detach(a)
	if _, err := c.Compact(r.ctx, engine.CompactOptions{AllowBattery: true}); err != nil {
		require.ErrorAs(t, err, new(*engine.UnsupportedError))
	}
	after := r.usage(c).Allocated
	if r.o.Keeps == "" {
		assert.LessOrEqual(t, after, before-workload.Total(drop)/2, "deleted files stayed allocated")
	} else {
		t.Logf("%d bytes before, %d after: %s", before, after, r.o.Keeps)
	}
	r.holds(c, keep)
	r.sound(c)
}

// full writes until not one byte more fits. What was flushed has to be there
// afterwards, and the volume has to be sound and writable again.
func (r *rig) full() {
	t := r.t
	if r.folder() {
		t.Skip("a folder is as large as its disk")
	}
	c := r.create("img")
	first := batch(1, odd...)
	var flushed int64
	r.with(c, func(v workload.Volume) {
		r.write(v, first, workload.CacheBuffered)
		flushed = r.fill(v, "full")
		free, err := v.Free()
		require.NoError(t, err)
		assert.Less(t, free, int64(4*mib), "full, and yet there is room")
	})
	assert.Greater(t, flushed, r.s.Size/2, "a volume holds more than half of its image")
	assert.LessOrEqual(t, r.usage(c).Allocated, r.peak(flushed+workload.Total(first))+mib, "more than was said that it can be")
	r.with(c, func(v workload.Volume) {
		r.intact(v, first)
		r.filled(v, "full", flushed)
		require.NoError(t, v.Remove("full"))
		require.NoError(t, v.Sync())
	})
	r.sound(c)
	again := batch(2, odd...)
	r.with(c, func(v workload.Volume) {
		r.write(v, again, workload.CacheDirect)
		r.intact(v, slices.Concat(first, again))
	})
}

// fill writes one file until the disk is full, in pieces that get smaller, and
// gives the bytes that a flush has confirmed.
func (r *rig) fill(v workload.Volume, name string) (flushed int64) {
	t := r.t
	t.Helper()
	f, err := v.Create(name, 0, workload.FileOptions{Cache: hostio.CacheBuffered})
	require.NoError(t, err)
	var written int64
	for piece := int64(mib); piece > 0; {
		n, err := f.WriteAt(pattern(written, piece), written)
		written += int64(n)
		switch {
		case errors.Is(err, syscall.ENOSPC):
			piece /= 256
		case err != nil:
			require.NoError(t, err)
		}
		require.Less(t, written, 2*r.s.Size, "it does not get full")
	}
	_, err = f.Sync(hostio.SyncFull)
	require.NoError(t, err, "what was taken has to be kept")
	require.NoError(t, f.Close())
	return written
}

// filled compares what fill wrote.
func (r *rig) filled(v workload.Volume, name string, size int64) {
	t := r.t
	t.Helper()
	f, err := v.Open(name, workload.FileOptions{Cache: hostio.CacheBuffered})
	require.NoError(t, err)
	buf := make([]byte, mib)
	for off := int64(0); off < size; off += mib {
		part := buf[:min(mib, size-off)]
		n, err := f.ReadAt(part, off)
		if n < len(part) || !errors.Is(err, io.EOF) {
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(pattern(off, int64(len(part))), part), "other bytes from %d on", off)
	}
	require.NoError(t, f.Close())
}

// pattern is n bytes that belong to this offset: no two blocks are the same.
func pattern(off, n int64) []byte {
	before := off % 8
	p := make([]byte, 0, before+n+8)
	for word := uint64(off/8 + 1); int64(len(p)) < before+n; word++ {
		p = binary.LittleEndian.AppendUint64(p, word*0x9e3779b97f4a7c15)
	}
	return p[before:][:n]
}

// resize makes the image twice as large and, where the file system can, as small as before.
func (r *rig) resize() {
	t := r.t
	c := r.create("img")
	list := batch(1, odd...)
	var before int64
	r.with(c, func(v workload.Volume) {
		r.write(v, list, workload.CacheBuffered)
		var err error
		before, err = v.Free()
		require.NoError(t, err)
	})
	_, err := c.Resize(r.ctx, 2*r.s.Size)
	r.can(err)
	assert.GreaterOrEqual(t, c.Made().Size, 2*r.s.Size)
	r.sound(c)
	r.with(c, func(v workload.Volume) {
		r.intact(v, list)
		free, err := v.Free()
		require.NoError(t, err)
		assert.Greater(t, free, before+r.s.Size*3/4, "the volume did not grow with its image")
	})
	large := c.Made().Size
	if _, err = c.Resize(r.ctx, r.s.Size); err != nil {
		t.Logf("not made smaller: %v", err)
		assert.Equal(t, large, c.Made().Size, "refused, and yet smaller")
	} else {
		assert.Less(t, c.Made().Size, large)
	}
	r.sound(c)
	r.holds(c, list)
}
