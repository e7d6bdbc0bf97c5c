package analysis

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
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
	// Of all series, the newest changes of the first ones
	changeReads = 160
)

// NewHistory sorts runs into series. Its numbers are the headline estimates of
// the runs' own reports; whether a version differs from the one before is
// decided by [Compare], over at most eight runs of each, those next to the
// change in time, chosen before any number is looked at. read gives a run in
// full for that.
//
// Runs of other digests, scales, machines, disks, engines or file systems are
// never joined. Pooled results are left out, as their runs are in the history;
// so is a run that is given twice, and one in which no session started. A run
// that has not ended is in its series and in no comparison.
func NewHistory(runs []HistoryRun, read func(HistoryRun) (*result.Result, error)) *History {
	h := &historyMaker{read: read, reads: changeReads}
	out := &History{Series: []HistorySeries{}, LeftOut: []string{}}
	seen := map[string]bool{}
	var kept []HistoryRun
	for _, r := range runs {
		why := leaveOut(r.Result, seen)
		if why == "" && startTime(r.Result).IsZero() {
			why = wording.Text("left-out.not-started")
		}
		if why != "" {
			out.LeftOut = append(out.LeftOut, wording.Text("of-case", r.name(), why))
			continue
		}
		seen[r.Result.Run] = true
		kept = append(kept, r)
	}
	slices.SortStableFunc(kept, func(a, b HistoryRun) int {
		return cmp.Or(startTime(a.Result).Compare(startTime(b.Result)), cmp.Compare(a.Result.Run, b.Result.Run))
	})
	for _, list := range splitSeries(kept) {
		out.Series = append(out.Series, h.makeSeries(list))
	}
	return out
}

// historyMaker compares the versions of series.
type historyMaker struct {
	read func(HistoryRun) (*result.Result, error)
	// How many more runs may be read
	reads int
}

// splitSeries makes series of runs in the order of time, the one with the
// newest run first.
func splitSeries(runs []HistoryRun) (series [][]HistoryRun) {
	var keys []string
	// Of each series, the file system in the images of a case
	var made []map[string]string
	for _, r := range runs {
		key, own := seriesKey(r.Result), filesystemsOf(r.Result)
		i := 0
		for i < len(keys) && (keys[i] != key || !isAgreeing(made[i], own)) {
			i++
		}
		if i == len(keys) {
			keys, made, series = append(keys, key), append(made, map[string]string{}), append(series, nil)
		}
		maps.Copy(made[i], own)
		series[i] = append(series[i], r)
	}
	newest := func(list []HistoryRun) time.Time { return startTime(list[len(list)-1].Result) }
	slices.SortStableFunc(series, func(a, b []HistoryRun) int { return newest(b).Compare(newest(a)) })
	return series
}

// seriesKey is the same for runs that measured the same with the same.
func seriesKey(r *result.Result) string {
	parts := []string{r.Plan.Name, r.Plan.Digest, machineText(r)}
	parts = append(append(parts, scaleFacts(r)...), diskFacts(r)...)
	parts = append(parts, texts(enginesOf(r), func(e result.Engine) string {
		return e.Name + "\x01" + e.Vendor + "\x01" + engineKind(e.Title)
	})...)
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
	kernels := texts(r.Sessions, func(s result.Session) string {
		if s.Host.OSBuild != "" {
			// The kernel goes with the build
			return ""
		}
		return s.Host.Kernel
	})
	engines := texts(enginesOf(r), func(e result.Engine) string {
		title := cmp.Or(e.Title, e.Name)
		switch {
		case e.Name == "directory":
			return ""
		case e.Version != "" && !strings.Contains(title, e.Version):
			return title + " " + e.Version
		}
		return title
	})
	return HistoryVersion{System: factsText(r, "os"), Tool: factsText(r, "tool"),
		Engine: strings.Join(engines, " + "), Kernel: strings.Join(kernels, " + ")}
}

// makeSeries is one series of runs in the order of time.
func (h *historyMaker) makeSeries(list []HistoryRun) HistorySeries {
	last := list[len(list)-1].Result
	s := HistorySeries{Plan: last.Plan.Name, Title: cmp.Or(last.Plan.Title, last.Plan.Name), Digest: last.Plan.Digest,
		Scale: scaleFacts(last), Seed: last.Seed, Rounds: last.Rounds, Engine: factsText(last, "engine"),
		Machine: wording.NonEmpty(machineText(last), strings.Join(diskFacts(last), " + ")),
		Runs:    []HistoryPoint{}, Versions: []HistoryVersion{}, Rows: []HistoryRow{}, Changes: []HistoryChange{}}
	if !isUnscaled(s.Scale) {
		s.Departed = s.Scale
	}
	var made []string
	for _, r := range list {
		s.addRun(r)
		made = slices.AppendSeq(made, maps.Values(filesystemsOf(r.Result)))
	}
	slices.Sort(made)
	s.Filesystem = strings.Join(slices.Compact(made), " + ")
	s.fillRows(list)
	h.changes(&s, list)
	return s
}

