package analysis

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

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
func NewHistory(runs []HistoryRun, read ReadRun) *History {
	hasStarted := func(r *result.Result) bool { return !startTime(r).IsZero() }
	kept, leftOut := distinctRuns(runs, hasStarted, "left-out.not-started")
	out := &History{Series: []HistorySeries{}, LeftOut: leftOut}
	slices.SortStableFunc(kept, func(a, b HistoryRun) int {
		return cmp.Or(startTime(a.Result).Compare(startTime(b.Result)), cmp.Compare(a.Result.Run, b.Result.Run))
	})
	type group struct {
		facts, made, host string
		runs              []HistoryRun
	}
	var groups []*group
	for _, r := range slices.Backward(kept) {
		// Runs that measured the same with the same; one that has not measured an
		// image yet may have any file system in it
		made := strings.Join(filesystemFacts(r.Result), " + ")
		// A run without the name of its machine may be of any machine that is alike
		host := strings.Join(hostNames(r.Result), " + ")
		facts := strings.Join(slices.Concat([]string{r.Result.Plan.Name, r.Result.Plan.Digest, machineText(r.Result)},
			scaleFacts(r.Result), diskFacts(r.Result), texts(enginesOf(r.Result), func(e result.Engine) string {
				return e.Name + "\x01" + e.Vendor + "\x01" + engineKind(e.Title)
			})), "\x00")
		g, ok := find(groups, func(g *group) bool {
			return g.facts == facts && (g.made == made || g.made == "" || made == "") &&
				(g.host == host || g.host == "" || host == "")
		})
		if !ok {
			g = &group{facts: facts}
			groups = append(groups, g)
		}
		g.made, g.host, g.runs = cmp.Or(g.made, made), cmp.Or(g.host, host), append(g.runs, r)
	}
	reads := changeReads
	for _, g := range groups {
		slices.Reverse(g.runs)
		s := newSeries(g.runs)
		s.Filesystem = g.made
		s.addChanges(g.runs, read, &reads)
		out.Series = append(out.Series, s)
	}
	return out
}

// newSeries is one series of runs in the order of time, without its changes.
func newSeries(list []HistoryRun) HistorySeries {
	last := list[len(list)-1].Result
	s := HistorySeries{Plan: last.Plan.Name, Title: cmp.Or(last.Plan.Title, last.Plan.Name), Digest: last.Plan.Digest,
		Scale: scaleFacts(last), Seed: last.Seed, Rounds: last.Rounds, Engine: factsText(last, "engine"),
		Machine: wording.JoinFacts(strings.Join(hostNames(last), " + "), machineText(last),
			strings.Join(diskFacts(last), " + ")),
		Runs: []HistoryPoint{}, Versions: []HistoryVersion{}, Rows: []HistoryRow{}, Changes: []HistoryChange{}}
	if s.Scale[0] != unscaled {
		s.Departed = s.Scale
	}
	for _, r := range list {
		s.addRun(r)
	}
	// The rows of the newest run first
	at := map[quantityKey]int{}
	for i, r := range slices.Backward(list) {
		for _, sum := range r.Result.Summaries {
			k := keyOf(&sum)
			e, ok := findEstimate(sum.Estimates, sum.Headline)
			n, isKnown := at[k]
			if ok && !isKnown {
				n = len(s.Rows)
				at[k] = n
				s.Rows = append(s.Rows, HistoryRow{sum.Case, sum.Phase, sum.Cycle, sum.Op, e.Unit,
					make([]*HistoryValue, len(list))})
			}
			if ok && s.Rows[n].Unit == e.Unit {
				s.Rows[n].Values[i] = &HistoryValue{sum.Headline, e.Value, e.CI, sum.Warnings}
			}
		}
	}
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
	p.Version = slices.IndexFunc(s.Versions, func(o HistoryVersion) bool { return o.parts() == v.parts() })
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
		if !strings.Contains(title, e.Version) {
			title += " " + e.Version
		}
		return title
	})
	return HistoryVersion{System: factsText(r, "os"), Tool: factsText(r, "tool"),
		Engine: strings.Join(engines, " + "), Kernel: strings.Join(kernels, " + ")}
}

// addChanges compares every version with the one before, in rates and the space
// on disk (or in all that was measured), the newest first as long as there is
// room for so many runs to read, which it takes off.
func (s *HistorySeries) addChanges(list []HistoryRun, read ReadRun, room *int) {
	for to := 1; to < len(s.Versions); to++ {
		s.Changes = append(s.Changes, HistoryChange{From: to - 1, To: to})
	}
	names := texts(s.Rows, func(row HistoryRow) string { return row.Op })
	isMinor := func(name string) bool { return !isRate(plan.Quantity(name)) && name != "allocated" }
	if major := slices.DeleteFunc(slices.Clone(names), isMinor); len(major) > 0 {
		names = major
	}
	ops := mapped(names, func(name string) plan.Quantity { return plan.Quantity(name) })
	for i := range slices.Backward(s.Changes) {
		c := &s.Changes[i]
		from, to := s.ended(c.From), s.ended(c.To)
		c.Ended = [2]int{len(from), len(to)}
		from, to = from[max(len(from)-changeRuns, 0):], to[:min(len(to), changeRuns)]
		used := slices.Concat(from, to)
		switch {
		case len(ops) == 0:
			c.Why = wording.Text("change.no-number")
		case len(from) == 0 || len(to) == 0:
			c.Why = wording.Text("change.no-run")
		case len(used) > *room:
			c.Why = wording.Text("change.too-many")
		default:
			*room -= len(used)
			c.Used = [2]int{len(from), len(to)}
			var err error
			if c.Comparison, err = s.compare(list, used, read, CompareOptions{Ops: ops}, c.From, c.To); err != nil {
				c.Why, c.Used = err.Error(), [2]int{}
			}
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

// compare reads some runs of two versions and compares them by version.
func (s *HistorySeries) compare(list []HistoryRun, used []int, read ReadRun,
	o CompareOptions, versions ...int,
) (*Comparison, error) {
	var runs []*result.Result
	o.Plans = map[string]*plan.Plan{}
	for _, i := range used {
		p, r, err := read(list[i])
		if err != nil {
			return nil, because("change.unread", list[i].name(), err)
		}
		o.Plans[r.Plan.Digest] = p
		runs = append(runs, r)
		o.Sides = append(o.Sides, s.VersionName(s.Runs[i].Version, versions...))
	}
	return Compare(runs, o)
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
	return wording.JoinFacts(parts...)
}
