package workload

import (
	"fmt"
	"runtime"
	"time"

	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// progress tells the caller how far the step is. No clock of the step runs.
func (s *step) progress() {
	if s.o.Progress != nil {
		s.o.Progress(Progress{
			Files: len(s.out.Samples), OfFiles: len(s.items),
			Bytes: s.out.Bytes, OfBytes: Total(s.items), Timed: time.Duration(s.sum.timed),
		})
	}
}

// conclude puts together what the step has to say of itself.
func (s *step) conclude() {
	m := s.sum
	if m.waves > 0 {
		s.out.Span = &result.Span{
			GateNS: m.gate, FirstDoneNS: m.gate + m.first, LastDoneNS: m.gate + m.timed, Bytes: s.out.Bytes,
			BusyNS: m.busy, IdleNS: max(int64(s.o.Workers)*m.timed-m.busy, 0), Waves: m.waves, PausedNS: m.paused,
		}
	}
	s.cacheFound()
	if s.doing == "writing" {
		s.out.Sync = &result.Achieved{Asked: string(s.o.Sync), Achieved: string(s.found.sync(s.o.Sync))}
	}
	s.warnLayout()
	if text := qosNote(s.o.QoS); text != "" {
		s.out.warn("qos", "%s", text)
	}
}

func (s *step) warnLayout() {
	m := s.sum
	if s.l.rings > 0 {
		share := 100 * float64(m.ringWait) / float64(max(m.ringTime, 1))
		s.out.warn("data-ring", "%d of %d files were too large for a quarter of the memory: their data was made beside the running clock"+
			" and written in calls of %d bytes; %.1f%% of their time was spent waiting for it", s.l.rings, len(s.items), s.l.block, share)
	}
	if s.l.tight {
		s.out.warn("block", "a quarter of the memory allows calls of at most %d bytes", s.l.call)
	}
	if s.o.Workers > 1 && m.waves > 1 && m.timed > 0 {
		if tail := 100 * float64(m.timed-m.first) / float64(m.timed); tail >= 10 {
			s.out.warn("waves", "files were timed in %d waves, as memory and open files allow; for %.0f%% of the time some worker had nothing left to do",
				m.waves, tail)
		}
	}
	if s.o.Gate != nil && s.doing == "writing" && m.waves > 1 {
		s.out.warn("parallel-data", "data did not fit into memory at once: that of later files was made while other steps were timed")
	}
}

// cacheFound says what was asked of the cache and what was found.
func (s *step) cacheFound() {
	found := s.found.cache()
	hidden := s.o.Virtual && (found == FoundDirect || found == FoundCold)
	if hidden {
		s.out.warn("cache", "the guest saw %q, but a virtual machine's host may cache the same blocks", found)
		found = FoundUnknown
	}
	if n := nocacheMisses(s.items, s.l.call); onMac && !s.l.hollow && s.o.Cache == CacheDirect && found == FoundDirect && n > 0 {
		s.out.warn("cache", "%d of %d files are %s in calls below 16 KiB or at offsets that are no multiple of 16 KiB: macOS may send these through the cache",
			n, len(s.items), map[bool]string{true: "written", false: "read"}[s.doing == "writing"])
		if s.doing == "writing" {
			hidden, found = true, FoundUnknown
		}
	}
	s.out.Cache = &result.Achieved{Asked: s.o.Cache, Achieved: found}
	if hidden {
		return
	}
	want := map[string]string{CacheDirect: FoundDirect, CacheCold: FoundCold}[s.o.Cache]
	if s.doing == "writing" && s.o.Cache == CacheCold {
		want = ""
	}
	if n := s.found.files(); want != "" && n > 0 && found != want {
		s.out.warn("cache", "%s", cacheMissed(s.o.Cache, found, s.found.seen[found], n))
	}
}

var onMac = runtime.GOOS == "darwin" // tests set it

// nocacheUnit is the least that macOS writes past the cache of a file with F_NOCACHE (MIN_DIRECT_WRITE_SIZE in
// bsd/vfs/vfs_cluster.c of xnu), and a page of Apple silicon, at which such a transfer has to begin.
const nocacheUnit = 16 << 10

// nocacheMisses counts the files whose calls, all but a last shorter one, macOS may send through the cache despite F_NOCACHE.
func nocacheMisses(items []Item, call int64) (n int) {
	for _, it := range items {
		if it.Size > 0 && min(it.Size, call) < nocacheUnit || it.Size > call && call%nocacheUnit != 0 {
			n++
		}
	}
	return n
}

// cacheMissed says how files were found that should have been read or written in another way.
func cacheMissed(asked, found string, missed, of int) string {
	if asked == CacheDirect {
		asked = "uncached"
	}
	if found == FoundUnknown {
		return asked + " I/O requested; whether it took effect is unknown"
	}
	which := fmt.Sprintf("%d of %d files were", missed, of)
	if missed == of {
		which = fmt.Sprintf("all %d files were", of)
	}
	if found == FoundResident {
		found = "still in the page cache"
	}
	return fmt.Sprintf("%s I/O requested, but %s %s", asked, which, found)
}

// tally counts what was found of the files. What is said of all is the worst.
type tally struct {
	seen map[string]int
	weak hostio.SyncMode
}

func (t *tally) saw(what string) {
	if t.seen == nil {
		t.seen = map[string]int{}
	}
	t.seen[what]++
}

func (t *tally) files() (n int) {
	for _, c := range t.seen {
		n += c
	}
	return n
}

// cache gives what weakens the number most of what was seen.
func (t *tally) cache() string {
	for _, what := range []string{FoundUnknown, FoundResident, FoundBuffered, FoundCold, FoundDirect} {
		if t.seen[what] > 0 {
			return what
		}
	}
	return FoundUnknown
}

func (t *tally) flushed(mode hostio.SyncMode) {
	if mode == "" {
		mode = hostio.SyncNone
	}
	if t.weak == "" || depth(mode) < depth(t.weak) {
		t.weak = mode
	}
}

// sync is the weakest flush of all files; without a file it is unknown, "".
func (t *tally) sync(asked hostio.SyncMode) hostio.SyncMode {
	if asked == hostio.SyncNone {
		return hostio.SyncNone
	}
	return t.weak
}

func depth(m hostio.SyncMode) int {
	switch m {
	case hostio.SyncFull:
		return 2
	case hostio.SyncFsync:
		return 1
	}
	return 0
}
