package workload

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// nullVolume does nothing at no cost: what is left is our own.
type nullVolume struct{ nullFile }

func (nullVolume) Mkdir(string) error                                { return nil }
func (v nullVolume) Create(string, int64, FileOptions) (File, error) { return v.nullFile, nil }
func (v nullVolume) Open(string, FileOptions) (File, error)          { return v.nullFile, nil }
func (nullVolume) Remove(string) error                               { return nil }
func (nullVolume) Rename(string, string) error                       { return nil }
func (nullVolume) Rmdir(string) error                                { return nil }
func (nullVolume) List(string) ([]string, error)                     { return nil, nil }
func (nullVolume) Size(string) (int64, error)                        { return 0, nil }
func (nullVolume) Free() (int64, error)                              { return 1 << 40, nil }
func (nullVolume) Sync() error                                       { return nil }

type nullFile struct{}

func (nullFile) ReadAt(p []byte, _ int64) (int, error)           { return len(p), nil }
func (nullFile) WriteAt(p []byte, _ int64) (int, error)          { return len(p), nil }
func (nullFile) Sync(m hostio.SyncMode) (hostio.SyncMode, error) { return m, nil }
func (nullFile) Evict() error                                    { return nil }
func (nullFile) Resident() (float64, error)                      { return 0, nil }
func (nullFile) Cache() hostio.CacheMode                         { return hostio.CacheDirect }
func (nullFile) Close() error                                    { return nil }

// Nothing inside a span allocates, nor does handing out files.
func TestTimedSpansAllocateNothing(t *testing.T) {
	var stop atomic.Bool
	sp := &span{clock: clock.NewReal(), most: 4096, stop: &stop, buf: make([]byte, 4096)}
	w := &wave{}
	for range 16 {
		w.jobs = append(w.jobs, &job{item: Item{Size: 100_000}, file: nullFile{}, buf: make([]byte, 100_000), sync: hostio.SyncFull})
	}
	for name, write := range map[string]bool{"write": true, "read": false} {
		sp.write = write
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			w.next.Store(0)
			w.work(sp, 0)
		}), name)
	}
	for _, j := range w.jobs {
		require.True(t, j.done)
		require.NoError(t, j.err)
	}
	sp.write = true
	full := make(chan []byte, 4)
	r := &ring{full: full, empty: make(chan []byte, 4)}
	j := &job{item: Item{Size: 4096}, file: nullFile{}, ring: r, sync: hostio.SyncFull}
	block := make([]byte, 4096)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		full <- block
		sp.transfer(j)
		<-r.empty
	}), "ring")
}

// BenchmarkWriteOverhead is what the harness itself costs over a volume that costs
// nothing: outside the span ("ns/op" less the data), and inside it.
func BenchmarkWriteOverhead(b *testing.B) {
	for _, c := range []struct {
		name    string
		size    int64
		workers int
	}{{"4KiB", 4096, 1}, {"2MB", 2e6, 1}, {"200MB", 200e6, 1}, {"2MB-2workers", 2e6, 2}} {
		b.Run(c.name, func(b *testing.B) {
			sizes := make([]int64, 16)
			for i := range sizes {
				sizes[i] = c.size
			}
			buffers := &Buffers{}
			defer buffers.Free()
			o := Options{Clock: clock.NewReal(), Data: randomData(b), Sync: hostio.SyncFull, Workers: c.workers, Memory: 16 << 30, Buffers: buffers}
			var files, busy, timed int64
			for b.Loop() {
				out, err := Write(b.Context(), nullVolume{}, items(sizes...), o)
				require.NoError(b, err)
				files += int64(len(out.Samples))
				busy += out.Span.BusyNS
				timed += out.Span.LastDoneNS - out.Span.GateNS
			}
			b.ReportMetric(float64(busy)/float64(files), "busy-ns/file")
			b.ReportMetric(float64(timed)/float64(files), "span-ns/file")
			b.ReportMetric(float64(busy)/float64(files*c.size), "busy-ns/B")
		})
	}
}