// addRun adds a run with its version, which is new if no run had it.
func (s *HistorySeries) addRun(r HistoryRun) {
	p := HistoryPoint{Run: r.Result.Run, Name: r.name(), Path: r.Path, Started: startTime(r.Result),
		Status: r.Result.Status, Baseline: r.Baseline, Sessions: len(r.Result.Sessions), Rounds: r.Result.Rounds,
		Warnings: r.Result.Warnings, Cases: map[string]result.Case{}}
	for _, c := range r.Result.Cases {
		p.Cases[c.ID] = c
	}
	v := versionOf(r.Result)
	p.Version = slices.IndexFunc(s.Versions, func(o HistoryVersion) bool {
		return o.System == v.System && o.Kernel == v.Kernel && o.Tool == v.Tool && o.Engine == v.Engine
	})
	if p.Version < 0 {
		p.Version, v.First = len(s.Versions), p.Started
		s.Versions = append(s.Versions, v)
	}
	s.Versions[p.Version].Runs++
	s.Runs = append(s.Runs, p)
	if len(r.Result.Summaries) > 0 &&
		(s.Newest == nil || r.Result.Status != result.Unfinished || s.Newest.Status == result.Unfinished) {
		s.Newest = r.Result
	}
}

// fillRows reads the rows, those of the newest run first.
func (s *HistorySeries) fillRows(list []HistoryRun) {
	at := map[summaryKey]int{}
	for i, r := range slices.Backward(list) {
		for k := range r.Result.Summaries {
			sum := &r.Result.Summaries[k]
			e, ok := findEstimate(sum.Estimates, sum.Headline)
			if !ok {
				continue
			}
			key := keyOf(sum)
			n, there := at[key]
			if !there {
				n = len(s.Rows)
				at[key] = n
				s.Rows = append(s.Rows, HistoryRow{sum.Case, sum.Phase, sum.Cycle, sum.Op, e.Unit,
					make([]*HistoryValue, len(list))})
			}
			if s.Rows[n].Unit == e.Unit {
				s.Rows[n].Values[i] = &HistoryValue{sum.Headline, e.Value, e.CI, sum.Warnings}
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
		switch {
		case len(ops) == 0:
			c.Why = wording.Text("change.no-number")
		case len(from) == 0 || len(to) == 0:
			c.Why = wording.Text("change.no-run")
		case len(from)+len(to) > h.reads:
			c.Why = wording.Text("change.too-many")
		default:
			h.reads -= len(from) + len(to)
			c.Comparison, c.Why = h.compare(s, list, from, to, ops)
		}
		if c.Comparison != nil {
			c.Used = [2]int{len(from), len(to)}
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
func (s *HistorySeries) compared() []plan.Quantity {
	var all, main []plan.Quantity
	for _, name := range texts(s.Rows, func(row HistoryRow) string { return row.Op }) {
		op := plan.Quantity(name)
		if _, known := op.Info(); known {
			all = append(all, op)
		}
		if isRate(op) || op == "allocated" {
			main = append(main, op)
		}
	}
	if len(main) == 0 {
		return all
	}
	return main
}

// compare reads the runs and compares them by version.
func (h *historyMaker) compare(
	s *HistorySeries, list []HistoryRun, from, to []int, ops []plan.Quantity,
) (*Comparison, string) {
	o := CompareOptions{Ops: ops}
	var runs []*result.Result
	for _, i := range slices.Concat(from, to) {
		r, err := h.read(list[i])
		if err != nil {
			return nil, wording.Text("change.unread", list[i].name(), err)
		}
		runs = append(runs, r)
		o.Sides = append(o.Sides, s.VersionName(s.Runs[i].Version, s.Runs[from[0]].Version, s.Runs[to[0]].Version))
	}
	c, err := Compare(runs, o)
	if err != nil {
		return nil, err.Error()
	}
	return c, ""
}

// parts are what a version is named by.
func (v HistoryVersion) parts() [4]string {
	out := [4]string{v.System, "", v.Tool, v.Engine}
	if v.Kernel != "" {
		out[1] = wording.Text("fact.kernel", v.Kernel)
	}
	return out
}

// VersionName names a version by those of its parts in which the given versions
// differ; all of it, if they do not.
func (s *HistorySeries) VersionName(version int, among ...int) string {
	own := s.Versions[version].parts()
	differ := func(part int) bool {
		return slices.ContainsFunc(among, func(i int) bool { return s.Versions[i].parts()[part] != own[part] })
	}
	var parts []string
	for i, text := range own {
		// Apple's tools come with the system
		isApples := text == s.Versions[version].Engine && differ(0) && strings.Contains(text, "(Apple")
		if differ(i) && !isApples {
			parts = appendUnique(parts, text)
		}
	}
	if len(parts) == 0 {
		parts = own[:]
	}
	return wording.NonEmpty(parts...)
}
