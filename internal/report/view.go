// Package report arranges a result for people, and makes all sentences of the
// output; the packages below its folder print them as a page, on a terminal and
// as Markdown.
//
// It reads results and plans and never measures, judges or repairs: every
// number it prints is in the result, or is a mean, a median, a line or an
// interval of the result's samples, by internal/analysis/stats and internal/analysis,
// that is labelled so. A number is shown with its interval, its n and its
// warnings, or it is not shown. The output depends on the input alone (no
// clock, no randomness, no host), so the same run renders to the same bytes.
// Names in a result are hostile text and are treated as such everywhere.
//
// Long texts are templates (folder templates), single sentences are in
// sentences.txt of package wording.
package report

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/image"
	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// View is a result arranged for reading; the three renderers print the same
// view.
//
// Fields are texts that are safe to print, see [Plain], apart from plan and
// result.
type View struct {
	Plan   *plan.Plan
	Result *result.Result
	names  map[string]string                       // case id → short name
	own    func([]result.Warning) []result.Warning // see keepOwnWarnings
	Order  map[string]int                          // case id → position

	Title, Summary string
	Source         string // "after …": whose protocol this is
	// Facts of all sessions, each once, and when they were.
	Machines, Systems, Disks, Engines []string
	When, Day                         string // of the first session, and how long all took without the pauses between
	Measured                          int    // cases that were measured in full
	Files, FilesShown                 int    // timed files, without canaries; and those whose figures are shown
	Provenance                        string // machine, OS, engine, plan and version in one line, for inside pictures
	Facts                             []Pair // what, where, when, with which version and engine
	Deviations                        []Deviation
	DeviationsHeading                 string // heading of the departures
	Claims                            []ClaimGroup
	First                             FirstScreen
	PlanTables                        []Table         // tables of the plan, as its article prints them
	Sections                          []FigureSection // tables of figures; the first stands on the first screen
	Relations                         []Table
	Fits                              []Table
	Warnings                          []Warning
	SharedDoubts                      []string // doubts about all rates
	NotDone                           []Pair
	Legend                            []Pair
	Settings                          []Pair
	Hosts                             [][]Pair
	Repeat                            string  // commands that repeat the run and render it again
	Canonical                         string  // the plan's own text, each line safe to print
	Charts                            []Chart // of package chart, in page order
}

type Pair struct{ Name, Value string }

type Deviation struct{ Kind, Text, Cases string }

// NewView arranges a result. It sorts, scales and words what the result has;
// all estimates are made by the analysis.
//
// The order of the steps matters: warnings are collected from the result as it
// is, and tables are made from the copy without those that are about the run.
func NewView(p *plan.Plan, r *result.Result) *View {
	v := newView(r)
	v.Plan, v.names, v.DeviationsHeading = p, caseNames(r.Cases), "Deviations from the plan as written"
	v.head()
	if v.Source != "" {
		v.DeviationsHeading = "Deviations from what was published"
	}
	v.collectWarnings()
	v.keepOwnWarnings()
	v.Deviations = Map(r.Departures, func(d result.Departure) Deviation {
		isOther := func(c result.Case) bool { return c.Status == result.Done && !slices.Contains(d.Cases, c.ID) }
		all := len(d.Cases) == 0 || !slices.ContainsFunc(r.Cases, isOther) // none is all of them
		cases := TextIf(!all, strings.Join(Map(d.Cases, v.CaseName), "; "))
		return Deviation{Plain(d.Kind, 40), Plain(d.Text, 600), cases}
	})
	v.Claims = claimGroups(r.Claims)
	v.addTables()
	v.PlanTables = Map(r.Tables, v.planTable)
	v.Fits = v.fitTables()
	v.NotDone = v.casesNotDone()
	v.Settings = pairs("settings", v)
	v.Hosts = Map(r.Sessions, func(s result.Session) []Pair { return pairs("session", s) })
	for _, f := range image.Formats {
		isNamed := func(kv [2]string) bool { return kv[1] == f.Name || kv[1] != "" && kv[1] == f.ImageType }
		if slices.ContainsFunc(r.Cases, func(c result.Case) bool {
			return c.Target.Format == f.Name || slices.ContainsFunc(c.Keys, isNamed)
		}) {
			v.Legend = append(v.Legend, Pair{f.Name, f.Legend})
		}
	}
	v.First = v.firstScreen()
	v.nameOrigin()
	v.Repeat = Render("repeat", v)
	var lines []string
	for line := range strings.Lines(string(p.Canonical())) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		lines = append(lines, indent+Clean(line))
	}
	v.Canonical = strings.Join(lines, "\n")
	return v
}

