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
func alike(f figures, ops []string) sameForAll {
	var out comparing
	for _, k := range f.keys {
		for _, op := range ops {
			if s := f.by[k][op]; s != nil {
				out.add(s.Warnings, headline(s).CI != nil)
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
			c.warnings = appendNew(c.warnings, w.Text)
		}
	}
	c.figures++
	c.warnings = slices.DeleteFunc(c.warnings, func(text string) bool {
		return !slices.ContainsFunc(ws, func(w result.Warning) bool { return w.Text == text })
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
	return slices.ContainsFunc(ws, func(w result.Warning) bool { return !slices.Contains(a.warnings, w.Text) })
}

// beyond words the warnings that not all figures share.
func (a sameForAll) beyond(ws []result.Warning) string {
	var texts []string
	for _, w := range ws {
		if !slices.Contains(a.warnings, w.Text) {
			text, found := brieflyDoubtful[w.Kind]
			if !found {
				text = plain(w.Text, 200)
			}
			texts = appendNew(texts, text)
		}
	}
	return "Doubtful: " + strings.Join(texts, "; ") + "."
}

// brieflyDoubtful says in short what each figure's own warning, which the full table
// has, says with its numbers.
var brieflyDoubtful = map[string]string{
	"outliers":           "some files lie far off the rest",
	"slow-first":         "a slow first file",
	"faster-than-native": "faster than the native folder, so part of it was buffered",
	"two-modes":          "speed changed part-way",
	"bimodal":            "speed switched between two levels",
	"transient":          "speed was still drifting",
}

func (a sameForAll) notes() []string {
	return nonEmpty([]string{zero(a.uncomparable, "Published values are not comparable (see Deviations)."), a.weakened()})
}

// weakened names what all figures share.
func (a sameForAll) weakened() string {
	return zero(len(a.warnings) > 0, "Weakens every figure here: "+plain(strings.Join(a.warnings, "; "), 400)+".")
}
