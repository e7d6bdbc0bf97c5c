package container

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/hostio"
)

// load is one shape of writing: workers that each write files, in calls of
// some size, with a flush per file.
type load struct {
	workers int
	file    int64
	call    int64
	files   int // per worker
	band    int64
}

// BenchmarkUDSBWrite compares the bundle with plain files, first writes past
// the page cache. The two alternate A-B-B-A and the ratio of each pair is
// taken, since shared disks drift; the median of the ratios, their quartiles and the
// plain rate are reported. A ratio of 1 means that a bundle is as fast.
func BenchmarkUDSBWrite(b *testing.B) {
	for _, l := range []load{
		{1, 2 << 20, 1 << 20, 40, 0}, {1, 2_000_000, 2_000_000, 40, 0}, {1, 20_000_000, 1 << 20, 10, 0},
		{1, 20_000_000, 20_000_000, 10, 0}, {1, 200_000_000, 1 << 20, 2, 0}, {1, 200_000_000, 200_000_000, 2, 0},
		{2, 20_000_000, 1 << 20, 5, 0}, {2, 20_000_000, 20_000_000, 5, 0}, {2, 200_000_000, 200_000_000, 1, 0},
	} {
		b.Run(fmt.Sprintf("workers=%d/file=%d/call=%d", l.workers, l.file, l.call), func(b *testing.B) { l.compare(b) })
	}
}

func (l load) compare(b *testing.B) {
	buf, err := hostio.AlignedBuffer(int(l.file))
	require.NoError(b, err)
	defer buf.Free()
	copy(buf.Bytes(), pattern(int(l.file), 7))
	base := tempDir(b)
	_ = base.Spread()
	var ratios, rates []float64
	pair := 0
	for b.Loop() {
		var plain, bundle time.Duration
		for i := range 4 {
			if i == 0 || i == 3 {
				plain += l.plain(b, base, buf.Bytes())
			} else {
				bundle += l.bundle(b, base, buf.Bytes())
			}
		}
		if pair++; pair > 1 || b.N == 1 { // the first pair warms up
			ratios = append(ratios, plain.Seconds()/bundle.Seconds())
			rates = append(rates, 2*float64(l.bytes())/plain.Seconds()/1e9)
		}
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	if n := len(ratios); n > 0 {
		b.ReportMetric(ratios[n/2], "ratio")
		b.ReportMetric(ratios[n/4], "ratio-q1")
		b.ReportMetric(ratios[3*n/4], "ratio-q3")
		b.ReportMetric(rates[n/2], "plain-GB/s")
	}
}

func (l load) bytes() int64 { return int64(l.workers) * int64(l.files) * l.file }

// timed runs the workers behind one gate, from gate to last done.
func (l load) timed(work func(w int)) time.Duration {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for w := range l.workers {
		wg.Go(func() { <-gate; work(w) })
	}
	begin := time.Now()
	close(gate)
	wg.Wait()
	return time.Since(begin)
}

func (l load) calls(p []byte, write func(p []byte, off int64) (int, error)) error {
	for off := int64(0); off < int64(len(p)); off += l.call {
		if _, err := write(p[off:min(off+l.call, int64(len(p)))], off); err != nil {
			return err
		}
	}
	return nil
}

// folder makes a fresh one, far from what earlier pairs deleted.
func (l load) folder(b *testing.B, base *hostio.Dir) *hostio.Dir {
	name := strconv.FormatInt(time.Now().UnixNano(), 36)
	require.NoError(b, base.Mkdir(name))
	d, err := base.Sub(name)
	require.NoError(b, err)
	return d
}

func (l load) plain(b *testing.B, base *hostio.Dir, p []byte) time.Duration {
	d := l.folder(b, base)
	defer d.Close()
	files := make([]*hostio.File, l.workers*l.files)
	for i := range files {
		var err error
		files[i], err = d.Open(strconv.Itoa(i), hostio.OpenOptions{Write: true, Create: true, Cache: hostio.CacheDirect})
		require.NoError(b, err)
	}
	errs := make([]error, l.workers)
	took := l.timed(func(w int) {
		for i := range l.files {
			f := files[w*l.files+i]
			if errs[w] = l.calls(p, f.WriteAt); errs[w] != nil {
				return
			}
			if _, errs[w] = f.Sync(hostio.SyncFsync); errs[w] != nil {
				return
			}
		}
	})
	for i, f := range files {
		require.NoError(b, f.Close())
		require.NoError(b, d.Remove(strconv.Itoa(i)))
	}
	for _, err := range errs {
		require.NoError(b, err)
	}
	return took
}

func (l load) bundle(b *testing.B, base *hostio.Dir, p []byte) time.Duration {
	d := l.folder(b, base)
	defer d.Close()
	// Each worker writes in bands of its own, as volumes arrange it.
	const own = 1 << 30
	require.NoError(b, Create(d, "b", Spec{Format: UDSB, Size: int64(l.workers) * own, BandSize: l.band}))
	img, err := Open(d, "b", OpenOptions{Cache: hostio.CacheDirect, Sync: hostio.SyncFsync})
	require.NoError(b, err)
	errs := make([]error, l.workers)
	stride := (l.file + 4095) / 4096 * 4096
	took := l.timed(func(w int) {
		for i := range l.files {
			base := int64(w)*own + int64(i)*stride
			at := func(p []byte, off int64) (int, error) { return img.WriteAt(p, base+off) }
			if errs[w] = l.calls(p, at); errs[w] != nil {
				return
			}
			if errs[w] = img.Flush(); errs[w] != nil {
				return
			}
		}
	})
	for _, err := range errs {
		require.NoError(b, err)
	}
	require.NoError(b, img.Close())
	require.NoError(b, Remove(d, "b"))
	return took
}
