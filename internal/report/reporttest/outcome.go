package reporttest

import (
	"math"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// summarise gives every case, phase and quantity its aggregate with a t interval over rounds.
func (b *run) summarise() {
	for _, c := range b.r.Cases {
		type key struct{ phase, op string }
		var keys []key
		values := map[key][]float64{}
		files := map[key]int{}
		add := func(phase, op string, v float64, n int) {
			k := key{phase, op}
			if values[k] == nil {
				keys = append(keys, k)
			}
			values[k] = append(values[k], v)
			files[k] += n
		}
		for _, s := range c.Steps {
			switch {
			case s.Do == "canary":
			case s.Span != nil:
				add(s.Phase, s.Op, float64(s.Span.Bytes)/float64(s.Span.BusyNS)*1e9, len(s.Samples))
			case s.Disk != nil:
				add(s.Phase, "allocated", float64(s.Disk.Allocated), 1)
				add(s.Phase, "live", float64(s.Live), 1)
				if s.Disk.Bands > 0 {
					add(s.Phase, "bands", float64(s.Disk.Bands), 1)
				}
			case s.Do == "attach" || s.Do == "detach" || s.Do == "create":
				add("", s.Do+"_time", float64(s.DurationNS)/1e9, 1)
			}
		}
		for _, k := range keys {
			b.r.Summaries = append(b.r.Summaries, summary(c.ID, k.phase, k.op, values[k], files[k]))
		}
	}
}

func summary(id, phase, op string, vs []float64, n int) result.Summary {
	mean, ss := 0.0, 0.0
	for _, v := range vs {
		mean += v / float64(len(vs))
	}
	for _, v := range vs {
		ss += (v - mean) * (v - mean)
	}
	e := result.Estimate{Name: "aggregate", Value: mean, Unit: plan.Quantity(op).Unit(), N: len(vs)}
	switch {
	case len(vs) < 3:
		e.Why = "fewer than 3 rounds"
	case ss == 0:
		e.Why = "every round gave the same value"
	default: // 4.303: Student's t for 2 degrees of freedom and 95 %
		half := 4.303 * math.Sqrt(ss/2/3)
		e.CI = &result.CI{Low: max(mean-half, 0), High: mean + half, Level: 0.95, Method: "t", Unit: "round"}
	}
	return result.Summary{Case: id, Phase: phase, Op: op, N: n, Rounds: len(vs), Headline: "aggregate", Estimates: []result.Estimate{e}}
}

// publish puts figures of two machines beside the measured ones; only one is comparable.
func (b *run) publish() {
	figures := map[string]map[string]float64{
		"format=UDRW,encryption=none": {"write": 5.5e9, "read": 5.3e9}, "format=UDRW,encryption=AES-256": {"write": 2.6e9, "read": 3.4e9},
		"format=UDSB,encryption=none": {"write": 7.62e9, "read": 6.13e9}, "format=UDSB,encryption=AES-256": {"write": 5.1e9, "read": 4.4e9},
	}
	for i := range b.r.Summaries {
		s := &b.r.Summaries[i]
		v, ok := figures[s.Case][s.Op]
		if !ok || s.Phase != "new" {
			continue
		}
		s.Departures = []string{"file system exFAT instead of APFS", "in-process engine instead of Apple’s hdiutil"}
		text := strings.TrimSuffix(strings.TrimRight(formatGB(v), "0"), ".") + " GB/s"
		s.Published = append(s.Published, result.PublishedValue{Text: text, Kind: "is", Low: v, High: v, Unit: "B/s", Statistic: "theil-sen",
			On: "Mac mini M4 Pro, macOS 26.3.1", Ratio: s.Estimates[0].Value / v})
	}
	b.r.Departures = []result.Departure{
		{Kind: "engine", Text: "in-process engine instead of Apple’s hdiutil"},
		{Kind: "filesystem", Text: "file system exFAT instead of APFS"},
		{Kind: "scale", Text: "file sizes are a hundredth of the published ones"},
		{Kind: "sets", Text: "2 sets instead of 10", Cases: []string{"format=UDRW,encryption=none", "format=UDSB,encryption=none"}},
	}
}

func formatGB(v float64) string {
	n := int64(math.Round(v / 1e7))
	return string(rune('0'+n/100)) + "." + string(rune('0'+n/10%10)) + string(rune('0'+n%10))
}

func (b *run) judge() {
	b.r.Claims = []result.Claim{
		{ID: "a", Says: "Encrypted, a sparse bundle writes at least twice as fast as a RAW image", By: "author", Scope: "apple",
			Verdict: result.NotMeasured, Reason: "this engine imitates the format; Apple’s tools were not at work",
			Here: "the ratio was 1.53, 95 % t over rounds 1.44 to 1.62"},
		{ID: "b", Says: "An image that was just made is written to no slower than one that is part full", By: "us", Scope: "any", Verdict: result.Holds,
			Reason: "it holds under 6 of 6 estimators", Evidence: []string{"aggregate: ratio 1.06, 95 % t over rounds 1.03 to 1.10"}},
		{ID: "c", Says: "A sparse bundle reads as fast as the native folder, within 5 %", By: "us", Scope: "any", Verdict: result.DoesNotHold,
			Reason: "it holds under 0 of 6 estimators", Evidence: []string{"aggregate: ratio 0.84, 95 % t over rounds 0.80 to 0.89"}},
		{ID: "d", Says: "Encryption costs a sparse bundle less than a quarter of its write speed", By: "us", Scope: "any", Verdict: result.CannotTell,
			Reason: "the interval includes the limit", Evidence: []string{"aggregate: ratio 0.78, 95 % t over rounds 0.74 to 0.83"}},
	}
}

func (b *run) warn() {
	b.r.Warnings = []result.Warning{{Kind: "quota", Text: "a control group limits this process to 1.5 processors"}}
	for i := range b.r.Summaries {
		if s := &b.r.Summaries[i]; s.Case == "format=UDSB,encryption=none" && s.Op == "write" && s.Phase == "emptied" {
			s.Warnings = []result.Warning{{Kind: "throttled", Text: "the last round was 9 % slower than the first"}}
		}
	}
	for i := range b.r.Cases {
		if c := &b.r.Cases[i]; c.Baseline {
			c.Steps[2].Warnings = []result.Warning{{Kind: "slow-first", Text: "the first file took 4 times as long as others of its size"}}
		}
	}
}

// Nasty are texts that try to leave the place they are printed in.
var Nasty = []string{
	`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, "__f__alert(2)__f__", "fn:tip",
	"{{.}} ${x} `code`", "a|b\nc\x1b[31mred\x07", "\u202Egpj.exe\u202C \u200F\u2066", "עברית العربية", "👩‍🚀🏴‍☠️ café ñ 漢字", "=HYPERLINK(1)",
	"'; DROP--", "\xff\xfe", strings.Repeat("long ", 60), "<!--", "]]>", "&lt;b&gt;", "javascript:alert(1)", "{a|rich} {b}", "url(http://example.org/x)",
}

// Hostile is Sample with a nasty text in every place that takes a foreign name.
func Hostile() (*plan.Plan, *result.Result) {
	p, r := Sample()
	i := 0
	nasty := func() string { i++; return Nasty[i%len(Nasty)] + " " + Nasty[(i*7+3)%len(Nasty)] }
	p.Title, p.Summary, p.Name = nasty(), nasty(), nasty()
	p.Source.Author, p.Source.Title = nasty(), nasty()
	r.Run, r.Plan.Name, r.Plan.Title, r.Tool.Version = nasty(), nasty(), nasty(), nasty()
	h := &r.Sessions[0].Host
	h.Model, h.CPU, h.OSVersion, h.Virtual, h.Busy = nasty(), nasty(), nasty(), nasty(), []string{nasty()}
	h.Disks[0].Device, h.Disks[0].Place = nasty(), nasty()
	r.Sessions[0].Engine.Title, r.Sessions[0].Engine.Why = nasty(), nasty()
	rename := map[string]string{}
	for c := range r.Cases {
		k := &r.Cases[c]
		id := nasty()
		rename[k.ID] = id
		k.ID, k.Reason, k.Keys = id, nasty(), [][2]string{{nasty(), nasty()}, {"format", nasty()}}
		for s := range k.Steps {
			st := &k.Steps[s]
			if st.Phase != "" {
				st.Phase = Nasty[len(st.Phase)%len(Nasty)]
			}
			for f := range st.Samples {
				st.Samples[f].File = nasty()
			}
			st.Warnings = []result.Warning{{Kind: nasty(), Text: nasty()}}
		}
	}
	for s := range r.Summaries {
		k := &r.Summaries[s]
		k.Case = rename[k.Case]
		if k.Phase != "" {
			k.Phase = Nasty[len(k.Phase)%len(Nasty)]
		}
		for j := range k.Published {
			k.Published[j].Text, k.Published[j].On = nasty(), nasty()
		}
	}
	for d := range r.Departures {
		r.Departures[d] = result.Departure{Kind: nasty(), Text: nasty(), Cases: []string{nasty()}}
	}
	for c := range r.Claims {
		k := &r.Claims[c]
		k.Says, k.Reason, k.Here, k.By, k.Evidence = nasty(), nasty(), nasty(), nasty(), []string{nasty()}
	}
	r.Fits = []result.Fit{{Name: nasty(), Model: nasty(), Along: nasty(), Op: nasty(), Points: [][2]float64{{1, 2}, {2, 3}, {3, 5}},
		Coefficients: []result.Coefficient{{Name: nasty(), Value: math.NaN()}}}}
	r.Relations = []result.Relation{{Name: nasty(), XOp: nasty(), YOp: nasty(), Points: []result.RelationPoint{{Label: nasty(), X: 1, Y: math.Inf(1)}}}}
	spoil(r, nasty)
	return p, r
}
