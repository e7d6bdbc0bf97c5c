package workload

import (
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

// syncByWeakness orders flushes by how far they make data durable.
var syncByWeakness = []hostio.SyncMode{hostio.SyncNone, hostio.SyncFsync, hostio.SyncFull}

// weaker is the flush that makes data less durable; "" is none so far.
func weaker(a, b hostio.SyncMode) hostio.SyncMode {
	if a == "" || slices.Index(syncByWeakness, b) < slices.Index(syncByWeakness, a) {
		return b
	}
	return a
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

// recordCache records the requested and the achieved cache mode, with a warning
// about their difference.
func (s *step) recordCache() {
	// The weakest of the files counts for all.
	weakest := slices.IndexFunc(foundByWeakness, func(found string) bool { return s.found[found] > 0 })
	found, requested, misses, total := foundByWeakness[max(weakest, 0)], s.o.Cache, 0, 0
	for _, n := range s.found {
		total += n
	}
	if onMac && !s.l.dataless && requested == CacheDirect && found == FoundDirect {
		misses = nocacheMisses(s.items, s.l.call)
	}
	want := map[string]string{CacheDirect: FoundDirect, CacheCold: FoundCold}[requested]
	if requested == CacheDirect {
		requested = "uncached"
	}
	switch {
	case s.o.Virtual && (found == FoundDirect || found == FoundCold):
		s.out.warn("cache", "the guest saw %q, but a virtual machine's host may cache the same blocks", found)
		found = FoundUnknown
	case misses > 0:
		s.out.warn("cache", "%s %d of %d files in calls below 16 KiB or at offsets that are not a multiple of 16 KiB: "+
			"macOS may send these through the cache", s.doing, misses, len(s.items))
		if s.write {
			found = FoundUnknown
		}
	case want == "" || found == want || total == 0 || s.write && requested == CacheCold:
	case found == FoundUnknown:
		s.out.warn("cache", "%s I/O requested; whether it took effect is unknown", requested)
	default:
		s.out.warn("cache", "%s I/O requested, but %d of %d files were %s", requested, s.found[found], total, found)
	}
	s.out.Cache = &result.Achieved{Asked: s.o.Cache, Achieved: found}
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
