package report

import (
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// view is a result arranged for reading; the three renderers print the same view.
type view struct {
	plan   *plan.Plan
	result *result.Result
	label  map[string]string // case id → short name
	order  map[string]int    // case id → position

	title, summary string
	source         string // "after …": whose protocol this is
	provenance     string // machine, OS, engine, plan and version in one line, for inside pictures
	facts          []pair // what, where, when, with which version and engine
	departures     []departureView
	departed       string // heading of the departures
	claims         []claimGroup
	first          firstView
	published      []table   // tables of the plan, as its article prints them
	sections       []section // tables of figures; the first stands on the first screen
	relations      []table
	fits           []fitView
	warnings       []warningView
	shared         []string // doubts about all rates
	notDone        []pair
	legend         []pair
	settings       []pair
	hosts          [][]pair
	repeat         []string
	canonical      string
}

type pair struct{ Name, Value string }

type departureView struct{ Kind, Text, Cases string }

type warningView struct {
	Where, Kind, Text string
	Run               bool // about the run as a whole
}

// newView arranges a result; nothing is computed that needs more than sorting and scaling.
func newView(p *plan.Plan, r *result.Result) *view {
	v := &view{plan: p, result: r, label: labels(r.Cases), order: map[string]int{}}
	for i, c := range r.Cases {
		v.order[c.ID] = i
	}
	v.head()
	v.collectWarnings()
	v.result, v.shared = withoutRunWarnings(r)
	for _, d := range r.Departures {
		v.departures = append(v.departures, departureView{plain(d.Kind, 40), plain(d.Text, 600), v.caseList(d.Cases)})
	}
	v.departed = "Deviations from what was published"
	if v.source == "" {
		v.departed = "Deviations from the plan as written"
	}
	v.claims = claimGroups(r.Claims)
	v.tables()
	v.published = v.publishedTables()
	v.fits = v.fitViews()
	v.notDone = v.casesNotDone()
	v.legend = formatLegend(r)
	v.settings = v.settingPairs()
	for _, s := range r.Sessions {
		v.hosts = append(v.hosts, hostPairs(s))
	}
	v.first = v.firstScreen()
	v.repeat = v.repeatLines()
	v.canonical = canonical(p)
	return v
}

// otherTables are the tables of the plan that are not on the first screen.
func (v *view) otherTables() []table {
	if v.first.Outcome != nil {
		return v.published[1:]
	}
	return v.published
}

// head fills title, source, facts and the line that stands inside every picture.
func (v *view) head() {
	p, r := v.plan, v.result
	v.title = plain(firstOf(p.Title, r.Plan.Title, r.Plan.Name, "Disk image benchmark"), 200)
	v.summary = plain(p.Summary, 1200)
	if s := p.Source; s != nil {
		parts := []string{plain(s.Author, 120)}
		if title := plain(s.Title, 200); title != v.title {
			parts = append(parts, quoted(title))
		}
		if !s.Date.IsZero() {
			parts = append(parts, s.Date.Format("2 January 2006"))
		}
		v.source = strings.Join(nonEmpty(parts), ", ")
	}
	machines, systems, engines := v.distinct(machine), v.distinct(system), v.engines()
	cases, files := 0, 0
	for i := range r.Cases {
		if r.Cases[i].Status == result.Done {
			cases++
		}
		for _, s := range r.Cases[i].Steps {
			if !canary(&s) {
				files += len(s.Samples)
			}
		}
	}
	v.facts = drop([]pair{
		{"Measured", zero(cases < len(r.Cases), grouped(int64(cases))+" of ") + count(len(r.Cases), "case") + ", " + count(r.Rounds, "round") +
			zero(len(r.Runs) > 0, " in "+count(len(r.Runs), "pooled run")) +
			zero(files > 0, ", "+count(files, "timed file"))},
		{"Rounds", foundRounds(r)},
		{"On", strings.Join(nonEmpty(slices.Concat(machines, systems, v.distinct(disks))), "; ")},
		{"Engine", strings.Join(engines, "; ")},
		{"Status", status(r)},
		{"When", v.when()},
		{"Plan", strings.Join(nonEmpty([]string{plain(firstOf(r.Plan.Name, p.Name), 80),
			plain(strings.TrimSpace(r.Tool.Name+" "+r.Tool.Version), 80)}), ", by ")},
	})
	v.provenance = strings.Join(nonEmpty([]string{
		strings.Join(machines, " / "), strings.Join(systems, " / "), strings.Join(engines, " / "),
		"plan " + plain(firstOf(r.Plan.Name, p.Name), 60), plain(r.Tool.Name+" "+r.Tool.Version, 60), v.day(),
	}), " · ")
}

// distinct lists what the sessions say of one thing, each once.
func (v *view) distinct(of func(result.Host) string) []string {
	var out []string
	for _, s := range v.result.Sessions {
		if t := of(s.Host); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func (v *view) engines() []string {
	var out []string
	for _, s := range v.result.Sessions {
		for _, e := range append([]result.Engine{s.Engine}, s.Engines...) {
			name := plain(firstOf(e.Title, e.Name), 100)
			if name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func machine(h result.Host) string {
	parts := []string{plain(firstOf(h.Model, h.Arch), 80)}
	if cpu := plain(h.CPU, 80); cpu != "" && !strings.Contains(parts[0], cpu) {
		parts = append(parts, cpu)
	}
	if h.CPUs > 0 {
		parts = append(parts, count(h.CPUs, "core"))
	}
	if h.Memory > 0 {
		parts = append(parts, human(float64(h.Memory), "B")+" of memory")
	}
	if h.Virtual != "" {
		parts = append(parts, plain(h.Virtual, 40))
	}
	return strings.Join(nonEmpty(parts), ", ")
}

func system(h result.Host) string {
	name, version := plain(h.OS, 40), plain(h.OSVersion, 80)
	switch name {
	case "darwin":
		name = "macOS"
	case "linux":
		name = "Linux"
	}
	if strings.Contains(strings.ToLower(version), strings.ToLower(name)) {
		name = ""
	}
	name = strings.TrimSpace(name + " " + version)
	if h.OSBuild != "" {
		name += " (" + plain(h.OSBuild, 40) + ")"
	}
	return name
}

func disks(h result.Host) string {
	var out []string
	for _, d := range h.Disks {
		parts := nonEmpty([]string{plain(d.Device, 80), plain(d.Filesystem, 40), plain(d.Bus, 40), medium(d)})
		text := strings.Join(parts, ", ")
		if d.Place != "" && len(h.Disks) > 1 {
			text = plain(d.Place, 40) + ": " + text
		}
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// medium says that it is the medium that is not known.
func medium(d result.Disk) string {
	if d.Medium == "unknown" {
		return "unknown medium"
	}
	return plain(d.Medium, 40)
}

const minute = "2006-01-02 15:04"

func (v *view) when() string {
	ss := v.result.Sessions
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
		text += " in " + count(len(ss), "session") + " up to " + last.UTC().Format(minute)
	}
	return text
}

func (v *view) day() string {
	if len(v.result.Sessions) == 0 || v.result.Sessions[0].Started.IsZero() {
		return ""
	}
	return v.result.Sessions[0].Started.UTC().Format("2006-01-02")
}

// caseList names the cases that something applies to; none is all of them, and so is every one that was measured.
func (v *view) caseList(ids []string) string {
	all, images := true, true
	for _, c := range v.result.Cases {
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
		out = append(out, v.name(id))
	}
	return strings.Join(out, "; ")
}

// name is the short name of a case, or its cleaned id if the result has no such case.
func (v *view) name(id string) string {
	if l, ok := v.label[id]; ok {
		return l
	}
	return plain(id, 60)
}
