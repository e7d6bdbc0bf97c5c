package reporttest

import (
	"math"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Nasty are texts that try to break out of where they are printed.
var Nasty = []string{
	`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`,
	"__f__alert(2)__f__", "fn:tip",
	"{{.}} ${x} `code`", "a|b\nc\x1b[31mred\x07", "\u202Egpj.exe\u202C \u200F\u2066", "עברית العربية",
	"👩‍🚀🏴‍☠️ café ñ 漢字", "=HYPERLINK(1)", "'; DROP--", "\xff\xfe", strings.Repeat("long ", 60), "<!--", "]]>",
	"&lt;b&gt;", "javascript:alert(1)", "{a|rich} {b}", "url(http://example.org/x)",
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
	r.Fits = []result.Fit{{Name: nasty(), Model: nasty(), Along: nasty(), Op: nasty(),
		Points:       [][2]float64{{1, 2}, {2, 3}, {3, 5}},
		Coefficients: []result.Coefficient{{Name: nasty(), Value: math.NaN()}}}}
	r.Relations = []result.Relation{{Name: nasty(), XOp: nasty(), YOp: nasty(),
		Points: []result.RelationPoint{{Label: nasty(), X: 1, Y: math.Inf(1)}}}}
	spoilTables(r, nasty)
	return p, r
}

// spoilTables puts a name into everything that a table shows.
func spoilTables(r *result.Result, nasty func() string) {
	for i := range r.Tables {
		t := &r.Tables[i]
		t.Name, t.Title, t.Caption = nasty(), nasty(), nasty()
		for _, lines := range [][]result.TableLine{t.Columns, t.Rows} {
			for k := range lines {
				lines[k].Title, lines[k].Group = nasty(), nasty()
			}
		}
		t.Columns[0].Op, t.Columns[1].Unit = nasty(), nasty()
		for _, row := range t.Cells {
			for k := range row {
				row[k].Case, row[k].Why = nasty(), nasty()
				if row[k].Published != nil {
					p := *row[k].Published
					p.Text, p.On = nasty(), nasty()
					row[k].Published = &p
				}
			}
		}
		t.Cells = append(t.Cells, nil, t.Cells[0][:1])
	}
}
