package workload

import (
	"fmt"
	"runtime"
	"slices"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// Requested ways to reach files, as in plans.
const (
	CacheDirect   = "direct"   // past the page cache
	CacheBuffered = "buffered" // through it, as it is
	CacheCold     = "cold"     // through it, evicted before reading
)

// Achieved ways, from the one that weakens a number most to the one that does
// least.
const (
	FoundUnknown  = "unknown"           // unknown, or a virtual machine hides the host's cache
	FoundResident = "buffered-resident" // reads went through the cache and found pages of the file in it
	FoundBuffered = "buffered"          // writes went through the cache
	FoundCold     = "buffered-cold"     // reads went through the cache, which had no page of the file
	FoundDirect   = "direct"            // transfers went past the page cache
)

var foundByWeakness = []string{FoundUnknown, FoundResident, FoundBuffered, FoundCold, FoundDirect}

// residentLimit is the share of a file in the page cache above which a read is
// not cold: looking at the file may leave a few pages.
const residentLimit = 0.05

// achieved counts how files were transferred. The weakest of them counts for
// all.
type achieved struct {
	files map[string]int // by Found constant
	mode  hostio.SyncMode
}

// addCache counts one file.
func (a *achieved) addCache(found string) {
	if a.files == nil {
		a.files = map[string]int{}
	}
	a.files[found]++
}

// cache is the weakest mode of all files.
func (a *achieved) cache() string {
	i := slices.IndexFunc(foundByWeakness, func(found string) bool { return a.files[found] > 0 })
	return foundByWeakness[max(i, 0)]
}

// syncByWeakness orders flushes by how far they make data durable.
var syncByWeakness = []hostio.SyncMode{hostio.SyncNone, hostio.SyncFsync, hostio.SyncFull}

// addSync counts the flush of one file.
func (a *achieved) addSync(mode hostio.SyncMode) {
	if mode == "" {
		mode = hostio.SyncNone
	}
	if a.mode == "" || slices.Index(syncByWeakness, mode) < slices.Index(syncByWeakness, a.mode) {
		a.mode = mode
	}
}

// sync is the weakest flush of all files; without a file it is unknown, "".
func (a *achieved) sync(requested hostio.SyncMode) *result.Achieved {
	mode := a.mode
	if requested == hostio.SyncNone {
		mode = hostio.SyncNone
	}
	return &result.Achieved{Asked: string(requested), Achieved: string(mode)}
}

// cacheBefore is the state of the cache that the first read of an open file
// will find. Direct transfers are believed only if no page is resident: despite
// F_NOCACHE, macOS serves resident pages from the cache.
func cacheBefore(f File) string {
	direct := f.Cache() == CacheDirect
	share, err := f.Resident()
	switch {
	case err != nil && !direct:
		return FoundUnknown
	case err == nil && share > residentLimit:
		return FoundResident
	case direct:
		return FoundDirect
	}
	return FoundCold
}

// cacheAfter corrects [cacheBefore] once the file is read: what the kernel
// refused to read directly came through the page cache, which had no page of
// it.
func cacheAfter(before string, f File) string {
	if before != FoundDirect || f.Cache() == CacheDirect {
		return before
	}
	if _, err := f.Resident(); err != nil {
		return FoundUnknown
	}
	return FoundCold
}

// recordCache records the requested and the achieved cache mode, with warnings
// about their difference.
func (s *step) recordCache() {
	found := s.achieved.cache()
	hidden := s.o.Virtual && (found == FoundDirect || found == FoundCold)
	if hidden {
		s.out.warn("cache", "the guest saw %q, but a virtual machine's host may cache the same blocks", found)
		found = FoundUnknown
	}
	n := 0
	if onMac && !s.l.dataless && s.o.Cache == CacheDirect && found == FoundDirect {
		n = nocacheMisses(s.items, s.l.call)
	}
	if n > 0 {
		s.out.warn("cache", "%d of %d files are %s in calls below 16 KiB or at offsets that are not a multiple of "+
			"16 KiB: macOS may send these through the cache", n, len(s.items),
			map[bool]string{true: "written", false: "read"}[s.write])
	}
	if n > 0 && s.write {
		hidden, found = true, FoundUnknown
	}
	s.out.Cache = &result.Achieved{Asked: s.o.Cache, Achieved: found}
	want := map[string]string{CacheDirect: FoundDirect, CacheCold: FoundCold}[s.o.Cache]
	if hidden || s.write && s.o.Cache == CacheCold {
		return
	}
	files := 0
	for _, n := range s.achieved.files {
		files += n
	}
	if want != "" && files > 0 && found != want {
		s.out.warn("cache", "%s", describeMissed(s.o.Cache, found, s.achieved.files[found], files))
	}
}

// describeMissed is the warning about files that were not transferred as
// requested.
func describeMissed(requested, found string, missed, of int) string {
	if requested == CacheDirect {
		requested = "uncached"
	}
	if found == FoundUnknown {
		return requested + " I/O requested; whether it took effect is unknown"
	}
	which := fmt.Sprintf("%d of %d files were", missed, of)
	if missed == of {
		which = fmt.Sprintf("all %d files were", of)
	}
	if found == FoundResident {
		found = "still in the page cache"
	}
	return fmt.Sprintf("%s I/O requested, but %s %s", requested, which, found)
}

var onMac = runtime.GOOS == "darwin" // tests set it

// nocacheUnit is the smallest write in bytes that macOS sends past the cache of
// a file with F_NOCACHE (MIN_DIRECT_WRITE_SIZE in bsd/vfs/vfs_cluster.c of
// xnu), and a page of Apple silicon, where such a transfer has to start.
const nocacheUnit = 16 << 10

// nocacheMisses counts the files with calls, all but a last shorter one, that
// macOS may send through the cache despite F_NOCACHE.
func nocacheMisses(items []Item, call int64) (n int) {
	for _, it := range items {
		if it.Size > 0 && min(it.Size, call) < nocacheUnit || it.Size > call && call%nocacheUnit != 0 {
			n++
		}
	}
	return n
}
