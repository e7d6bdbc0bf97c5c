package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/image"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// StepName is the action with its phase: "write new", "detach".
func StepName(s result.Step) string {
	name := strings.TrimSpace(Plain(s.Do, 30) + TextIf(s.Phase != s.Do, " "+Plain(s.Phase, 40)))
	return name + TextIf(s.Cycle > 0, fmt.Sprintf(" (cycle %d)", s.Cycle))
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
		}
		for _, r := range c.Rounds {
			if r.Status != result.Done && c.Status == result.Done {
				add(name+", round "+strconv.Itoa(r.Round), r.Status, r.Reason)
			}
		}
		for _, s := range c.Steps {
			if s.Error != "" && s.Expect != "fail" && c.Status == result.Done && c.Counts(s.Round) {
				where := joinFacts(name, StepName(s), "round "+strconv.Itoa(s.Round))
				out = append(out, Pair{where, Plain(s.Error, 600)})
			}
		}
	}
	return out
}

// status is how the run ended; a complete run needs no words.
func status(r *result.Result) string {
	switch r.Status {
	case result.Done, "":
		return ""
	case result.Unfinished:
		return "unfinished: figures may change when it is resumed"
	case result.Failed:
		return "ended with failed or discarded cases"
	case result.Skipped:
		return "no case was measured"
	}
	return Plain(r.Status, 60)
}

// foundRounds is how the number of rounds was found where the plan left it to
// the run.
func foundRounds(r *result.Result) string {
	if r.Auto == nil {
		return ""
	}
	if n := len(r.Auto.Decisions); n > 0 {
		return Plain(r.Auto.Decisions[n-1].Text, 300)
	}
	return "as many as it took until every interval was within ± " + Percent(r.Auto.Precision)
}

// preconditions are how the places were brought to a steady state before the
// rounds, where the plan asks for it.
func preconditions(r *result.Result) string {
	var out []string
	for _, p := range r.Preconditions {
		out = AppendNew(out, Plain(p.Text, 300))
	}
	return strings.Join(out, "; ")
}

// settingPairs are the choices of the run that the plan's text does not show.
func (v *View) settingPairs() []Pair {
	r := v.Result
	return drop([]Pair{
		{"Run", Plain(r.Run, 100)},
		{"Seed", strconv.FormatUint(r.Seed, 10)},
		{"Rounds", strconv.Itoa(r.Rounds)},
		{"Written to before the rounds", preconditions(r)},
		{"Plan", Plain(r.Plan.Name, 100)},
		{"SHA-256 of the plan", Plain(r.Plan.Digest, 80)},
		{"Program", toolName(r.Tool) + goVersion(r.Tool)},
		{"Cache, requested and achieved", v.achieved("cache")},
		{"Sync, requested and achieved", v.achieved("sync")},
	})
}

func toolName(t result.Tool) string { return Plain(strings.TrimSpace(t.Name+" "+t.Version), 100) }

func goVersion(t result.Tool) string {
	text := joinFacts(Plain(t.Go, 30), strings.Trim(Plain(t.OS, 20)+"/"+Plain(t.Arch, 20), "/"))
	return TextIf(text != "", " ("+text+")")
}

func digestText(digest string) string { return TextIf(digest != "", ", SHA-256 "+Shorten(digest, 13)) }

// achieved lists what was requested of the cache or of the flush, and what took
// effect.
func (v *View) achieved(kind string) string {
	var out []string
	for _, c := range v.Result.Cases {
		for _, s := range c.Steps {
			a := s.Cache
			if kind == "sync" {
				a = s.Sync
			}
			if a != nil {
				out = AppendNew(out, Plain(a.Asked, 40)+" → "+Plain(a.Achieved, 80))
			}
		}
	}
	return strings.Join(out, "; ")
}

