package workload

import (
	"context"
	"errors"
	"fmt"
)

// residentLimit is the share of a file in the page cache above which a read of
// the read is not cold: fewer pages may be left by a look at the file.
const residentLimit = 0.05

// Read reads the items whole, in their order, and times each: every read call.
// Before its clock starts a file is opened, evicted if Options.Cache is
// direct or cold, and looked up in the page cache. What is read is neither hashed
// nor compared: that is [Verify].
func Read(ctx context.Context, vol Volume, items []Item, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o, err := o.settle()
	if err != nil {
		return Outcome{}, err
	}
	s := &step{vol: vol, o: o, doing: "reading", items: items, l: layoutRead(items, o), work: (*span).read}
	s.open = s.reopen
	if isDataless(vol) {
		s.l = layoutDataless(items, o)
	}
	return s.run(ctx)
}

// reopen opens a file, drops its pages and looks what is left of them.
func (s *step) reopen(j *job, _ []byte) error {
	f, err := s.vol.Open(j.item.Name, s.o.fileOptions(j.order%s.o.Workers))
	if err != nil {
		return fmt.Errorf("reading file %q: opening: %w", j.item.Name, err)
	}
	if s.o.Cache != CacheBuffered {
		if err := f.Evict(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, ErrUnknown) {
			f.Close()
			return fmt.Errorf("reading file %q: evicting: %w", j.item.Name, err)
		}
	}
	j.file = f
	j.found = cacheOf(f)
	if s.l.dataless {
		return s.prepareSkipper(j)
	}
	return nil
}

// cacheAfter is what was found of the cache once the file is read: what the
// kernel refused to read directly came through the page cache, which held
// no page of it.
func cacheAfter(found string, f File) string {
	if found != FoundDirect || f.Cache() == CacheDirect {
		return found
	}
	if _, err := f.Resident(); err != nil {
		return FoundUnknown
	}
	return FoundCold
}

// cacheOf is what the first read of an open file is going to meet. Direct
// transfers are believed only if no page is resident: F_NOCACHE serves those
// that are.
func cacheOf(f File) string {
	direct := f.Cache() == CacheDirect
	share, err := f.Resident()
	switch {
	case err != nil && direct:
		return FoundDirect
	case err != nil:
		return FoundUnknown
	case share > residentLimit:
		return FoundResident
	case direct:
		return FoundDirect
	}
	return FoundCold
}