// nameOrigin gives the tables what they take along when they leave the page.
// Tables of the plan have the machine in their notes.
func (v *View) nameOrigin() {
	notice := wording.NonEmpty([]string{v.First.Notice})
	for i := range v.PlanTables {
		v.PlanTables[i].Origin = notice
	}
	origin := append([]string{"Measured on " + v.Provenance + "."}, notice...)
	lists := append(Map(v.Sections, func(s FigureSection) []Table { return s.Tables }), v.Relations, v.Fits)
	for _, list := range lists {
		for i := range list {
			list[i].Origin = origin
		}
	}
	if v.First.Numbers != nil {
		v.First.Numbers.Origin = origin
	}
}

// newView is a view of a result without texts.
func newView(r *result.Result) *View {
	v := &View{Result: r, Order: map[string]int{}}
	for i, c := range r.Cases {
		v.Order[c.ID] = i
	}
	return v
}

// OtherTables are the tables of the plan that are not on the first screen.
func (v *View) OtherTables() []Table {
	if v.First.Outcome != nil {
		return v.PlanTables[1:]
	}
	return v.PlanTables
}

// head fills title, source, facts and the line that every picture has.
func (v *View) head() {
	p, r := v.Plan, v.Result
	v.Title = Plain(FirstOf(p.Title, r.Plan.Title, r.Plan.Name, "Disk image benchmark"), 200)
	v.Summary, v.Source = Plain(p.Summary, 1200), Phrase("source", v)
	v.Machines, v.Systems = v.distinct("machines"), v.distinct("systems")
	v.Disks, v.Engines = v.distinct("disks"), v.distinct("engines")
	if all := r.Sessions; len(all) > 0 && !all[0].Started.IsZero() {
		last, busy := all[0].Finished, time.Duration(0)
		for _, s := range all {
			last = slices.MaxFunc([]time.Time{last, s.Finished}, time.Time.Compare)
			busy += max(s.Finished.Sub(s.Started), 0) // a lost session has no end
		}
		v.Day = all[0].Started.UTC().Format(dateFormat)
		v.When = all[0].Started.UTC().Format(minute) + " UTC" +
			TextIf(busy > 0, ", took "+units.Duration(busy).Human()) +
			TextIf(len(all) > 1, " in "+Count(len(all), "session")+" up to "+last.UTC().Format(minute))
	}
	v.Measured = countIf(r.Cases, func(c result.Case) bool { return c.Status == result.Done })
	for c, s := range v.Steps() {
		if !IsCanary(s) {
			v.Files += len(s.Samples)
		}
		if IsShown(c, s) {
			v.FilesShown += countIf(s.Samples, func(f result.Sample) bool { return !f.Stopped })
		}
	}
	v.Facts, v.Provenance = pairs("facts", v), Phrase("provenance", v)
}

// Steps are the steps of all cases with their case, in the order of the result.
func (v *View) Steps() iter.Seq2[*result.Case, *result.Step] {
	return func(yield func(*result.Case, *result.Step) bool) {
		for i := range v.Result.Cases {
			c := &v.Result.Cases[i]
			for k := range c.Steps {
				if !yield(c, &c.Steps[k]) {
					return
				}
			}
		}
	}
}

// distinct lists facts of all sessions, each once; they are the lines of a
// template.
func (v *View) distinct(template string) []string {
	return AppendNew(nil, FlatMap(v.Result.Sessions, func(s result.Session) []string { return Lines(template, s) })...)
}

// dateFormat and minute are how days and times of a day are written, for
// [time.Time.Format]; times are in UTC.
const (
	dateFormat = "2006-01-02"
	minute     = "2006-01-02 15:04"
)

// Achieved lists what was requested of the cache or of the flush ("sync"), and
// what took effect.
func (v *View) Achieved(kind string) string {
	var out []string
	for _, s := range v.Steps() {
		a := s.Cache
		if kind == "sync" {
			a = s.Sync
		}
		if a != nil {
			out = AppendNew(out, Plain(a.Asked, 40)+" → "+Plain(a.Achieved, 80))
		}
	}
	return strings.Join(out, "; ")
}

// MethodNotes describe how the figures of the first table were measured.
func (v *View) MethodNotes() []string {
	if len(v.Sections) == 0 {
		return nil
	}
	return v.Sections[0].Figures.sharedNotes().method(false)
}

