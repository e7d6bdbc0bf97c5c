// Package report arranges a result for people, and makes all sentences of the
// output; the packages below its folder print them as a page, on a terminal and
// as Markdown.
//
// It reads results and plans and never measures, judges or repairs: every
// number it prints is in the result, or is a mean, a median, a line or an
// interval of the result's samples, by internal/stats and internal/analysis,
// that is labelled so. A number is shown with its interval, its n and its
// warnings, or it is not shown. The output depends on the input alone (no
// clock, no randomness, no host), so the same run renders to the same bytes.
// Names in a result are hostile text and are treated as such everywhere.
package report

import (
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// View is a result arranged for reading; the three renderers print the same
// view.
type View struct {
	Plan   *plan.Plan
	Result *result.Result
	names  map[string]string // case id → short name
	Order  map[string]int    // case id → position

	Title, Summary    string
	Source            string // "after …": whose protocol this is
	Provenance        string // machine, OS, engine, plan and version in one line, for inside pictures
	Facts             []Pair // what, where, when, with which version and engine
	Deviations        []Deviation
	DeviationsHeading string // heading of the departures
	Claims            []ClaimGroup
	First             FirstScreen
	PlanTables        []Table         // tables of the plan, as its article prints them
	Sections          []FigureSection // tables of figures; the first stands on the first screen
	Relations         []Table
	Fits              []Table
	Warnings          []Warning
	SharedDoubts      []string // doubts about all rates
	NotDone           []Pair
	Legend            []Pair
	Settings          []Pair
	Hosts             [][]Pair
	Repeat            []string
	Canonical         string
	Charts            []Chart           // of package chart, in page order
	ChartNotes        map[string]string // by section: what its charts leave out
}

type Pair struct{ Name, Value string }

type Deviation struct{ Kind, Text, Cases string }

// NewView arranges a result. It sorts, scales and words what the result has;
// all estimates are made by the analysis.
func NewView(p *plan.Plan, r *result.Result) *View {
	v := &View{Plan: p, Result: r, names: caseNames(r.Cases), Order: map[string]int{}}
	for i, c := range r.Cases {
		v.Order[c.ID] = i
	}
	v.head()
	v.collectWarnings()
	v.Result, v.SharedDoubts = withoutRunWarnings(r)
	for _, d := range r.Departures {
		v.Deviations = append(v.Deviations, Deviation{Plain(d.Kind, 40), Plain(d.Text, 600), v.caseList(d.Cases)})
	}
	v.DeviationsHeading = "Deviations from what was published"
	if v.Source == "" {
		v.DeviationsHeading = "Deviations from the plan as written"
	}
	v.Claims = claimGroups(r.Claims)
	v.addTables()
	v.PlanTables = v.planTables()
	v.Fits = v.fitTables()
	v.NotDone = v.casesNotDone()
	v.Legend = formatLegend(r)
	v.Settings = v.settingPairs()
	for _, s := range r.Sessions {
		v.Hosts = append(v.Hosts, hostPairs(s))
	}
	v.First = v.firstScreen()
	v.Repeat = v.repeatLines()
	v.Canonical = canonical(p)
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
	v.Summary = Plain(p.Summary, 1200)
	if s := p.Source; s != nil {
		parts := []string{Plain(s.Author, 120)}
		if title := Plain(s.Title, 200); title != v.Title {
			parts = append(parts, TextIf(title != "", "“"+title+"”"))
		}
		if !s.Date.IsZero() {
			parts = append(parts, s.Date.Format("2 January 2006"))
		}
		v.Source = strings.Join(NonEmpty(parts), ", ")
	}
	machines, systems, engines := v.distinct(machine), v.distinct(system), v.engines()
	cases, files := 0, 0
	for i := range r.Cases {
		if r.Cases[i].Status == result.Done {
			cases++
		}
		for _, s := range r.Cases[i].Steps {
			if !IsCanary(&s) {
				files += len(s.Samples)
			}
		}
	}
	v.Facts = drop([]Pair{
		{"Measured", TextIf(cases < len(r.Cases), Grouped(int64(cases))+" of ") + Count(len(r.Cases), "case") + ", " +
			Count(r.Rounds, "round") + TextIf(len(r.Runs) > 0, " in "+Count(len(r.Runs), "pooled run")) +
			TextIf(files > 0, ", "+Count(files, "timed file"))},
		{"Rounds", foundRounds(r)},
		{"On", strings.Join(NonEmpty(slices.Concat(machines, systems, v.distinct(disks))), "; ")},
		{"Engine", strings.Join(engines, "; ")},
		{"Status", status(r)},
		{"When", v.when()},
		{"Plan", strings.Join(NonEmpty([]string{Plain(FirstOf(r.Plan.Name, p.Name), 80),
			Plain(strings.TrimSpace(r.Tool.Name+" "+r.Tool.Version), 80)}), ", by ")},
	})
	v.Provenance = strings.Join(NonEmpty([]string{
		strings.Join(machines, " / "), strings.Join(systems, " / "), strings.Join(engines, " / "),
		"plan " + Plain(FirstOf(r.Plan.Name, p.Name), 60), Plain(r.Tool.Name+" "+r.Tool.Version, 60), v.day(),
	}), " · ")
}

// distinct lists one fact of all sessions, each value once.
func (v *View) distinct(of func(result.Host) string) []string {
	var out []string
	for _, s := range v.Result.Sessions {
		if t := of(s.Host); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func (v *View) engines() []string {
	var out []string
	for _, s := range v.Result.Sessions {
		for _, e := range append([]result.Engine{s.Engine}, s.Engines...) {
			name := Plain(FirstOf(e.Title, e.Name), 100)
			if name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func machine(h result.Host) string {
	parts := []string{Plain(FirstOf(h.Model, h.Arch), 80)}
	if cpu := Plain(h.CPU, 80); cpu != "" && !strings.Contains(parts[0], cpu) {
		parts = append(parts, cpu)
	}
	if h.CPUs > 0 {
		parts = append(parts, Count(h.CPUs, "core"))
	}
	if h.Memory > 0 {
		parts = append(parts, Human(float64(h.Memory), "B")+" of memory")
	}
	if h.Virtual != "" {
		parts = append(parts, Plain(h.Virtual, 40))
	}
	return strings.Join(NonEmpty(parts), ", ")
}

// systemName is the name of a system as people write it.
func systemName(os string) string {
	switch os {
	case "darwin":
		return "macOS"
	case "linux":
		return "Linux"
	}
	return Plain(os, 40)
}

func system(h result.Host) string {
	name, version := systemName(h.OS), Plain(h.OSVersion, 80)
	if strings.Contains(strings.ToLower(version), strings.ToLower(name)) {
		name = ""
	}
	name = strings.TrimSpace(name + " " + version)
	return name + TextIf(h.OSBuild != "", " ("+Plain(h.OSBuild, 40)+")")
}

func disks(h result.Host) string {
	var out []string
	for _, d := range h.Disks {
		parts := NonEmpty([]string{Plain(d.Device, 80), Plain(d.Filesystem, 40), Plain(d.Bus, 40), medium(d)})
		text := strings.Join(parts, ", ")
		if d.Place != "" && len(h.Disks) > 1 {
			text = Plain(d.Place, 40) + ": " + text
		}
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// medium is the kind of the medium; "unknown" alone would not show what is
// unknown.
func medium(d result.Disk) string {
	if d.Medium == "unknown" {
		return "unknown medium"
	}
	return Plain(d.Medium, 40)
}

const minute = "2006-01-02 15:04"

func (v *View) when() string {
	ss := v.Result.Sessions
	if len(ss) == 0 {
		return ""
	}
	first, last, busy := ss[0].Started, ss[0].Finished, time.Duration(0)
	for _, s := range ss {
		if s.Finished.After(last) {
			last = s.Finished
		}
		if s.Finished.After(s.Started) {
			busy += s.Finished.Sub(s.Started)
		}
	}
	if first.IsZero() {
		return ""
	}
	text := first.UTC().Format(minute) + " UTC"
	if busy > 0 {
		text += ", took " + units.Duration(busy).Human()
	}
	if len(ss) > 1 {
		text += " in " + Count(len(ss), "session") + " up to " + last.UTC().Format(minute)
	}
	return text
}

func (v *View) day() string {
	if len(v.Result.Sessions) == 0 || v.Result.Sessions[0].Started.IsZero() {
		return ""
	}
	return v.Result.Sessions[0].Started.UTC().Format("2006-01-02")
}

// caseList names the cases that something applies to; none is all of them, and
// so is every one that was measured.
func (v *View) caseList(ids []string) string {
	all, images := true, true
	for _, c := range v.Result.Cases {
		has := slices.Contains(ids, c.ID)
		if c.Status == result.Done {
			all = all && has
			images = images && has == (c.Target.Kind == "image")
		}
	}
	switch {
	case len(ids) == 0 || all:
		return ""
	case images:
		return "all images"
	}
	var out []string
	for _, id := range ids {
		out = append(out, v.CaseName(id))
	}
	return strings.Join(out, "; ")
}

// CaseName is the short name of a case, or its cleaned id if the result has no
// such case.
func (v *View) CaseName(id string) string {
	if l, ok := v.names[id]; ok {
		return l
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
func IsShown(c *result.Case, s *result.Step) bool {
	return !IsCanary(s) && s.Error == "" && (c.Shows(s.Round) || len(c.Rounds) == 0 && c.Status == result.Done)
}
