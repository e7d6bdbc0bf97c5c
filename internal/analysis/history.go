package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/wording"
)

// HistoryRun is a run for [NewHistory]; of the result everything but the steps
// of cases and the claims is read, see [result.ReadSummary].
type HistoryRun struct {
	Result *result.Result
	// Of its report, for links; "" for none
	Path string
	// By which people know it; "" is its id
	Name string
	// Marked as the baseline of its plan
	Baseline bool
}

func (r HistoryRun) name() string { return cmp.Or(r.Name, r.Result.Run) }

// History is the headline quantities of many runs in the order of time. Lists
// are never nil.
type History struct {
	// The one with the newest run first
	Series []HistorySeries
	// Runs that are in no series, with the reason
	LeftOut []string
}

// HistorySeries are the runs of one plan as executed (digest and scale), on one
// machine and disk, by one engine whatever its version, with images of one file
// system: what may be drawn in one line.
type HistorySeries struct {
	Plan, Title, Digest string
	// Deviations that change how much was measured; never empty
	Scale []string
	// The same, empty where nothing was scaled
	Departed        []string
	Seed            uint64
	Rounds          int
	Machine, Engine string
	// In the images, as made; "" if none was measured
	Filesystem string
	// The oldest first
	Runs []HistoryPoint
	// In the order of their first runs
	Versions []HistoryVersion
	// In the order of the newest run; those that it lacks, after
	Rows []HistoryRow
	// One for every version but the first
	Changes []HistoryChange
	// Newest is the newest run that has ended and has a number, else the newest
	// that has one, as it was given; nil without one.
	Newest *result.Result
}

// HistoryVersion is what may change between runs of a series: the system with
// its build, the program, and the engine with its version.
type HistoryVersion struct {
	System, Tool, Engine string
	// Where the system has no build that it goes with
	Kernel string
	First  time.Time
	Runs   int
}

// HistoryPoint is one run of a series.
type HistoryPoint struct {
	Run, Name, Path string
	Started         time.Time
	// Of the run, see [result.Result]
	Status   string
	Baseline bool
	// Which of the series' versions
	Version          int
	Sessions, Rounds int
	// Of the run as a whole
	Warnings []result.Warning
	Cases    map[string]result.Case
}

// HistoryRow is one quantity of one case in one phase.
type HistoryRow struct {
	Case, Phase string
	Cycle       int
	Op, Unit    string
	// One a run; nil where it was not measured
	Values []*HistoryValue
}

// HistoryValue is the headline estimate of one run, as its report has it.
type HistoryValue struct {
	Estimate string
	Value    float64
	CI       *result.CI
	Warnings []result.Warning
}

// HistoryChange compares one version of a series with the one before.
type HistoryChange struct {
	// Versions
	From, To int
	// Nil without one
	Comparison *Comparison
	// Why it is nil
	Why string
	// How many runs of each were compared
	Used [2]int
	// How many runs of each have ended
	Ended [2]int
}

// The bounds of a history that has many runs; what exceeds them is left out
// with a reason.
const (
	// Of each version, those next to the change
	changeRuns = 8
	// Of each series, the newest
	changesMost = 6
	// Of all series
	changeReads = 160
)

