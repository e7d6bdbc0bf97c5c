package report

import (
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// sameForAll is what holds for every figure of a table, and is said once: a mark at
// each of them would tell nothing.
type sameForAll struct {
	warnings     []string // texts
	uncomparable bool
	noInterval   bool
}

// alike finds it for the figures of some quantities.
func alike(f Figures, ops []string) sameForAll {
	var out comparing
	for _, k := range f.Keys {
		for _, op := range ops {
			if s := f.By[k][op]; s != nil {
				out.add(s.Warnings, Headline(s).CI != nil)
				for _, p := range s.Published {
					out.published(p.Comparable)
				}
			}
		}
	}
	return out.same()
}

// comparing takes figures one after the other.
type comparing struct {
	figures, spans  int
	warnings        []string
	comparable, not int
}

func (c *comparing) add(ws []result.Warning, interval bool) {
	if interval {
		c.spans++
	}
	if c.figures == 0 {
		for _, w := range ws {
			c.warnings = AppendNew(c.warnings, briefly(w))
		}
	}
	c.figures++
	c.warnings = slices.DeleteFunc(c.warnings, func(text string) bool {
		return !slices.ContainsFunc(ws, func(w result.Warning) bool { return briefly(w) == text })
	})
}

func (c *comparing) published(comparable bool) {
	if comparable {
		c.comparable++
	} else {
		c.not++
	}
}

func (c *comparing) same() sameForAll {
	return sameForAll{c.warnings, c.not > 0 && c.comparable == 0, c.spans == 0}
}

// weakenedBeyond reports whether there is a warning that not all figures share.
func (a sameForAll) weakenedBeyond(ws []result.Warning) bool {
	return slices.ContainsFunc(ws, func(w result.Warning) bool { return !slices.Contains(a.warnings, briefly(w)) })
}

// beyond words the warnings that not all figures share.
func (a sameForAll) beyond(ws []result.Warning) string {
	var texts []string
	for _, w := range ws {
		if text := briefly(w); !slices.Contains(a.warnings, text) {
			texts = AppendNew(texts, text)
		}
	}
	return "Doubtful: " + strings.Join(texts, "; ") + "."
}

// briefly is the text of a warning without numbers, so that the same doubt about two figures has the same text.
func briefly(w result.Warning) string {
	if text, found := brieflyDoubtful[w.Kind]; found {
		return text
	}
	return Plain(w.Text, 200)
}

// brieflyDoubtful are texts by the kind of warning. The list of warnings has them with their numbers.
var brieflyDoubtful = map[string]string{
	"outliers":           "some files lie far off the rest",
	"slow-first":         "a slow first file",
	"faster-than-native": "faster than the native folder, so part of it was buffered",
	"two-modes":          "speed changed part-way",
	"bimodal":            "speed switched between two levels",
	"transient":          "speed was still drifting",
}

func (a sameForAll) notes() []string {
	return NonEmpty([]string{TextIf(a.uncomparable, "Published values are not comparable (see Deviations)."), a.weakened()})
}

// weakened names what all figures share.
func (a sameForAll) weakened() string {
	return TextIf(len(a.warnings) > 0, "Weakens every figure here: "+Plain(strings.Join(a.warnings, "; "), 400)+".")
}

// runKinds are the kinds of warnings about the machine or the run.
var runKinds = []string{"battery", "low-power", "thermal", "cpu-quota", "quota", "busy", "virtual", "sleep", "translated", "memory-pressure",
	"network", "image-host", "nearly-full", "swap", "snapshots", "few-rounds"}

// withoutRunWarnings leaves the figures of a result the warnings that are about them alone, and names those that
// all rates share: these are shown once, on the first screen.
func withoutRunWarnings(r *result.Result) (own *result.Result, shared []string) {
	var all comparing
	for i := range r.Summaries {
		if h := Headline(&r.Summaries[i]); h != nil && h.Unit == "B/s" {
			all.add(r.Summaries[i].Warnings, h.CI != nil)
		}
	}
	if all.figures > 1 {
		shared = all.warnings
	}
	keep := func(ws []result.Warning) []result.Warning {
		return slices.DeleteFunc(slices.Clone(ws), func(w result.Warning) bool {
			return slices.Contains(runKinds, w.Kind) || slices.Contains(shared, briefly(w)) ||
				slices.ContainsFunc(r.Warnings, func(o result.Warning) bool { return o.Text == w.Text })
		})
	}
	out := *r
	out.Summaries = slices.Clone(r.Summaries)
	for i, s := range r.Summaries {
		out.Summaries[i].Warnings = keep(s.Warnings)
	}
	out.Tables = slices.Clone(r.Tables)
	for i, t := range r.Tables {
		out.Tables[i].Cells = slices.Clone(t.Cells)
		for k, row := range t.Cells {
			cells := slices.Clone(row)
			for j, c := range row {
				cells[j].Warnings = keep(c.Warnings)
			}
			out.Tables[i].Cells[k] = cells
		}
	}
	return &out, shared
}
