package export

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// benchUnits declare which direction is better. No unit is declared exact:
// sizes on disk differ between rounds, and benchstat warns of each exact value
// that differs.
const benchUnits = `Unit B/s better=higher
Unit sec better=lower
Unit allocated-B better=lower
Unit apparent-B better=lower
Unit bands better=lower
Unit free-B better=higher
Unit freed-B better=higher
Unit out-B better=lower
Unit compression-ratio better=higher
`

// writeBenchfmt writes the Go benchmark format, which benchstat compares: one
// line per executed step and round that counts, with all its files, named after action, keys, phase
// and cycle, so that the rounds are the repetitions. A step without a phase is
// named by its position. Units are bytes and seconds, never scaled.
//
//	BenchmarkWrite/format=UDRW/encryption=none/phase=new/cycle=0 1 2.0e+09 B/s 2.5 sec
//
// Configuration lines contain what makes numbers incomparable: plan, engine,
// os, arch, host, and sync and cache as achieved unless they are keys of the
// case. The name of the run is a comment, since benchstat makes a separate
// table for every configuration. Steps with a rate come first, as benchstat
// keeps the order of units and rows.
func writeBenchfmt(w io.Writer, runs []*result.Result, _ string) error {
	if _, err := io.WriteString(w, benchUnits); err != nil {
		return err
	}
	// Configuration lines hold until they change; config is the current state.
	config := map[string]string{}
	for _, rated := range []bool{true, false} {
		for _, r := range runs {
			fmt.Fprintf(w, "# run: %s, seed %d, plan digest %s\n", oneLine(r.Run), r.Seed, oneLine(r.Plan.Digest))
			names := benchNames(r)
			for ci := range r.Cases {
				c := &r.Cases[ci]
				for si := range c.Steps {
					s := &c.Steps[si]
					isWhole := c.Counts(s.Round) && s.Error == "" && s.Expect != "fail" && !s.LacksFiles()
					if (benchRate(s) != "") != rated || !isWhole {
						continue
					}
					writeConfig(w, config, benchConfig(r, c, s))
					writeBench(w, names[ci], s)
				}
			}
		}
	}
	return nil
}

// benchRate is the rate of a step with workers, from gate to last done; "" if
// it has none.
func benchRate(s *result.Step) string {
	if p := s.Span; p != nil && p.Bytes > 0 {
		return formatCell(rateCell(p.Bytes, p.LastDoneNS-p.GateNS))
	}
	return ""
}

// benchConfig are the configuration lines of a step, as pairs: its session, and
// what was achieved, where the name of the benchmark does not contain it. The
// plan goes by its title: a run that is repeated from its plan.toml has another
// file name, and benchstat sets side by side only what has the same
// configuration.
func benchConfig(r *result.Result, c *result.Case, s *result.Step) [][2]string {
	at := sessionOf(r, s.Session)
	achieved := func(key string, a *result.Achieved) [2]string {
		if a == nil || keyValue(c, key) != "" {
			return [2]string{key, ""}
		}
		return [2]string{key, a.Achieved}
	}
	return [][2]string{
		{"plan", cmp.Or(r.Plan.Title, r.Plan.Name)}, {"engine", at.Engine.Title + " " + at.Engine.Version},
		{"os", osName(at.Host)}, {"arch", at.Host.Arch}, {"host", at.Host.Model + " " + at.Host.CPU},
		achieved("sync", s.Sync), achieved("cache", s.Cache),
	}
}

// writeConfig writes the lines that changed; an empty value takes a key away.
func writeConfig(w io.Writer, have map[string]string, want [][2]string) {
	for _, kv := range want {
		v := oneLine(kv[1])
		if old := have[kv[0]]; old != v {
			fmt.Fprintln(w, strings.TrimSpace(kv[0]+": "+v))
			have[kv[0]] = v
		}
	}
}

// invisible are characters that no line of the format can have: separators and
// control characters.
var invisible = regexp.MustCompile(`[\pZ\pC]+`)

// oneLine makes text fit for a configuration line.
func oneLine(s string) string { return strings.TrimSpace(invisible.ReplaceAllString(s, " ")) }

// benchNames are the middle parts of the names, one per case. Two cases with
// keys that become equal when made fit for a name get different numbers.
func benchNames(r *result.Result) []string {
	names := make([]string, len(r.Cases))
	for i, c := range r.Cases {
		var b strings.Builder
		for _, kv := range c.Keys {
			b.WriteString("/" + bench(kv[0]) + "=" + bench(kv[1]))
		}
		if c.Baseline && keyValue(&c, "baseline") == "" {
			b.WriteString("/baseline=true")
		}
		if len(c.Keys) == 0 {
			b.WriteString("/case=" + bench(c.ID))
		}
		if slices.Contains(names[:i], b.String()) {
			fmt.Fprintf(&b, "/nr=%d", i+1)
		}
		names[i] = b.String()
	}
	return names
}

// notInName are characters that a part of a benchmark's name cannot have.
var notInName = regexp.MustCompile(`[/\pZ\pC\x{FFFD}]`)

// bench makes text fit for a part of a benchmark's name.
func bench(s string) string { return cmp.Or(notInName.ReplaceAllString(s, "_"), "_") }

// writeBench writes the line of one step. The name always ends with the cycle:
// a name that ended in AES-256 would be read as a benchmark with GOMAXPROCS
// 256.
func writeBench(w io.Writer, name string, s *result.Step) {
	label := fmt.Sprintf("/step=%d", s.Index)
	if s.Phase != "" {
		label = "/phase=" + bench(s.Phase)
	}
	if s.Op != "" && s.Op != s.Do { // the canary writes and reads
		label += "/op=" + bench(s.Op)
	}
	base := cmp.Or(notInBase.ReplaceAllString(s.Do, ""), "Step")
	base = strings.ToUpper(base[:1]) + base[1:]
	fmt.Fprintf(w, "Benchmark%s%s%s/cycle=%d 1", base, name, label, s.Cycle)
	// A step with workers takes from the gate to the last file; the rest is
	// preparation.
	ns := s.DurationNS
	if p := s.Span; p != nil {
		ns = p.LastDoneNS - p.GateNS
	}
	if rate := benchRate(s); rate != "" {
		fmt.Fprintf(w, " %s B/s", rate)
	}
	fmt.Fprintf(w, " %s sec", number(float64(ns)/1e9))
	if d := s.Disk; d != nil {
		fmt.Fprintf(w, " %d allocated-B %d apparent-B %d bands", d.Allocated, d.Apparent, d.Bands)
		if d.VolumeFree >= 0 {
			fmt.Fprintf(w, " %d free-B", d.VolumeFree)
		}
	}
	if s.Do == "compact" || s.Do == "trim" {
		fmt.Fprintf(w, " %d freed-B", s.BytesFreed)
	}
	if st := s.Stream; st != nil {
		fmt.Fprintf(w, " %d out-B %s compression-ratio", st.Out, number(st.Ratio))
	}
	fmt.Fprintln(w)
}

// notInBase are characters that the base of a benchmark's name, which is the
// action with a capital, cannot have.
var notInBase = regexp.MustCompile(`[^A-Za-z0-9]`)
