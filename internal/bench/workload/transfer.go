package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"dmgbench/internal/system/hostio"
)

// Write writes the items in their order and times each: every write call of the
// file and the flush that Options.Sync names. It makes missing folders before.
// The first file that fails ends the step with an error that names it; the
// outcome contains the files that were complete before.
func Write(ctx context.Context, vol Volume, items []Item, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o = o.withDefaults()
	if err := makeFolders(vol, items); err != nil {
		return Outcome{}, err
	}
	s := &step{vol: vol, o: o, write: true, doing: "writing", items: items, l: layoutWrite(vol, items, o)}
	out, err := s.run(ctx)
	if err != nil {
		return out, err
	}
	return out, syncVolume(vol)
}

// Read reads the items whole, in their order, and times each: every read call.
// Before the clock starts, a file is opened, evicted if Options.Cache is direct
// or cold, and looked up in the page cache. The bytes are neither hashed nor
// compared: that is [Verify].
func Read(ctx context.Context, vol Volume, items []Item, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o = o.withDefaults()
	s := &step{vol: vol, o: o, doing: "reading", items: items, l: layoutRead(vol, items, o)}
	return s.run(ctx)
}

// Delete removes the items in their order and flushes the volume. It has no
// samples: file systems free space some time after the call, so that only the
// step as a whole has a duration. The outcome counts the bytes removed.
func Delete(ctx context.Context, vol Volume, items []Item, o Options) (out Outcome, err error) {
	defer o.Gate.Leave()
	if err := o.Gate.wait(ctx); err != nil {
		return out, fmt.Errorf("deleting files: waiting for the other steps: %w", err)
	}
	for _, it := range items {
		if err = context.Cause(ctx); err == nil {
			err = vol.Remove(it.Name)
		}
		if err != nil {
			return out, fmt.Errorf("deleting file %q: %w", it.Name, err)
		}
		out.Bytes += it.Size
	}
	return out, syncVolume(vol)
}

// syncVolume makes names and sizes durable, outside of timed spans.
func syncVolume(vol Volume) error {
	if err := vol.Sync(); err != nil {
		return fmt.Errorf("flushing the volume: %w", err)
	}
	return nil
}

// makeFolders makes the missing folders of the items. It looks before it makes
// one: a failing call would be an operation on the image, too.
func makeFolders(vol Volume, items []Item) error {
	seen := map[string]bool{".": true}
	for _, it := range items {
		dir := path.Dir(it.Name)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		_, err := vol.Size(dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = vol.Mkdir(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) { // a parallel step may have made it
			return fmt.Errorf("making folder %q: %w", dir, err)
		}
	}
	return nil
}

// verifyBlock is how much Verify compares at a time, in bytes.
const verifyBlock = 1 << 20

// Verify compares every byte of the items with what [Write] wrote, untimed and
// in parallel. Outcome.Findings has one line for each wrong file, in the order
// of the items: missing, of the wrong size, unreadable, or different, with the
// offset of the first wrong byte. The error is not nil only if the verification
// itself failed.
func Verify(ctx context.Context, vol Volume, items []Item, o Options) (Outcome, error) {
	return verifyItems(ctx, items, o, func(it Item, mem []byte) error { return verifyFile(ctx, vol, it, o, mem) })
}

// verifyItems verifies items in parallel, each with memory for two blocks.
func verifyItems(ctx context.Context, items []Item, o Options, verify func(Item, []byte) error) (Outcome, error) {
	defer o.Gate.Leave()
	o = o.withDefaults()
	// Verification is not timed, so it uses all processors.
	workers := min(max(o.Workers, runtime.GOMAXPROCS(0)), max(len(items), 1))
	mem, err := hostio.AlignedBuffer(2 * verifyBlock * workers)
	if err != nil {
		return Outcome{}, fmt.Errorf("verifying files: %w", err)
	}
	defer mem.Free()
	found := make([]string, len(items)) // by item, "" if it is right
	var next atomic.Int64
	var mu sync.Mutex // of the outcome and the progress
	var out Outcome
	p := Progress{OfFiles: len(items), OfBytes: Total(items)}
	var wg sync.WaitGroup
	for id := range workers {
		wg.Go(func() {
			part := mem.Bytes()[id*2*verifyBlock:][: 2*verifyBlock : 2*verifyBlock]
			for i := next.Add(1) - 1; i < int64(len(items)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				err := verify(items[i], part)
				mu.Lock()
				switch {
				case err == nil:
					out.Bytes += items[i].Size
				case errors.As(err, new(differs)):
					out.Damaged++
				default:
					out.Lost++
				}
				if err != nil {
					found[i] = fmt.Sprintf("file %q: %v", items[i].Name, err)
				}
				if p.Files, p.Bytes = p.Files+1, p.Bytes+items[i].Size; o.Progress != nil {
					o.Progress(p)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Outcome{}, fmt.Errorf("verifying files: %w", context.Cause(ctx))
	}
	out.Findings = slices.DeleteFunc(found, func(f string) bool { return f == "" })
	return out, nil
}

// differs is a file that can be read and is not as it was written.
type differs string

// Error is the difference.
func (d differs) Error() string { return string(d) }

// verifyFile returns what is wrong with the file, of type differs unless it is
// missing or unreadable.
func verifyFile(ctx context.Context, vol Volume, it Item, o Options, mem []byte) error {
	size, err := vol.Size(it.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("missing")
	case err != nil:
		return fmt.Errorf("looking for it: %w", err)
	case size != it.Size:
		return differs(fmt.Sprintf("has %d bytes, want %d", size, it.Size))
	}
	f, err := vol.Open(it.Name, o.fileOptions(0))
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	defer f.Close()
	// Pages in the cache do not prove what is on the volume. The call is advice
	// only.
	_ = f.Evict()
	key := it.dataKey()
	for off := int64(0); off < it.Size && ctx.Err() == nil; off += verifyBlock {
		n := min(verifyBlock, it.Size-off)
		got, want := mem[:n], mem[verifyBlock:verifyBlock+n]
		if err := readFull(f, got, off); err != nil {
			return fmt.Errorf("reading %d bytes at %d: %w", n, off, err)
		}
		o.Data.FillAt(want, key, off)
		if !bytes.Equal(got, want) {
			at := 0
			for got[at] == want[at] {
				at++
			}
			return differs(fmt.Sprintf("first difference at byte %d: 0x%02x, want 0x%02x", off+int64(at), got[at],
				want[at]))
		}
	}
	return nil
}