// OfFigures is the number of warnings that are not about the run as a whole.
func (v *View) OfFigures() int {
	return countIf(v.Warnings, func(w Warning) bool { return !w.Run })
}

// casesNotDone lists what has no figures, or fewer than planned, with the
// reason.
func (v *View) casesNotDone() []Pair {
	var out []Pair
	add := func(name, status, reason string) {
		out = append(out, Pair{name, Plain(status, 20) + ": " + FirstOf(Plain(reason, 600), "no reason was recorded")})
	}
	for _, c := range v.Result.Cases {
		name := v.CaseName(c.ID)
		if c.Status != result.Done {
			add(name, v.Result.DisplayStatus(&c), c.Reason)
			continue
		}
		for _, r := range c.Rounds {
			if r.Status != result.Done {
				add(name+", round "+strconv.Itoa(r.Round), r.Status, r.Reason)
			}
		}
		for _, s := range c.Steps {
			if s.Error != "" && s.Expect != "fail" && c.Counts(s.Round) {
				where := wording.JoinFacts(name, StepName(s), "round "+strconv.Itoa(s.Round))
				out = append(out, Pair{where, Plain(s.Error, 600)})
			}
		}
	}
	return out
}

// CaseName is the short name of a case, or its cleaned id if the result has no
// such case.
func (v *View) CaseName(id string) string {
	if name, ok := v.names[id]; ok {
		return name
	}
	return Plain(id, 60)
}

// HasImages reports whether anything but directories was measured.
func (v *View) HasImages() bool {
	return slices.ContainsFunc(v.Result.Cases, func(c result.Case) bool { return c.Target.Kind == "image" })
}

// IsCanary reports whether a step is the short native write or read before a
// case, which shows the state of the machine and is not a figure of the case.
func IsCanary(s *result.Step) bool { return s.Do == "canary" }

// IsShown reports whether the figures of a step are shown: those of its round
// are, and the step did not fail.
//
// Older results have no rounds: there the status of the case decides.
func IsShown(c *result.Case, s *result.Step) bool {
	return !IsCanary(s) && s.Error == "" && (c.Shows(s.Round) || len(c.Rounds) == 0 && c.Status == result.Done)
}

// Warning is a warning with the places where it was found.
type Warning struct {
	Where, Kind, Text string
	Run               bool // about the run as a whole
	places            int  // where it was found
}

// listedPlaces is how many places of a warning are named.
const listedPlaces = 6

// collectWarnings lists every warning of the run with its places, each warning
// once. Those of steps and figures that a case or the run has as well are left
// out: a case has "write new: …" where the figure has "…".
func (v *View) collectWarnings() {
	var all []result.Warning
	places := map[result.Warning][]string{}
	add := func(w result.Warning, where ...string) {
		if places[w] == nil {
			all = append(all, w)
		}
		places[w] = AppendNew(places[w], wording.JoinFacts(where...))
	}
	clean := func(ws []result.Warning) []result.Warning {
		return Map(ws, func(w result.Warning) result.Warning {
			return result.Warning{Kind: Plain(w.Kind, 40), Text: Plain(w.Text, 600)}
		})
	}
	for _, w := range clean(v.Result.Warnings) {
		add(w, "the run")
	}
	ofRun := len(all)
	for _, c := range v.Result.Cases {
		for _, w := range clean(c.Warnings) {
			add(w, v.CaseName(c.ID))
		}
	}
	general := all
	addOwn := func(ws []result.Warning, where ...string) {
		for _, w := range clean(ws) {
			if !slices.ContainsFunc(general, func(o result.Warning) bool {
				return o.Kind == w.Kind && strings.HasSuffix(": "+o.Text, ": "+w.Text)
			}) {
				add(w, where...)
			}
		}
	}
	for c, s := range v.Steps() {
		addOwn(s.Warnings, v.CaseName(c.ID), StepName(*s), "round "+strconv.Itoa(s.Round))
	}
	for _, s := range v.Result.Summaries {
		addOwn(s.Warnings, v.CaseName(s.Case), QuantityName(s.Op), PhaseName(s.Phase, s.Cycle))
	}
	for i, w := range all {
		where := strings.Join(firstFew(places[w], listedPlaces, "places"), "; ")
		v.Warnings = append(v.Warnings, Warning{where, w.Kind, w.Text, i < ofRun, len(places[w])})
	}
}
