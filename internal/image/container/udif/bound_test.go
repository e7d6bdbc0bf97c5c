package udif

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/codec"
)

// vastDevice is made up as it is read. Data is one MiB in every 4 GiB, and it says so as a Map.
type vastDevice struct{ read atomic.Int64 }

const spacing = 4 << 30

func (d *vastDevice) ReadAt(p []byte, off int64) (int, error) {
	d.read.Add(int64(len(p)))
	for done := 0; done < len(p); {
		at := off + int64(done)
		sector := p[done:min(len(p), done+int(512-at%512))]
		value := byte(0)
		if at%spacing < 1<<20 {
			value = byte(at>>32) ^ byte(at>>9) | 1
		}
		for i := range sector {
			sector[i] = value
		}
		done += len(sector)
	}
	return len(p), nil
}

func (d *vastDevice) Next(off int64) (int64, State) {
	if off%spacing < 1<<20 {
		return off/spacing*spacing + 1<<20, StateData
	}
	return (off/spacing + 1) * spacing, StateUnallocated
}

// peak samples the memory in use until stop is called, and returns the largest growth.
func peak() (stop func() int64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			case <-end:
				return
			}
		}
	})
	return func() int64 {
		close(end)
		all.Wait()
		return int64(most) - int64(before)
	}
}

// TestMemoryDoesNotGrow writes, verifies and reads a device of 256 GiB within a memory of some megabytes.
func TestMemoryDoesNotGrow(t *testing.T) {
	const size, memory = 64 * spacing, 8 << 20
	device := &vastDevice{}
	path := filepath.Join(t.TempDir(), "vast.dmg")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	stop := peak()
	written, err := Write(t.Context(), file, device, size, WriteOptions{Format: UDZO, Map: device, Memory: memory})
	require.NoError(t, err)
	assert.Less(t, device.read.Load(), int64(66<<20), "holes are not read")
	im, err := Open(file, written, Options{Cache: 4 << 20})
	require.NoError(t, err)
	defer im.Close()
	report, err := im.Verify(t.Context(), StreamOptions{Memory: memory})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	at := int64(0)
	require.NoError(t, im.Stream(t.Context(), StreamOptions{Memory: memory}, func(p Piece) error {
		require.Equal(t, at, p.Offset)
		at += p.Length
		if p.Data != nil {
			want := make([]byte, len(p.Data))
			_, _ = device.ReadAt(want, p.Offset)
			require.True(t, bytes.Equal(want, p.Data))
		}
		return nil
	}))
	require.EqualValues(t, size, at)
	buffer, want := make([]byte, 4096), make([]byte, 4096)
	for g := range int64(64) {
		_, err := im.ReadAt(buffer, g*spacing+int64(g)*1000)
		require.NoError(t, err)
		_, _ = device.ReadAt(want, g*spacing+int64(g)*1000)
		require.Equal(t, want, buffer)
	}
	// Buffers as asked for, twice that for what the collector has not yet found, and the codec's own state.
	assert.Less(t, stop(), int64(3*memory+24<<20))
}

func TestCacheStaysInBounds(t *testing.T) {
	device := content(8<<20, 11)
	file := write(t, device, WriteOptions{Format: UDZO, ChunkSectors: 128})
	const limit = 1 << 20
	im := open(t, file, Options{Cache: limit, Workers: 2})
	var all sync.WaitGroup
	for reader := range 6 {
		all.Go(func() { readRandom(t, im, device, 40, uint64(reader)) })
	}
	all.Wait()
	im.working.Wait()
	assert.LessOrEqual(t, im.cache.used, int64(limit))
	require.NoError(t, im.Close())
	assert.Zero(t, im.cache.used)
	assert.Empty(t, im.cache.entries)
	_, err := im.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, ErrClosed)
}

// decodeCounter counts what is decoded, and can hold decoding back.
type decodeCounter struct {
	decoded atomic.Int64
	gate    chan struct{}
}

func (c *decodeCounter) decode(id codec.ID, dst, src []byte) (int, error) {
	if c.gate != nil {
		<-c.gate
	}
	c.decoded.Add(1)
	return codec.Decode(id, dst, src)
}

// noHoles is a device whose chunks are all compressed.
func noHoles(size int) []byte {
	device := make([]byte, size)
	for i := range device {
		device[i] = byte(i>>9) | 1
	}
	return device
}

func TestChunkIsDecodedOnce(t *testing.T) {
	device := noHoles(1 << 20)
	file := write(t, device, WriteOptions{Format: UDZO})
	count := &decodeCounter{gate: make(chan struct{})}
	im := open(t, file, Options{decode: count.decode})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p := make([]byte, 4096)
			_, err := im.ReadAt(p, 8192)
			assert.NoError(t, err)
			assert.Equal(t, device[8192:8192+4096], p)
		})
	}
	close(count.gate)
	all.Wait()
	assert.EqualValues(t, 1, count.decoded.Load())
}