// NewHistory sorts runs into series. Its numbers are the headline estimates of
// the runs' own reports; whether a version differs from the one before is
// decided by [Compare], over at most eight runs of each, those next to the
// change in time, chosen before any number is looked at. read gives a run in
// full for that; it is called from two goroutines at a time.
//
// Runs of other digests, scales, machines, disks, engines or file systems are
// never joined. Pooled results are left out, as their runs are in the history;
// so is a run that is given twice, and one in which no session started. A run
// that has not ended is in its series and in no comparison.
func NewHistory(runs []HistoryRun, read func(HistoryRun) (*result.Result, error)) *History {
	h := &historyMaker{out: &History{Series: []HistorySeries{}, LeftOut: []string{}}, read: read, reads: changeReads}
	seen := map[string]bool{}
	for _, r := range runs {
		why := leaveOut(r.Result, seen)
		if why == "" && startTime(r.Result).IsZero() {
			why = wording.Text("left-out.not-started")
		}
		if why != "" {
			h.out.LeftOut = append(h.out.LeftOut, wording.Text("of-case", r.name(), why))
			continue
		}
		seen[r.Result.Run] = true
		h.kept = append(h.kept, r)
	}
	slices.SortStableFunc(h.kept, func(a, b HistoryRun) int {
		return cmp.Or(startTime(a.Result).Compare(startTime(b.Result)), cmp.Compare(a.Result.Run, b.Result.Run))
	})
	h.splitSeries()
	for _, list := range h.series {
		h.out.Series = append(h.out.Series, h.makeSeries(list))
	}
	return h.out
}

type historyMaker struct {
	out    *History
	kept   []HistoryRun
	series [][]HistoryRun
	read   func(HistoryRun) (*result.Result, error)
	// How many more runs may be read
	reads int
}

// splitSeries makes the series, the one with the newest run first.
func (h *historyMaker) splitSeries() {
	var keys []string
	// Of each series, the file system in the images of a case
	var made []map[string]string
	for _, r := range h.kept {
		key, own := seriesKey(r.Result), filesystemsOf(r.Result)
		i := 0
		for i < len(keys) && (keys[i] != key || !isAgreeing(made[i], own)) {
			i++
		}
		if i == len(keys) {
			keys, made, h.series = append(keys, key), append(made, map[string]string{}), append(h.series, nil)
		}
		maps.Copy(made[i], own)
		h.series[i] = append(h.series[i], r)
	}
	newest := func(list []HistoryRun) time.Time { return startTime(list[len(list)-1].Result) }
	slices.SortStableFunc(h.series, func(a, b []HistoryRun) int { return newest(b).Compare(newest(a)) })
}

// seriesKey is the same for runs that measured the same with the same.
func seriesKey(r *result.Result) string {
	parts := []string{r.Plan.Name, r.Plan.Digest, machineText(r)}
	parts = append(append(parts, scaleFacts(r)...), diskFacts(r)...)
	for _, e := range enginesOf(r) {
		parts = appendUnique(parts, e.Name+"\x01"+e.Vendor+"\x01"+engineKind(e.Title))
	}
	return strings.Join(parts, "\x00")
}

// filesystemsOf are the file systems in the images that were measured, by case.
// Where a plan has several to choose from, another user may get another one.
func filesystemsOf(r *result.Result) map[string]string {
	out := map[string]string{}
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Status == result.Done && c.Target.Kind != "directory" && c.Target.Filesystem != "" {
			out[c.ID] = c.Target.Filesystem
		}
	}
	return out
}

// isAgreeing reports whether no case has another file system in one than in the
// other.
func isAgreeing(a, b map[string]string) bool {
	for id, fs := range b {
		if other, there := a[id]; there && other != fs {
			return false
		}
	}
	return true
}

// versionOf is what may change from run to run of a series.
func versionOf(r *result.Result) HistoryVersion {
	v := HistoryVersion{System: factsText(r, "os"), Tool: factsText(r, "tool")}
	var kernels, engines []string
	for _, s := range r.Sessions {
		// Else the kernel goes with the build
		if s.Host.OSBuild == "" {
			kernels = appendUnique(kernels, s.Host.Kernel)
		}
		for _, e := range append([]result.Engine{s.Engine}, s.Engines...) {
			if e.Name == "directory" && len(s.Engines) > 0 {
				continue
			}
			title := cmp.Or(e.Title, e.Name)
			if e.Version != "" && e.Name != "directory" && !strings.Contains(title, e.Version) {
				title += " " + e.Version
			}
			engines = appendUnique(engines, title)
		}
	}
	v.Kernel = strings.Join(kernels, " + ")
	v.Engine = strings.Join(engines, " + ")
	return v
}

