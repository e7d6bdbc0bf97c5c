package container

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// load is one shape of work: workers that each write files, in calls of some
// size, with a flush per file, and then read them back.
type load struct {
	format  string
	workers int
	files   int // per worker
	file    int64
	call    int64
}

// BenchmarkImage compares images with plain files: first writes and then
// reads, past the page cache. The two alternate A-B-B-A, and the ratio is
// taken of each pair, since shared disks drift; reported are the median ratios
// of writing and reading with the quartiles of writing, and the plain rates. A
// ratio of 1 means that the image is as fast.
func BenchmarkImage(b *testing.B) {
	for _, format := range []string{UDSB, UDRW, UDSP, ASIF} {
		for _, l := range []load{
			{format, 1, 40, 2_000_000, 2_000_000}, {format, 1, 40, 2 << 20, 1 << 20},
			{format, 1, 10, 20_000_000, 1 << 20}, {format, 1, 10, 20_000_000, 20_000_000},
			{format, 1, 2, 200_000_000, 1 << 20}, {format, 1, 2, 200_000_000, 200_000_000},
			{format, 2, 5, 20_000_000, 20_000_000}, {format, 2, 1, 200_000_000, 200_000_000},
		} {
			name := fmt.Sprintf("format=%s/workers=%d/file=%d/call=%d", l.format, l.workers, l.file, l.call)
			b.Run(name, func(b *testing.B) { l.compare(b) })
		}
	}
}

// spans are the times of the two halves of one turn.
type spans struct{ write, read time.Duration }

func (l load) compare(b *testing.B) {
	bufs := make([][]byte, l.workers)
	for w := range bufs {
		buf, err := hostio.AlignedBuffer(int(l.file))
		require.NoError(b, err)
		defer buf.Free()
		bufs[w] = buf.Bytes()
		copy(bufs[w], pattern(int(l.file), uint64(w)))
	}
	base := tempDir(b)
	_ = base.SpreadSubdirs()
	var write, read, writeRate, readRate []float64
	warm := false
	for b.Loop() {
		var plain, image spans
		for i := range 4 {
			sum, turn := &image, l.image
			if i == 0 || i == 3 {
				sum, turn = &plain, l.plain
			}
			s := turn(b, base, bufs)
			sum.write += s.write
			sum.read += s.read
		}
		if !warm { // the first pair
			warm = true
			continue
		}
		bytes := 2 * float64(l.workers) * float64(l.files) * float64(l.file) / 1e9
		write = append(write, plain.write.Seconds()/image.write.Seconds())
		read = append(read, plain.read.Seconds()/image.read.Seconds())
		writeRate = append(writeRate, bytes/plain.write.Seconds())
		readRate = append(readRate, bytes/plain.read.Seconds())
	}
	report(b, "write-ratio", write, 0.5)
	report(b, "write-ratio-q1", write, 0.25)
	report(b, "write-ratio-q3", write, 0.75)
	report(b, "read-ratio", read, 0.5)
	report(b, "plain-write-GB/s", writeRate, 0.5)
	report(b, "plain-read-GB/s", readRate, 0.5)
}

func report(b *testing.B, unit string, v []float64, share float64) {
	if len(v) == 0 {
		return
	}
	slices.Sort(v)
	b.ReportMetric(v[int(share*float64(len(v)-1)+0.5)], unit)
}

// timed runs the workers behind one gate, from gate to last done.
func (l load) timed(b *testing.B, work func(w, i int) error) time.Duration {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	errs := make([]error, l.workers)
	for w := range l.workers {
		wg.Go(func() {
			<-gate
			for i := 0; i < l.files && errs[w] == nil; i++ {
				errs[w] = work(w, i)
			}
		})
	}
	begin := time.Now()
	close(gate)
	wg.Wait()
	took := time.Since(begin)
	for _, err := range errs {
		require.NoError(b, err)
	}
	return took
}

func (l load) calls(p []byte, base int64, do func(p []byte, off int64) (int, error)) error {
	for off := int64(0); off < int64(len(p)); off += l.call {
		if _, err := do(p[off:min(off+l.call, int64(len(p)))], base+off); err != nil {
			return err
		}
	}
	return nil
}

// folder makes a fresh one, far from what earlier turns deleted.
func folder(b *testing.B, base *hostio.Dir) *hostio.Dir {
	name := strconv.FormatInt(time.Now().UnixNano(), 36)
	require.NoError(b, base.Mkdir(name))
	d, err := base.Sub(name)
	require.NoError(b, err)
	return d
}

func (l load) plain(b *testing.B, base *hostio.Dir, bufs [][]byte) spans {
	d := folder(b, base)
	defer d.Close()
	files := make([]*hostio.File, l.workers*l.files)
	for i := range files {
		var err error
		files[i], err = d.Open(strconv.Itoa(i), hostio.OpenOptions{Write: true, Create: true, Cache: hostio.CacheDirect})
		require.NoError(b, err)
	}
	var s spans
	s.write = l.timed(b, func(w, i int) error {
		f := files[w*l.files+i]
		if err := l.calls(bufs[w], 0, f.WriteAt); err != nil {
			return err
		}
		_, err := f.Sync(hostio.SyncFsync)
		return err
	})
	s.read = l.timed(b, func(w, i int) error { return l.calls(bufs[w], 0, files[w*l.files+i].ReadAt) })
	for i, f := range files {
		require.NoError(b, f.Close())
		require.NoError(b, d.Remove(strconv.Itoa(i)))
	}
	return s
}

func (l load) image(b *testing.B, base *hostio.Dir, bufs [][]byte) spans {
	d := folder(b, base)
	defer d.Close()
	// Each worker works in bands of its own, as volumes arrange it.
	stride := (l.file + 4095) / 4096 * 4096
	own := (int64(l.files)*stride/(8<<20) + 1) * (8 << 20)
	require.NoError(b, Create(d, "i", Spec{Format: l.format, Size: int64(l.workers) * own}))
	img, err := Open(d, "i", OpenOptions{Cache: hostio.CacheDirect, Sync: hostio.SyncFsync})
	require.NoError(b, err)
	at := func(w, i int) int64 { return int64(w)*own + int64(i)*stride }
	var s spans
	s.write = l.timed(b, func(w, i int) error {
		if err := l.calls(bufs[w], at(w, i), img.WriteAt); err != nil {
			return err
		}
		return img.Flush()
	})
	s.read = l.timed(b, func(w, i int) error { return l.calls(bufs[w], at(w, i), img.ReadAt) })
	require.NoError(b, img.Close())
	require.NoError(b, Remove(d, "i"))
	return s
}
