// Package reporttest has results for the tests of packages that read results: a
// call gives the same result every time. The files of the folder runs are
// result.json files that TestRunsAreMade makes from formulas, without
// measurement, clock or randomness.
package reporttest

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

//go:embed runs
var runs embed.FS

// load reads one of the results, with a plan of its name.
func load(name string) (*plan.Plan, *result.Result) {
	r := &result.Result{}
	f, err := runs.Open("runs/" + name + ".json.gz")
	if err == nil {
		var text *gzip.Reader
		if text, err = gzip.NewReader(f); err == nil {
			err = json.NewDecoder(text).Decode(r)
		}
	}
	if err != nil {
		panic("reading the data of a test: " + err.Error())
	}
	return &plan.Plan{Schema: 1, Name: r.Plan.Name, Title: r.Plan.Title,
		Source: &plan.Source{
			Title:  "Disk image performance: the cost of encryption rises",
			Author: "Howard Oakley, The Eclectic Light Company",
			Date:   time.Date(2026, 3, 23, 0, 0, 0, 0, time.UTC),
			On:     plan.On{Machine: "Mac mini M4 Pro, 2 TB", OS: "macOS 26.3.1"},
		}, Run: plan.RunOptions{Rounds: r.Rounds, Baseline: true, Canary: true}}, r
}

// Sample is a run of four image cases and the native baseline over three phases
// and three rounds, with deviations, verdicts of every kind, warnings, a failed
// and a skipped case, and a table of the plan.
func Sample() (*plan.Plan, *result.Result) {
	p, r := load("sample")
	p.Summary = "Writes, reads and sizes of images as they are new, part full and emptied."
	return p, r
}

// Uses is the sample under a plan with uses, of every kind of choice, with
// failures and operations.
func Uses() (*plan.Plan, *result.Result) {
	p, r := load("uses")
	p.Source = nil
	return p, r
}

// Sweep is a run over a numeric axis (threads 1 to 14) with a line through its
// points, the coefficients of the author and a prediction.
func Sweep() (*plan.Plan, *result.Result) {
	p, r := load("sweep")
	axis := plan.Axis{Key: "threads"}
	for _, c := range r.Cases {
		axis.Values = append(axis.Values, c.Keys[0][1])
	}
	p.Axes = []plan.Axis{axis}
	return p, r
}

// Aging is one case over ten cycles in which writing becomes slower.
func Aging() (*plan.Plan, *result.Result) { return load("aging") }

// Large is one case with at least n timed files, over as many rounds as that
// takes.
func Large(n int) (*plan.Plan, *result.Result) {
	p, r := load("large") // one round
	c, files := &r.Cases[0], 0
	steps := c.Steps
	for _, s := range steps {
		if s.Do != "canary" {
			files += len(s.Samples)
		}
	}
	for r.Rounds*files < n {
		r.Rounds++
		c.Rounds = append(c.Rounds, result.CaseRound{Round: r.Rounds, Status: result.Done})
		for _, s := range steps {
			s.Round = r.Rounds
			s.Samples = slices.Clone(s.Samples)
			for i := range s.Samples { // no round is like the one before
				s.Samples[i].DurationNS += s.Samples[i].DurationNS * int64(r.Rounds%7) / 100
			}
			c.Steps = append(c.Steps, s)
		}
	}
	p.Run.Rounds = r.Rounds
	return p, r
}

// Past is a run of one plan on one Mac, of which tests make a history.
func Past() *result.Result {
	_, r := load("past")
	return r
}

// Noise is a number in [-1, 1) that depends on its arguments alone.
func Noise(parts ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	x := h.Sum64()
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	return float64(x>>11)/(1<<52) - 1
}

// Nasty are texts that try to break out of where they are printed.
var Nasty = []string{
	`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`,
	"__f__alert(2)__f__", "fn:tip",
	"{{.}} ${x} `code`", "a|b\nc\x1b[31mred\x07", "\u202Egpj.exe\u202C \u200F\u2066", "עברית العربية",
	"👩‍🚀🏴‍☠️ café ñ 漢字", "=HYPERLINK(1)", "'; DROP--", "\xff\xfe", strings.Repeat("long ", 60), "<!--", "]]>",
	"&lt;b&gt;", "javascript:alert(1)", "{a|rich} {b}", "url(http://example.org/x)",
}

// codes are the fields that have codes of the program, no foreign text.
var codes = strings.Fields(`Status Do Op Unit Verdict Expect Scope End OS Format Encryption Digest Headline Method Choice Rank
	Target.Kind Estimate.Name PublishedValue.Kind PublishedValue.Estimate`)

// Hostile is Sample with a nasty text in every place that takes a foreign name.
// Equal names stay equal, so that cases keep their figures and their phases.
func Hostile() (*plan.Plan, *result.Result) {
	p, r := Sample()
	r.Tables[0].Columns[0].Op, r.Tables[0].Columns[1].Unit = Nasty[0], Nasty[1]
	r.Fits = []result.Fit{{Name: "fit", Model: "model", Along: "along", Op: Nasty[2],
		Points:       [][2]float64{{1, 2}, {2, 3}, {3, 5}},
		Coefficients: []result.Coefficient{{Name: "slope", Value: math.NaN()}}}}
	r.Relations = []result.Relation{{Name: "relation", XOp: "x", YOp: "y",
		Points: []result.RelationPoint{{Label: "point", X: 1, Y: math.Inf(1)}}}}
	names := map[string]string{}
	spoil(reflect.ValueOf(p).Elem(), names)
	spoil(reflect.ValueOf(r).Elem(), names)
	r.Tables[0].Cells = append(r.Tables[0].Cells, nil, r.Tables[0].Cells[0][:1])
	return p, r
}

// HostileUses is Uses in the same way, with a candidate that has fewer figures
// than there are criteria.
func HostileUses() (*plan.Plan, *result.Result) {
	p, r := Uses()
	r.Uses[0].Candidates[0].Figures = nil
	names := map[string]string{}
	spoil(reflect.ValueOf(p).Elem(), names)
	spoil(reflect.ValueOf(r).Elem(), names)
	return p, r
}

// spoil replaces the texts below a value, other than codes.
func spoil(v reflect.Value, names map[string]string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			spoil(v.Elem(), names)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i), names)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			code := slices.Contains(codes, f.Name) || slices.Contains(codes, v.Type().Name()+"."+f.Name)
			if f.IsExported() && !code {
				spoil(v.Field(i), names)
			}
		}
	case reflect.String:
		if text := v.String(); text != "" && v.CanSet() {
			if names[text] == "" {
				n := len(names) + 1
				names[text] = Nasty[n%len(Nasty)] + " " + Nasty[(n*11+5+n/len(Nasty))%len(Nasty)]
			}
			v.SetString(names[text])
		}
	}
}
