package result

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// benchUnits declare what is better. No unit has: sizes on disk differ between
// rounds, and benchstat warns of every one that does.
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

// Benchfmt writes the Go benchmark format, which benchstat compares: one line
// per executed step and round that counts, named after action, keys, phase and
// cycle, so that the rounds are the repetitions. A step without a phase is named
// by its position. Units are bytes and seconds, never scaled.
//
//	BenchmarkWrite/format=UDRW/encryption=none/phase=new/cycle=0 1 2.0e+09 B/s 2.5 sec
//
// What keeps numbers from being compared is in configuration lines: plan,
// engine, os, arch, host, and sync and cache as achieved unless they are keys of
// the case. What only names the run is a comment, since benchstat makes a table
// of its own for every configuration. Steps with a rate come first, as benchstat
// keeps the order of units and rows; several runs are repetitions of each other.
func Benchfmt(w io.Writer, runs ...*Result) error {
	b := bufio.NewWriter(w)
	b.WriteString(benchUnits)
	config := map[string]string{}
	for _, rated := range []bool{true, false} {
		for _, r := range runs {
			fmt.Fprintf(b, "# run: %s, seed %d, plan digest %s\n", oneLine(r.Run), r.Seed, oneLine(r.Plan.Digest))
			names := benchNames(r)
			for _, index := range benchSessions(r) {
				writeSession(b, config, r, names, index, rated)
			}
		}
	}
	return b.Flush()
}

// writeSession writes the steps of one session that have a rate, or those that have none.
func writeSession(w io.Writer, config map[string]string, r *Result, names []string, index int, rated bool) {
	writeConfig(w, config, benchConfig(r, index))
	for ci := range r.Cases {
		c := &r.Cases[ci]
		for si := range c.Steps {
			s := &c.Steps[si]
			if (s.benchRate() != "") == rated && s.Session == index && c.Counts(s.Round) && s.Error == "" && s.Expect != "fail" {
				writeConfig(w, config, stepConfig(c, s))
				writeBench(w, names[ci], s)
			}
		}
	}
}

// benchRate is the rate of a step, "" if it has none.
func (s *Step) benchRate() string {
	if p := s.Span; p != nil && p.Bytes > 0 {
		if v, ok := p.rate(); ok {
			return number(v)
		}
	}
	return ""
}

// benchSessions are the sessions that steps belong to, in order.
func benchSessions(r *Result) []int {
	var out []int
	for _, c := range r.Cases {
		for _, s := range c.Steps {
			if !slices.Contains(out, s.Session) {
				out = append(out, s.Session)
			}
		}
	}
	slices.Sort(out)
	return out
}

// benchConfig are the configuration lines of a session, as pairs. The plan goes by
// its title: a run that is repeated from its plan.toml has another file name, and
// benchstat sets side by side only what has the same configuration.
func benchConfig(r *Result, index int) [][2]string {
	s := r.session(index)
	engine := strings.TrimSpace(s.Engine.Title + " " + s.Engine.Version)
	model := strings.TrimSpace(s.Host.Model + " " + s.Host.CPU)
	return [][2]string{
		{"plan", cmp.Or(r.Plan.Title, r.Plan.Name)}, {"engine", engine}, {"os", hostOS(s.Host)}, {"arch", s.Host.Arch}, {"host", model},
	}
}

// stepConfig is what was achieved, where the name of the benchmark does not contain it.
func stepConfig(c *Case, s *Step) [][2]string {
	out := [][2]string{{"sync", ""}, {"cache", ""}}
	for i, a := range []*Achieved{s.Sync, s.Cache} {
		if a != nil && c.key(out[i][0]) == "" {
			out[i][1] = a.Achieved
		}
	}
	return out
}

// hostOS is the system in a few words.
func hostOS(h Host) string { return strings.TrimSpace(h.OS + " " + h.OSVersion) }

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

// oneLine makes text fit for a configuration line.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// benchNames are the middle parts of the names, one per case. Two cases with
// keys that become equal when made fit for a name get different numbers.
func benchNames(r *Result) []string {
	names := make([]string, len(r.Cases))
	for i, c := range r.Cases {
		var b strings.Builder
		for _, kv := range c.Keys {
			b.WriteString("/" + bench(kv[0]) + "=" + bench(kv[1]))
		}
		if c.Baseline && c.key("baseline") == "" {
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

// bench makes text fit for a part of a benchmark's name: no spaces, no slashes.
func bench(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '/' || unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, s)
	return cmp.Or(s, "_")
}

// writeBench writes the line of one step. The name always ends with the cycle:
// a name that ended in AES-256 would be read as a benchmark with GOMAXPROCS 256.
func writeBench(w io.Writer, name string, s *Step) {
	label := fmt.Sprintf("/step=%d", s.Index)
	if s.Phase != "" {
		label = "/phase=" + bench(s.Phase)
	}
	if s.Op != "" && s.Op != s.Do { // the canary writes and reads
		label += "/op=" + bench(s.Op)
	}
	fmt.Fprintf(w, "Benchmark%s%s%s/cycle=%d 1", benchBase(s.Do), name, label, s.Cycle)
	ns := s.DurationNS
	if p := s.Span; p != nil {
		ns = p.LastDoneNS - p.GateNS
	}
	if rate := s.benchRate(); rate != "" {
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

// benchBase is the action as the base of a benchmark's name: letters and digits, capital first.
func benchBase(do string) string {
	var b strings.Builder
	for _, r := range do {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			if b.Len() == 0 {
				r = unicode.ToUpper(r)
			}
			b.WriteRune(r)
		}
	}
	return cmp.Or(b.String(), "Step")
}