// makeSeries is one series of runs in the order of time.
func (h *historyMaker) makeSeries(list []HistoryRun) HistorySeries {
	last := list[len(list)-1].Result
	s := HistorySeries{Plan: last.Plan.Name, Title: cmp.Or(last.Plan.Title, last.Plan.Name), Digest: last.Plan.Digest,
		Scale: scaleFacts(last), Seed: last.Seed, Rounds: last.Rounds, Machine: machineText(last),
		Engine: factsText(last, "engine"),
		Runs:   []HistoryPoint{}, Versions: []HistoryVersion{}, Rows: []HistoryRow{}, Changes: []HistoryChange{}}
	if disk := strings.Join(diskFacts(last), " + "); disk != "" {
		s.Machine += ", " + disk
	}
	if !isUnscaled(s.Scale) {
		s.Departed = s.Scale
	}
	for _, r := range list {
		p := HistoryPoint{Run: r.Result.Run, Name: r.name(), Path: r.Path, Started: startTime(r.Result),
			Status: r.Result.Status, Baseline: r.Baseline, Sessions: len(r.Result.Sessions), Rounds: r.Result.Rounds,
			Warnings: r.Result.Warnings, Cases: map[string]result.Case{}}
		p.Version = s.version(versionOf(r.Result), p.Started)
		for _, c := range r.Result.Cases {
			p.Cases[c.ID] = c
		}
		s.Runs = append(s.Runs, p)
		if len(r.Result.Summaries) > 0 &&
			(s.Newest == nil || r.Result.Status != result.Unfinished || s.Newest.Status == result.Unfinished) {
			s.Newest = r.Result
		}
	}
	var made []string
	for _, r := range list {
		for _, fs := range filesystemsOf(r.Result) {
			made = appendUnique(made, fs)
		}
	}
	slices.Sort(made)
	s.Filesystem = strings.Join(made, " + ")
	s.fillRows(list)
	h.changes(&s, list)
	return s
}

// version is the number of a version, which is new if no run had it.
func (s *HistorySeries) version(v HistoryVersion, started time.Time) int {
	i := slices.IndexFunc(s.Versions, func(o HistoryVersion) bool {
		return o.System == v.System && o.Kernel == v.Kernel && o.Tool == v.Tool && o.Engine == v.Engine
	})
	if i < 0 {
		i, v.First = len(s.Versions), started
		s.Versions = append(s.Versions, v)
	}
	s.Versions[i].Runs++
	return i
}

// fillRows reads the rows, those of the newest run first.
func (s *HistorySeries) fillRows(list []HistoryRun) {
	type rowKey struct {
		id, phase string
		cycle     int
		op        string
	}
	at := map[rowKey]int{}
	for i, r := range slices.Backward(list) {
		for k := range r.Result.Summaries {
			sum := &r.Result.Summaries[k]
			e := slices.IndexFunc(sum.Estimates, func(e result.Estimate) bool { return e.Name == sum.Headline })
			if e < 0 {
				continue
			}
			key := rowKey{sum.Case, sum.Phase, sum.Cycle, sum.Op}
			n, there := at[key]
			if !there {
				n = len(s.Rows)
				at[key] = n
				s.Rows = append(s.Rows, HistoryRow{sum.Case, sum.Phase, sum.Cycle, sum.Op, sum.Estimates[e].Unit,
					make([]*HistoryValue, len(list))})
			}
			if s.Rows[n].Unit == sum.Estimates[e].Unit {
				s.Rows[n].Values[i] = &HistoryValue{sum.Headline, sum.Estimates[e].Value, sum.Estimates[e].CI,
					sum.Warnings}
			}
		}
	}
}

