package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Write writes the items in their order and times each: every write call of
// the file plus the flush that Options.Sync names. Missing folders are made
// before. The first file that fails ends the step with an error that names it;
// what was complete before is in the outcome.
func Write(ctx context.Context, vol Volume, items []Item, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o, err := o.settle()
	if err != nil {
		return Outcome{}, err
	}
	if o.Data == nil {
		return Outcome{}, errors.New("preparing file I/O: no data to write")
	}
	if err := makeFolders(vol, items); err != nil {
		return Outcome{}, err
	}
	s := &step{vol: vol, o: o, doing: "writing", items: items, l: layoutWrite(items, o), work: (*span).write}
	s.open = s.create
	if isDataless(vol) {
		s.l = layoutDataless(items, o)
	}
	out, err := s.run(ctx)
	if err != nil {
		return out, err
	}
	if err := vol.Sync(); err != nil {
		return out, fmt.Errorf("flushing the volume: %w", err)
	}
	return out, nil
}

// create makes an empty file and its data.
func (s *step) create(j *job, mem []byte) error {
	f, err := s.vol.Create(j.item.Name, j.item.Size, s.o.fileOptions(j.order%s.o.Workers))
	if err != nil {
		return fmt.Errorf("writing file %q: creating: %w", j.item.Name, err)
	}
	j.file = f
	if s.l.dataless {
		return s.prepareSkipper(j)
	}
	if j.item.Size > s.l.whole {
		j.ring = newRing(s.o.Data, j.item, mem, s.l.block)
		return nil
	}
	j.buf = mem[:j.item.Size]
	s.o.Data.fillParallel(j.buf, KeyOf(j.item.Name))
	return nil
}

// prepareSkipper readies a file that holds no bytes.
func (s *step) prepareSkipper(j *job) error {
	p, ok := j.file.(Skipper)
	if !ok {
		j.file.Close()
		return fmt.Errorf("%s file %q: the volume holds no bytes, and its file is not a Skipper", s.doing, j.item.Name)
	}
	j.skipper = p
	return nil
}

// makeFolders makes the folders that the items need and that are not there.
func makeFolders(vol Volume, items []Item) error {
	have := map[string]bool{".": true}
	for _, it := range items {
		dir := path.Dir(it.Name)
		if have[dir] {
			continue
		}
		part := ""
		for name := range strings.SplitSeq(dir, "/") {
			parent := part
			if part = path.Join(part, name); have[part] {
				continue
			}
			if err := makeFolder(vol, parent, name); err != nil {
				return err
			}
			have[part] = true
		}
	}
	return nil
}

func makeFolder(vol Volume, parent, name string) error {
	list, err := vol.List(cleanDir(parent))
	if err != nil {
		return fmt.Errorf("listing folder %q: %w", parent, err)
	}
	if slices.ContainsFunc(list, func(e Entry) bool { return e.Dir && e.Name == name }) {
		return nil
	}
	full := path.Join(parent, name)
	if err := vol.Mkdir(full); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making folder %q: %w", full, err)
	}
	return nil
}

// cleanDir names the root as volumes do: ".".
func cleanDir(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}
