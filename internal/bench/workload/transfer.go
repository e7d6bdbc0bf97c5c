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
	s := &step{vol: vol, o: o, write: true, items: items, l: layoutWrite(items, o)}
	if isDataless(vol) {
		s.l = layoutDataless(items, o)
	}
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
	s := &step{vol: vol, o: o, items: items, l: layoutRead(items, o)}
	if isDataless(vol) {
		s.l = layoutDataless(items, o)
	}
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

// openJob opens the file of a job before the clock starts: a new file with its
// data in mem, or an existing one that is evicted.
func (s *step) openJob(j *job, mem []byte) (err error) {
	options := s.o.fileOptions(j.order % s.o.Workers)
	if s.write {
		j.file, err = s.vol.Create(j.item.Name, j.item.Size, options)
	} else {
		j.file, err = s.vol.Open(j.item.Name, options)
	}
	if err != nil {
		action := map[bool]string{true: "creating", false: "opening"}[s.write]
		return fmt.Errorf("%s file %q: %s: %w", s.doing(), j.item.Name, action, err)
	}
	if !s.write {
		if err := s.evict(j); err != nil {
			return err
		}
	}
	switch {
	case s.l.dataless:
		j.skipper = j.file.(Skipper)
	case !s.write:
	case j.item.Size > s.l.whole:
		j.ring = newRing(s.o.Data, j.item, mem, s.l.block)
	default:
		j.buf = mem[:j.item.Size]
		s.o.Data.fillParallel(j.buf, KeyOf(j.item.Name))
	}
	return nil
}

// evict drops the pages of a file that is read, as far as requested, and looks
// up how many are left.
func (s *step) evict(j *job) error {
	if s.o.Cache != CacheBuffered {
		err := j.file.Evict()
		if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, ErrUnknown) {
			j.file.Close()
			return fmt.Errorf("reading file %q: evicting: %w", j.item.Name, err)
		}
	}
	j.found = cacheBefore(j.file)
	return nil
}

// makeFolders makes the missing folders of the items.
func makeFolders(vol Volume, items []Item) error {
	have := map[string]bool{".": true, "/": true}
	for _, it := range items {
		if err := makeFolder(vol, path.Dir(it.Name), have); err != nil {
			return err
		}
	}
	return nil
}

// makeFolder makes a folder and those above it, and adds them to have. It lists
// before it makes one: a failing call would be an operation on the image, too.
func makeFolder(vol Volume, dir string, have map[string]bool) error {
	if have[dir] {
		return nil
	}
	parent, name := path.Split(dir)
	parent = path.Clean(parent)
	if err := makeFolder(vol, parent, have); err != nil {
		return err
	}
	list, err := vol.List(parent)
	if err != nil {
		return fmt.Errorf("listing folder %q: %w", parent, err)
	}
	if !slices.ContainsFunc(list, func(e Entry) bool { return e.Dir && e.Name == name }) {
		if err := vol.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making folder %q: %w", dir, err)
		}
	}
	have[dir] = true
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
	defer o.Gate.Leave()
	o = o.withDefaults()
	sizes, err := fileSizes(vol, items)
	if err != nil {
		return Outcome{}, err
	}
	// Verification is not timed, so it uses all processors.
	workers := min(max(o.Workers, runtime.GOMAXPROCS(0)), max(len(items), 1))
	mem, err := hostio.AlignedBuffer(2 * verifyBlock * workers)
	if err != nil {
		return Outcome{}, fmt.Errorf("verifying files: %w", err)
	}
	defer mem.Free()
	found := make([]string, len(items)) // by item, "" if it is right
	var next, right atomic.Int64
	report := verifyProgress(items, o.Progress)
	var wg sync.WaitGroup
	for id := range workers {
		wg.Go(func() {
			part := mem.Bytes()[id*2*verifyBlock:][: 2*verifyBlock : 2*verifyBlock]
			for i := next.Add(1) - 1; i < int64(len(items)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				size, ok := sizes[items[i].Name]
				if found[i] = verifyFile(ctx, vol, items[i], size, ok, o, part); found[i] == "" {
					right.Add(items[i].Size)
				}
				report(items[i].Size)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Outcome{}, fmt.Errorf("verifying files: %w", context.Cause(ctx))
	}
	out := Outcome{Bytes: right.Load()}
	out.Findings = slices.DeleteFunc(found, func(f string) bool { return f == "" })
	return out, nil
}

// verifyProgress returns a function that reports each compared file, one at a
// time.
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

// fileSizes lists the folders of the items: the size of each file in them by
// name.
func fileSizes(vol Volume, items []Item) (map[string]int64, error) {
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

// verifyFile is one line about what is wrong with the file, or "".
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
	// Pages in the cache do not prove what is on the volume. The call is advice
	// only.
	_ = f.Evict()
	key := KeyOf(it.Name)
	for off := int64(0); off < it.Size && ctx.Err() == nil; off += verifyBlock {
		n := min(verifyBlock, it.Size-off)
		got, want := mem[:n], mem[verifyBlock:verifyBlock+n]
		k, err := f.ReadAt(got, off)
		if err = checkRead(k, n, err); err != nil {
			return fmt.Sprintf("file %q: reading %d bytes at %d: %v", it.Name, n, off, err)
		}
		o.Data.FillAt(want, key, off)
		if !bytes.Equal(got, want) {
			at := 0
			for got[at] == want[at] {
				at++
			}
			return fmt.Sprintf("file %q: first difference at byte %d: 0x%02x, want 0x%02x",
				it.Name, off+int64(at), got[at], want[at])
		}
	}
	return ""
}
