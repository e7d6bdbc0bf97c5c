package report

import (
	"strconv"
	"strings"

	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// collectWarnings lists every warning of the run with where it belongs, the same one once with a count of its places.
func (v *view) collectWarnings() {
	type key struct{ kind, text string }
	at := map[key]int{}
	places := map[key][]string{}
	add := func(where string, w result.Warning) {
		k := key{plain(w.Kind, 40), plain(w.Text, 600)}
		if _, ok := at[k]; !ok {
			at[k] = len(v.warnings)
			v.warnings = append(v.warnings, warningView{Kind: k.kind, Text: k.text})
		}
		places[k] = appendNew(places[k], where)
	}
	for _, w := range v.result.Warnings {
		add("the run", w)
	}
	for i := range v.warnings {
		v.warnings[i].Run = true
	}
	said := v.saidOfCases()
	for _, c := range v.result.Cases {
		for _, w := range c.Warnings {
			add(v.name(c.ID), w)
		}
		for _, s := range c.Steps {
			if len(s.Warnings) == 0 {
				continue
			}
			where := v.name(c.ID) + ", " + stepName(s) + ", round " + strconv.Itoa(s.Round)
			for _, w := range s.Warnings {
				if !said[w.Kind+"\x00"+w.Text] {
					add(where, w)
				}
			}
		}
	}
	for _, s := range v.result.Summaries {
		for _, w := range s.Warnings {
			if said[w.Kind+"\x00"+w.Text] {
				continue
			}
			add(strings.TrimSuffix(v.name(s.Case)+", "+words(s.Op)+", "+cycled(s.Phase, s.Cycle), ", "), w)
		}
	}
	for k, i := range at {
		list := places[k]
		if len(list) > 6 {
			list = append(list[:5:5], "and "+grouped(int64(len(list)-5))+" more places")
		}
		v.warnings[i].Where = strings.Join(list, "; ")
	}
}

// saidOfCases are the warnings of steps and figures that a case or the run repeats,
// by kind and text: the case says "write new: …" where the figure says "…".
func (v *view) saidOfCases() map[string]bool {
	out := map[string]bool{}
	for _, w := range v.result.Warnings {
		out[w.Kind+"\x00"+w.Text] = true
	}
	for _, c := range v.result.Cases {
		for _, w := range c.Warnings {
			out[w.Kind+"\x00"+w.Text] = true
			if _, text, ok := strings.Cut(w.Text, ": "); ok {
				out[w.Kind+"\x00"+text] = true
			}
		}
	}
	return out
}

// stepName is the action with its phase: "write new", "detach".
func stepName(s result.Step) string {
	name := strings.TrimSpace(plain(s.Do, 30) + zero(s.Phase != s.Do, " "+plain(s.Phase, 40)))
	if s.Cycle > 0 {
		name += " (cycle " + strconv.Itoa(s.Cycle) + ")"
	}
	return name
}

// casesNotDone lists what has no figures, or fewer than asked for, with the reason.
func (v *view) casesNotDone() []pair {
	var out []pair
	for _, c := range v.result.Cases {
		if c.Status != result.Done {
			out = append(out, pair{v.name(c.ID), plain(v.result.DisplayStatus(&c), 20) + ": " + firstOf(plain(c.Reason, 600), "no reason was recorded")})
		}
		for _, r := range c.Rounds {
			if r.Status != result.Done && c.Status == result.Done {
				out = append(out, pair{v.name(c.ID) + ", round " + strconv.Itoa(r.Round),
					plain(r.Status, 20) + ": " + firstOf(plain(r.Reason, 600), "no reason was recorded")})
			}
		}
		for _, s := range c.Steps {
			if s.Error != "" && s.Expect != "fail" && c.Status == result.Done && c.Counts(s.Round) {
				out = append(out, pair{v.name(c.ID) + ", " + stepName(s) + ", round " + strconv.Itoa(s.Round), plain(s.Error, 600)})
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
		return plain(r.Auto.Decisions[n-1].Text, 300)
	}
	return "as many as it took until every interval was within ± " + percent(r.Auto.Precision)
}

// settled says how the places came to a steady state before the rounds, where the plan asks for one.
func settled(r *result.Result) string {
	var out []string
	for _, p := range r.Preconditions {
		out = appendNew(out, plain(p.Text, 300))
	}
	return strings.Join(out, "; ")
}

// settingPairs are the choices of the run that the plan's text does not show.
func (v *view) settingPairs() []pair {
	r := v.result
	out := []pair{
		{"Run", plain(r.Run, 100)},
		{"Seed", strconv.FormatUint(r.Seed, 10)},
		{"Rounds", strconv.Itoa(r.Rounds)},
		{"Written to before the rounds", settled(r)},
		{"Plan", plain(r.Plan.Name, 100)},
		{"SHA-256 of the plan", plain(r.Plan.Digest, 80)},
		{"Program", plain(strings.TrimSpace(r.Tool.Name+" "+r.Tool.Version), 100) + goVersion(r.Tool)},
	}
	for _, kind := range []string{"cache", "sync"} {
		out = append(out, pair{strings.ToUpper(kind[:1]) + kind[1:] + ", asked and achieved", v.achieved(kind)})
	}
	return drop(out)
}

// achieved lists what was asked of the cache or the flush and what was found.
func (v *view) achieved(kind string) string {
	var out []string
	for _, c := range v.result.Cases {
		for _, s := range c.Steps {
			a := s.Cache
			if kind == "sync" {
				a = s.Sync
			}
			if a != nil {
				out = appendNew(out, plain(a.Asked, 40)+" → "+plain(a.Achieved, 80))
			}
		}
	}
	return strings.Join(out, "; ")
}

// hostPairs are the facts of one session.
func hostPairs(s result.Session) []pair {
	h := s.Host
	cores := make([]string, 0, len(h.Cores))
	for _, c := range h.Cores {
		cores = append(cores, strings.TrimSpace(strconv.Itoa(c.Count)+" "+plain(c.Level, 20)))
	}
	out := []pair{
		{"Session", strconv.Itoa(s.Index) + zero(s.Run != "", " (run "+plain(s.Run, 100)+")")},
		{"Started", stamp(s.Started.IsZero(), s.Started.UTC().Format(minute+":05 UTC"))},
		{"Finished", stamp(s.Finished.IsZero(), s.Finished.UTC().Format(minute+":05 UTC"))},
		{"Ended", strings.TrimSpace(plain(s.End, 30) + " " + plain(s.Reason, 200))},
		{"Engine", plain(firstOf(s.Engine.Title, s.Engine.Name), 120)},
		{"Why this engine", plain(s.Engine.Why, 300)},
		{"Model", plain(h.Model, 120)},
		{"Processor", plain(h.CPU, 120)},
		{"Cores", strings.Join(cores, ", ")},
		{"Usable processors", zero(h.CPUs > 0, strconv.Itoa(h.CPUs))},
		{"Processor quota", zero(h.CPUQuota > 0, units.Significant(h.CPUQuota, 3)+" cores")},
		{"Memory", zero(h.Memory > 0, units.Bytes(h.Memory).Human())},
		{"Memory limit", zero(h.MemoryLimit > 0, units.Bytes(h.MemoryLimit).Human())},
		{"System", system(h)},
		{"Kernel", plain(h.Kernel, 120)},
		{"Architecture", plain(h.Arch, 40)},
		{"Virtual", plain(h.Virtual, 80)},
		{"Power", plain(h.Power, 40)},
		{"Low power mode", zero(h.LowPower, "on")},
		{"Thermal state", plain(h.Thermal, 80)},
		{"Memory pressure", plain(h.MemoryPressure, 40)},
		{"Swap in use", zero(h.SwapUsed > 0, units.Bytes(h.SwapUsed).Human())},
		{"FileVault", plain(h.FileVault, 40)},
		{"Translated", zero(h.Translated, "yes: the program was made for another processor")},
		{"Busy", plain(strings.Join(h.Busy, "; "), 400)},
	}
	for _, d := range h.Disks {
		text := strings.Join(nonEmpty([]string{plain(d.Device, 80), plain(d.Filesystem, 40), plain(d.Bus, 40), medium(d),
			plain(d.Location, 40), zero(d.Indexed == "on", "indexed by Spotlight"),
			zero(d.Snapshots > 0, strconv.Itoa(d.Snapshots)+" local snapshots"),
			zero(d.Encrypted != "", "encrypted: "+plain(d.Encrypted, 40)),
			zero(d.Total > 0, units.Bytes(d.Free).Human()+" free of "+units.Bytes(d.Total).Human())}), ", ")
		out = append(out, pair{strings.TrimSpace("Disk " + plain(d.Place, 40)), text})
	}
	return drop(out)
}

func stamp(missing bool, text string) string { return zero(!missing, text) }

// zero is text if the fact is known, else nothing.
func zero(known bool, text string) string {
	if known {
		return text
	}
	return ""
}

// repeatLines are the commands that do the same again.
func (v *view) repeatLines() []string {
	seed := strconv.FormatUint(v.result.Seed, 10)
	folders := "RUN-FOLDER"
	if n := len(v.result.Runs); n > 0 {
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