// hostPairs are the facts of one session.
func hostPairs(s result.Session) []Pair {
	h := s.Host
	var cores []string
	for _, c := range h.Cores {
		cores = append(cores, strings.TrimSpace(strconv.Itoa(c.Count)+" "+Plain(c.Level, 20)))
	}
	stamp := func(t time.Time) string { return TextIf(!t.IsZero(), t.UTC().Format(minute+":05 UTC")) }
	size := func(n int64) string { return TextIf(n > 0, units.Bytes(n).Human()) }
	out := []Pair{
		{"Session", strconv.Itoa(s.Index) + TextIf(s.Run != "", " (run "+Plain(s.Run, 100)+")")},
		{"Started", stamp(s.Started)},
		{"Finished", stamp(s.Finished)},
		{"Ended", strings.TrimSpace(Plain(s.End, 30) + " " + Plain(s.Reason, 200))},
		{"Engine", Plain(FirstOf(s.Engine.Title, s.Engine.Name), 120)},
		{"Why this engine", Plain(s.Engine.Why, 300)},
		{"Model", Plain(h.Model, 120)},
		{"Processor", Plain(h.CPU, 120)},
		{"Cores", strings.Join(cores, ", ")},
		{"Usable processors", TextIf(h.CPUs > 0, strconv.Itoa(h.CPUs))},
		{"Processor quota", TextIf(h.CPUQuota > 0, units.Significant(h.CPUQuota, 3)+" cores")},
		{"Memory", size(h.Memory)},
		{"Memory limit", size(h.MemoryLimit)},
		{"System", system(h)},
		{"Kernel", Plain(h.Kernel, 120)},
		{"Architecture", Plain(h.Arch, 40)},
		{"Virtual", Plain(h.Virtual, 80)},
		{"Power", Plain(h.Power, 40)},
		{"Low power mode", TextIf(h.LowPower, "on")},
		{"Thermal state", Plain(h.Thermal, 80)},
		{"Memory pressure", Plain(h.MemoryPressure, 40)},
		{"Swap in use", size(h.SwapUsed)},
		{"FileVault", Plain(h.FileVault, 40)},
		{"Translated", TextIf(h.Translated, "yes: the program was built for another processor")},
		{"Busy", Plain(strings.Join(h.Busy, "; "), 400)},
	}
	for _, d := range h.Disks {
		out = append(out, Pair{strings.TrimSpace("Disk " + Plain(d.Place, 40)), joinFacts(
			Plain(d.Device, 80), Plain(d.Filesystem, 40), Plain(d.Bus, 40), medium(d), Plain(d.Location, 40),
			TextIf(d.Indexed == "on", "indexed by Spotlight"),
			TextIf(d.Snapshots > 0, strconv.Itoa(d.Snapshots)+" local snapshots"),
			TextIf(d.Encrypted != "", "encrypted: "+Plain(d.Encrypted, 40)),
			TextIf(d.Total > 0, units.Bytes(d.Free).Human()+" free of "+units.Bytes(d.Total).Human()))})
	}
	return drop(out)
}

// drop removes the pairs without a value.
func drop(in []Pair) []Pair {
	var out []Pair
	for _, p := range in {
		if p.Value != "" {
			out = append(out, p)
		}
	}
	return out
}

// repeatLines are the commands that repeat the run and render it again.
func (v *View) repeatLines() []string {
	folders := strings.TrimSpace(strings.Repeat("RUN-FOLDER ", max(len(v.Result.Runs), 1)))
	return []string{
		"# the plan as executed, with the same seed: the same files in the same order",
		"dmgbench run plan.toml --seed " + strconv.FormatUint(v.Result.Seed, 10),
		"# render this report again, or export the numbers",
		"dmgbench report " + folders,
		"dmgbench export RUN-FOLDER --format csv",
	}
}

// formatLegend explains the names that occur in the result.
func formatLegend(r *result.Result) []Pair {
	used := map[string]bool{}
	for _, c := range r.Cases {
		used[c.Target.Format] = true
		for _, kv := range c.Keys {
			used[kv[1]] = true
		}
	}
	var out []Pair
	for _, f := range image.Formats {
		if used[f.Name] || f.ImageType != "" && used[f.ImageType] {
			out = append(out, Pair{f.Name, f.Legend})
		}
	}
	return out
}

// canonical is the plan's own text, each line safe to print.
func canonical(p *plan.Plan) string {
	var lines []string
	for line := range strings.Lines(string(p.Canonical())) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		lines = append(lines, indent+Clean(line))
	}
	return strings.Join(lines, "\n")
}
