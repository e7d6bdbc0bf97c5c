package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"sync"
	"sync/atomic"

	"dmgbench/internal/hostio"
)

// verifyBlock is how much Verify compares at a time, in bytes.
const verifyBlock = 1 << 20

// Verify compares every byte of the items with what [Write] wrote, untimed and
// in parallel. What is wrong is in Outcome.Findings, one line a file in the
// order of the items: missing, of the wrong size, unreadable, or different, with
// the offset of the first wrong byte. The error is kept for a verification that
// could not be carried out.
func Verify(ctx context.Context, vol Volume, items []Item, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o, err := o.settle()
	if err != nil {
		return Outcome{}, err
	}
	if o.Data == nil {
		return Outcome{}, errors.New("verifying files: no data to compare with")
	}
	sizes, err := sizesOf(vol, items)
	if err != nil {
		return Outcome{}, err
	}
	workers := min(max(o.Workers, runtime.GOMAXPROCS(0)), max(len(items), 1))
	mem, err := hostio.AlignedBuffer(2 * verifyBlock * workers)
	if err != nil {
		return Outcome{}, fmt.Errorf("verifying files: %w", err)
	}
	defer mem.Free()
	found := make([]string, len(items))
	var next, right atomic.Int64
	tell := verifyProgress(items, o.Progress)
	var wg sync.WaitGroup
	for id := range workers {
		wg.Go(func() {
			part := mem.Bytes()[id*2*verifyBlock:][: 2*verifyBlock : 2*verifyBlock]
			for i := next.Add(1) - 1; i < int64(len(items)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				size, ok := sizes[items[i].Name]
				if found[i] = verifyFile(ctx, vol, items[i], size, ok, o, part); found[i] == "" {
					right.Add(items[i].Size)
				}
				tell(items[i].Size)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Outcome{}, fmt.Errorf("verifying files: %w", context.Cause(ctx))
	}
	out := Outcome{Bytes: right.Load()}
	for _, f := range found {
		if f != "" {
			out.Findings = append(out.Findings, f)
		}
	}
	return out, nil
}

// verifyProgress reports each file that was looked at, one at a time.
func verifyProgress(items []Item, hook func(Progress)) func(size int64) {
	if hook == nil {
		return func(int64) {}
	}
	var mu sync.Mutex
	p := Progress{OfFiles: len(items), OfBytes: Total(items)}
	return func(size int64) {
		mu.Lock()
		defer mu.Unlock()
		p.Files++
		p.Bytes += size
		hook(p)
	}
}

// sizesOf lists the folders of the items.
func sizesOf(vol Volume, items []Item) (map[string]int64, error) {
	sizes, seen := map[string]int64{}, map[string]bool{}
	for _, it := range items {
		dir := path.Dir(it.Name)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		list, err := vol.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing folder %q: %w", dir, err)
		}
		for _, e := range list {
			if !e.Dir {
				sizes[path.Join(dir, e.Name)] = e.Size
			}
		}
	}
	return sizes, nil
}

// verifyFile gives one line about what is wrong with the file, or "".
func verifyFile(ctx context.Context, vol Volume, it Item, size int64, there bool, o Options, mem []byte) string {
	if !there {
		return fmt.Sprintf("file %q: missing", it.Name)
	}
	if size != it.Size {
		return fmt.Sprintf("file %q: has %d bytes, want %d", it.Name, size, it.Size)
	}
	f, err := vol.Open(it.Name, o.fileOptions(0))
	if err != nil {
		return fmt.Sprintf("file %q: opening: %v", it.Name, err)
	}
	defer f.Close()
	// What is in the cache does not prove what is on the volume. Advice only.
	_ = f.Evict()
	key := KeyOf(it.Name)
	for off := int64(0); off < it.Size && ctx.Err() == nil; off += verifyBlock {
		n := min(verifyBlock, it.Size-off)
		got, want := mem[:n], mem[verifyBlock:verifyBlock+n]
		if k, err := f.ReadAt(got, off); int64(k) < n {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Sprintf("file %q: reading %d bytes at %d: %v", it.Name, n, off, err)
		}
		o.Data.FillAt(want, key, off)
		if !bytes.Equal(got, want) {
			at := firstDifference(got, want)
			return fmt.Sprintf("file %q: first difference at byte %d: 0x%02x, want 0x%02x", it.Name, off+int64(at), got[at], want[at])
		}
	}
	return ""
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
