package report

import (
	"strconv"
	"strings"

	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// collectWarnings lists every warning of the run with where it belongs, the same one once with a count of its places.
func (v *View) collectWarnings() {
	type key struct{ kind, text string }
	at := map[key]int{}
	places := map[key][]string{}
	add := func(where string, w result.Warning) {
		k := key{Plain(w.Kind, 40), Plain(w.Text, 600)}
		if _, ok := at[k]; !ok {
			at[k] = len(v.Warnings)
			v.Warnings = append(v.Warnings, Warning{Kind: k.kind, Text: k.text})
		}
		places[k] = AppendNew(places[k], where)
	}
	for _, w := range v.Result.Warnings {
		add("the run", w)
	}
	for i := range v.Warnings {
		v.Warnings[i].Run = true
	}
	said := v.saidOfCases()
	for _, c := range v.Result.Cases {
		for _, w := range c.Warnings {
			add(v.CaseName(c.ID), w)
		}
		for _, s := range c.Steps {
			if len(s.Warnings) == 0 {
				continue
			}
			where := v.CaseName(c.ID) + ", " + StepName(s) + ", round " + strconv.Itoa(s.Round)
			for _, w := range s.Warnings {
				if !said[w.Kind+"\x00"+w.Text] {
					add(where, w)
				}
			}
		}
	}
	for _, s := range v.Result.Summaries {
		for _, w := range s.Warnings {
			if said[w.Kind+"\x00"+w.Text] {
				continue
			}
			add(strings.TrimSuffix(v.CaseName(s.Case)+", "+QuantityName(s.Op)+", "+PhaseName(s.Phase, s.Cycle), ", "), w)
		}
	}
	for k, i := range at {
		list := places[k]
		if len(list) > 6 {
			list = append(list[:5:5], "and "+Grouped(int64(len(list)-5))+" more places")
		}
		v.Warnings[i].Where = strings.Join(list, "; ")
	}
}

// saidOfCases are the warnings of steps and figures that a case or the run repeats,
// by kind and text: the case says "write new: …" where the figure says "…".
func (v *View) saidOfCases() map[string]bool {
	out := map[string]bool{}
	for _, w := range v.Result.Warnings {
		out[w.Kind+"\x00"+w.Text] = true
	}
	for _, c := range v.Result.Cases {
		for _, w := range c.Warnings {
			out[w.Kind+"\x00"+w.Text] = true
			if _, text, ok := strings.Cut(w.Text, ": "); ok {
				out[w.Kind+"\x00"+text] = true
			}
		}
	}
	return out
}

// StepName is the action with its phase: "write new", "detach".
func StepName(s result.Step) string {
	name := strings.TrimSpace(Plain(s.Do, 30) + TextIf(s.Phase != s.Do, " "+Plain(s.Phase, 40)))
	if s.Cycle > 0 {
		name += " (cycle " + strconv.Itoa(s.Cycle) + ")"
	}
	return name
}

// casesNotDone lists what has no figures, or fewer than asked for, with the reason.
func (v *View) casesNotDone() []Pair {
	var out []Pair
	for _, c := range v.Result.Cases {
		if c.Status != result.Done {
			out = append(out, Pair{v.CaseName(c.ID), Plain(v.Result.DisplayStatus(&c), 20) + ": " + FirstOf(Plain(c.Reason, 600), "no reason was recorded")})
		}
		for _, r := range c.Rounds {
			if r.Status != result.Done && c.Status == result.Done {
				out = append(out, Pair{v.CaseName(c.ID) + ", round " + strconv.Itoa(r.Round),
					Plain(r.Status, 20) + ": " + FirstOf(Plain(r.Reason, 600), "no reason was recorded")})
			}
		}
		for _, s := range c.Steps {
			if s.Error != "" && s.Expect != "fail" && c.Status == result.Done && c.Counts(s.Round) {
				out = append(out, Pair{v.CaseName(c.ID) + ", " + StepName(s) + ", round " + strconv.Itoa(s.Round), Plain(s.Error, 600)})
			}
		}
	}
	return out
}

// foundRounds says how the number of rounds came about where the plan left it to the run.
func foundRounds(r *result.Result) string {
	if r.Auto == nil {
		return ""
	}
	if n := len(r.Auto.Decisions); n > 0 {
		return Plain(r.Auto.Decisions[n-1].Text, 300)
	}
	return "as many as it took until every interval was within ± " + Percent(r.Auto.Precision)
}

// settled says how the places came to a steady state before the rounds, where the plan asks for one.
func settled(r *result.Result) string {
	var out []string
	for _, p := range r.Preconditions {
		out = AppendNew(out, Plain(p.Text, 300))
	}
	return strings.Join(out, "; ")
}

// settingPairs are the choices of the run that the plan's text does not show.
func (v *View) settingPairs() []Pair {
	r := v.Result
	out := []Pair{
		{"Run", Plain(r.Run, 100)},
		{"Seed", strconv.FormatUint(r.Seed, 10)},
		{"Rounds", strconv.Itoa(r.Rounds)},
		{"Written to before the rounds", settled(r)},
		{"Plan", Plain(r.Plan.Name, 100)},
		{"SHA-256 of the plan", Plain(r.Plan.Digest, 80)},
		{"Program", Plain(strings.TrimSpace(r.Tool.Name+" "+r.Tool.Version), 100) + goVersion(r.Tool)},
	}
	for _, kind := range []string{"cache", "sync"} {
		out = append(out, Pair{strings.ToUpper(kind[:1]) + kind[1:] + ", asked and achieved", v.achieved(kind)})
	}
	return drop(out)
}

// achieved lists what was asked of the cache or the flush and what was found.
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
	cores := make([]string, 0, len(h.Cores))
	for _, c := range h.Cores {
		cores = append(cores, strings.TrimSpace(strconv.Itoa(c.Count)+" "+Plain(c.Level, 20)))
	}
	out := []Pair{
		{"Session", strconv.Itoa(s.Index) + TextIf(s.Run != "", " (run "+Plain(s.Run, 100)+")")},
		{"Started", stamp(s.Started.IsZero(), s.Started.UTC().Format(minute+":05 UTC"))},
		{"Finished", stamp(s.Finished.IsZero(), s.Finished.UTC().Format(minute+":05 UTC"))},
		{"Ended", strings.TrimSpace(Plain(s.End, 30) + " " + Plain(s.Reason, 200))},
		{"Engine", Plain(FirstOf(s.Engine.Title, s.Engine.Name), 120)},
		{"Why this engine", Plain(s.Engine.Why, 300)},
		{"Model", Plain(h.Model, 120)},
		{"Processor", Plain(h.CPU, 120)},
		{"Cores", strings.Join(cores, ", ")},
		{"Usable processors", TextIf(h.CPUs > 0, strconv.Itoa(h.CPUs))},
		{"Processor quota", TextIf(h.CPUQuota > 0, units.Significant(h.CPUQuota, 3)+" cores")},
		{"Memory", TextIf(h.Memory > 0, units.Bytes(h.Memory).Human())},
		{"Memory limit", TextIf(h.MemoryLimit > 0, units.Bytes(h.MemoryLimit).Human())},
		{"System", system(h)},
		{"Kernel", Plain(h.Kernel, 120)},
		{"Architecture", Plain(h.Arch, 40)},
		{"Virtual", Plain(h.Virtual, 80)},
		{"Power", Plain(h.Power, 40)},
		{"Low power mode", TextIf(h.LowPower, "on")},
		{"Thermal state", Plain(h.Thermal, 80)},
		{"Memory pressure", Plain(h.MemoryPressure, 40)},
		{"Swap in use", TextIf(h.SwapUsed > 0, units.Bytes(h.SwapUsed).Human())},
		{"FileVault", Plain(h.FileVault, 40)},
		{"Translated", TextIf(h.Translated, "yes: the program was made for another processor")},
		{"Busy", Plain(strings.Join(h.Busy, "; "), 400)},
	}
	for _, d := range h.Disks {
		text := strings.Join(NonEmpty([]string{Plain(d.Device, 80), Plain(d.Filesystem, 40), Plain(d.Bus, 40), medium(d),
			Plain(d.Location, 40), TextIf(d.Indexed == "on", "indexed by Spotlight"),
			TextIf(d.Snapshots > 0, strconv.Itoa(d.Snapshots)+" local snapshots"),
			TextIf(d.Encrypted != "", "encrypted: "+Plain(d.Encrypted, 40)),
			TextIf(d.Total > 0, units.Bytes(d.Free).Human()+" free of "+units.Bytes(d.Total).Human())}), ", ")
		out = append(out, Pair{strings.TrimSpace("Disk " + Plain(d.Place, 40)), text})
	}
	return drop(out)
}

func stamp(missing bool, text string) string { return TextIf(!missing, text) }

// TextIf is text if the fact is known, else nothing.
func TextIf(known bool, text string) string {
	if known {
		return text
	}
	return ""
}

// repeatLines are the commands that do the same again.
func (v *View) repeatLines() []string {
	seed := strconv.FormatUint(v.Result.Seed, 10)
	folders := "RUN-FOLDER"
	if n := len(v.Result.Runs); n > 0 {
		folders = strings.TrimSpace(strings.Repeat("RUN-FOLDER ", n))
	}
	return []string{
		"# the plan as it was executed, with the same seed: the same files in the same order",
		"dmgbench run plan.toml --seed " + seed,
		"# render this report again, or take the numbers elsewhere",
		"dmgbench report " + folders,
		"dmgbench export RUN-FOLDER --format csv",
	}
}