// changes compares every version with the one before, the newest first as long
// as there is room.
func (h *historyMaker) changes(s *HistorySeries, list []HistoryRun) {
	for to := 1; to < len(s.Versions); to++ {
		s.Changes = append(s.Changes, HistoryChange{From: to - 1, To: to})
	}
	ops := s.compared()
	for i := range slices.Backward(s.Changes) {
		c := &s.Changes[i]
		from, to := s.ended(c.From), s.ended(c.To)
		c.Ended = [2]int{len(from), len(to)}
		from, to = from[max(len(from)-changeRuns, 0):], to[:min(len(to), changeRuns)]
		c.Used = [2]int{len(from), len(to)}
		switch {
		case len(ops) == 0:
			c.Why = wording.Text("change.no-number")
		case len(from) == 0 || len(to) == 0:
			c.Why = wording.Text("change.no-run")
		case len(s.Changes)-i > changesMost || len(from)+len(to) > h.reads:
			c.Why = wording.Text("change.too-many")
		default:
			h.reads -= len(from) + len(to)
			c.Comparison, c.Why = h.compare(s, list, from, to, ops)
		}
		if c.Comparison == nil {
			c.Used = [2]int{}
		}
	}
}

// ended are the runs of a version that have ended.
func (s *HistorySeries) ended(version int) (out []int) {
	for i, p := range s.Runs {
		if p.Version == version && p.Status != result.Unfinished {
			out = append(out, i)
		}
	}
	return out
}

// compared are the quantities that versions are compared in: rates and the
// space on disk, or all that were measured.
func (s *HistorySeries) compared() (ops []plan.Quantity) {
	var all []plan.Quantity
	for _, row := range s.Rows {
		op := plan.Quantity(row.Op)
		if _, known := op.Info(); !known || slices.Contains(all, op) {
			continue
		}
		if all = append(all, op); isRate(op) || op == "allocated" {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		return all
	}
	return ops
}

// compare reads the runs and compares them by version.
func (h *historyMaker) compare(
	s *HistorySeries, list []HistoryRun, from, to []int, ops []plan.Quantity,
) (*Comparison, string) {
	used := slices.Concat(from, to)
	o := CompareOptions{Ops: ops}
	for _, i := range used {
		o.Sides = append(o.Sides, s.VersionName(s.Runs[i].Version, s.Runs[from[0]].Version, s.Runs[to[0]].Version))
	}
	runs, errs := make([]*result.Result, len(used)), make([]error, len(used))
	var wg sync.WaitGroup
	// Large files, and two processors are nearly everywhere
	for half := range 2 {
		wg.Go(func() {
			for k := half; k < len(used); k += 2 {
				runs[k], errs[k] = h.read(list[used[k]])
			}
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			return nil, wording.Text("change.unread", list[used[k]].name(), err)
		}
	}
	c, err := Compare(runs, o)
	if err != nil {
		return nil, err.Error()
	}
	return c, ""
}

// versionParts are what a version is named by.
var versionParts = []func(HistoryVersion) string{
	func(v HistoryVersion) string { return v.System },
	func(v HistoryVersion) string {
		if v.Kernel == "" {
			return ""
		}
		return wording.Text("fact.kernel", v.Kernel)
	},
	func(v HistoryVersion) string { return v.Tool },
	func(v HistoryVersion) string { return v.Engine },
}

// VersionName names a version by those of its parts in which the given versions
// differ; all of it, if they do not.
func (s *HistorySeries) VersionName(version int, among ...int) string {
	v := s.Versions[version]
	differ := func(of func(HistoryVersion) string) bool {
		return slices.ContainsFunc(among, func(i int) bool { return of(s.Versions[i]) != of(v) })
	}
	var all, parts []string
	for _, of := range versionParts {
		all = appendUnique(all, of(v))
		isApples := of(v) == v.Engine && differ(versionParts[0]) && strings.Contains(v.Engine, "(Apple")
		// Apple's tools come with the system
		if differ(of) && !isApples {
			parts = appendUnique(parts, of(v))
		}
	}
	if len(parts) == 0 {
		parts = all
	}
	return strings.Join(parts, ", ")
}