func TestReadAhead(t *testing.T) {
	device := noHoles(64 * 64 << 10)
	file := write(t, device, WriteOptions{Format: UDZO, ChunkSectors: 128})
	read := func(ahead int, offsets ...int) int64 {
		count := &decodeCounter{}
		im := open(t, file, Options{decode: count.decode, ReadAhead: ahead})
		p := make([]byte, 1000)
		for _, off := range offsets {
			_, err := im.ReadAt(p, int64(off)<<16)
			require.NoError(t, err)
			require.Equal(t, device[off<<16:off<<16+1000], p)
		}
		im.working.Wait()
		return count.decoded.Load()
	}
	assert.EqualValues(t, 3, read(4, 3, 40, 20), "random access decodes nothing in advance")
	assert.EqualValues(t, 4, read(-1, 0, 1, 2, 3), "turned off")
	assert.EqualValues(t, 2+4, read(4, 7, 8), "the second of two neighbours brings the next four")
	assert.EqualValues(t, 4+4, read(4, 10, 11, 12, 13), "then one with each")
	assert.EqualValues(t, 2*(4+4), read(4, 10, 30, 11, 31, 12, 32, 13, 33), "two readers at once")
	im := open(t, file, Options{ReadAhead: 4})
	p := make([]byte, len(device))
	_, err := im.ReadAt(p, 0)
	require.NoError(t, err)
	requireSame(t, device, p)
}

func TestReadErrorsAreNotKept(t *testing.T) {
	device := noHoles(1 << 20)
	file := write(t, device, WriteOptions{Format: UDZO})
	source := &flaky{ReaderAt: bytes.NewReader(file)}
	im, err := Open(source, int64(len(file)), Options{})
	require.NoError(t, err)
	defer im.Close()
	source.broken.Store(true)
	p := make([]byte, 10)
	_, err = im.ReadAt(p, 100)
	require.ErrorIs(t, err, errMedium)
	source.broken.Store(false)
	_, err = im.ReadAt(p, 100)
	require.NoError(t, err)
	assert.Equal(t, device[100:110], p)
	_, err = im.ReadAt(p, -1)
	require.ErrorContains(t, err, "negative")
}

type flaky struct {
	io.ReaderAt
	broken atomic.Bool
}

func (f *flaky) ReadAt(p []byte, off int64) (int, error) {
	if f.broken.Load() {
		return 0, errMedium
	}
	return f.ReaderAt.ReadAt(p, off)
}

func TestStreamEnds(t *testing.T) {
	device := content(4<<20, 12)
	im := open(t, write(t, device, WriteOptions{Format: UDZO}), Options{})
	stop := errors.New("stop")
	calls := 0
	err := im.Stream(t.Context(), StreamOptions{}, func(Piece) error { calls++; return stop })
	require.ErrorIs(t, err, stop)
	assert.Equal(t, 1, calls)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, im.Copy(ctx, io.Discard, StreamOptions{}), context.Canceled)
	_, err = im.Verify(ctx, StreamOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestStreamInAnyOrder delivers each piece once, whole, in any order, and stops at the first error.
func TestStreamInAnyOrder(t *testing.T) {
	device := content(6<<20, 3)
	im := open(t, write(t, device, WriteOptions{Format: UDZO, ChunkSectors: 256}), Options{Workers: 3})
	got := make([]byte, len(device))
	var mu sync.Mutex
	covered, last := int64(0), int64(0)
	require.NoError(t, im.Stream(t.Context(), StreamOptions{AnyOrder: true, Progress: func(done, _ int64) {
		assert.Greater(t, done, last)
		last = done
	}}, func(p Piece) error {
		mu.Lock()
		defer mu.Unlock()
		covered += p.Length
		copy(got[p.Offset:p.Offset+p.Length], p.Data)
		return nil
	}))
	assert.Equal(t, im.Size(), covered)
	assert.Equal(t, im.Size(), last)
	assert.Equal(t, device, got)
	boom := errors.New("boom")
	require.ErrorIs(t, im.Stream(t.Context(), StreamOptions{AnyOrder: true}, func(Piece) error { return boom }), boom)
}

// TestBuffersAreUsedAgain: a buffer fits every chunk of the image, however short the one was that it was made for.
func TestBuffersAreUsedAgain(t *testing.T) {
	c := cache{chunk: 1 << 20}
	for _, n := range []int64{1, 512, 1 << 20} {
		b := c.buffer(n)
		assert.Len(t, b, int(n))
		assert.Equal(t, 1<<20, cap(b))
		e := &entry{data: b}
		c.free(e)
		assert.Nil(t, e.data)
		assert.Len(t, c.buffer(1<<20), 1<<20)
	}
	e := &entry{data: make([]byte, 1<<20), users: 1}
	c.free(e)
	assert.NotNil(t, e.data, "another reader has it")
	c.free(&entry{})
	assert.Len(t, c.buffer(1<<20), 1<<20, "what has no buffer leaves none")
}

// TestCacheIsUsedUpToItsLimit: chunks that fill the cache exactly stay, and one more drops the one used longest ago.
func TestCacheIsUsedUpToItsLimit(t *testing.T) {
	const chunk = 64 << 10
	file := write(t, noHoles(4*chunk), WriteOptions{Format: UDZO, ChunkSectors: chunk / SectorSize})
	for _, test := range []struct {
		reads   []int64
		decoded int64
	}{{[]int64{0, 1, 0, 1}, 2}, {[]int64{0, 1, 2, 1, 2}, 3}, {[]int64{0, 1, 0, 2, 0}, 3}, {[]int64{0, 1, 2, 0}, 4}} {
		count := &decodeCounter{}
		im := open(t, file, Options{decode: count.decode, Cache: 2 * chunk, ReadAhead: -1})
		for _, i := range test.reads {
			_, err := im.ReadAt(make([]byte, 100), i*chunk)
			require.NoError(t, err)
		}
		assert.Equal(t, test.decoded, count.decoded.Load(), "reads of %d", test.reads)
	}
}
