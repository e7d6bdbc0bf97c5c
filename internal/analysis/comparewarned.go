package analysis

import (
	"fmt"
	"slices"
)

// warned adds to the notes what the runs of one side were warned of and those of
// another were not, or not in the same words: a machine that was busy on one day
// looks like a change. One text of each kind stands for the side.
func (c *comparer) warned() {
	type told struct {
		text string
		runs int
	}
	list := make([]map[string]*told, len(c.sides))
	var kinds []string
	for i, s := range c.sides {
		list[i] = map[string]*told{}
		for _, r := range s.runs {
			var own []string
			for _, w := range r.Warnings {
				if slices.Contains(own, w.Kind) {
					continue
				}
				own, kinds = append(own, w.Kind), with(kinds, w.Kind)
				if list[i][w.Kind] == nil {
					list[i][w.Kind] = &told{text: w.Text}
				}
				list[i][w.Kind].runs++
			}
		}
	}
	everywhere := func(kind string) bool {
		for i, s := range c.sides {
			if w := list[i][kind]; w == nil || w.runs < len(s.runs) || w.text != list[0][kind].text {
				return false
			}
		}
		return true
	}
	for i, s := range c.sides {
		for _, kind := range kinds {
			w := list[i][kind]
			if w == nil || everywhere(kind) {
				continue
			}
			of := ""
			if len(s.runs) > 1 {
				of = fmt.Sprintf(" (%d of %s)", w.runs, plural(len(s.runs), "run"))
			}
			c.out.Notes = append(c.out.Notes, fmt.Sprintf("warned of in %s%s: %s", s.name, of, w.text))
		}
	}
}

// alike are the facts that are the same on all sides and that a reader has to know
// of any number: where, under what, by which tool and plan.
func (c *comparer) alike() {
	for _, name := range []string{"model", "cpu", "os", "engine", "plan", "scale", "workers"} {
		if values := c.out.Sides[0].fact(name); len(values) == 1 && values[0] != unscaled && !c.differ(name) {
			c.out.Alike = append(c.out.Alike, CompareFact{name, values})
		}
	}
}
