package report

import (
	"encoding/json"
	"html/template"
	"slices"
)

// This file shapes a table for the page's template: headings of groups span their columns, a case is named once for
// all its rows, and values below figures are lines of small print.

type headingGroup struct {
	Name string
	Span int
}

type htmlRow struct {
	Rule  bool // a line above: a new case begins
	Cells []htmlCell
}

type htmlCell struct {
	Cell
	Class string
	Head  bool
	Below []belowLine
}

// HTMLColumns are the columns of a page: all but those below others.
func (t Table) HTMLColumns() []Column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool { return c.Below })
}

// Groups are the headings over groups of columns; none if no column has one.
func (t Table) Groups() []headingGroup {
	var out []headingGroup
	columns, named := t.HTMLColumns(), false
	for i, c := range columns {
		named = named || c.Group != ""
		if i > 0 && columns[i-1].Group == c.Group {
			out[len(out)-1].Span++
		} else {
			out = append(out, headingGroup{c.Group, 1})
		}
	}
	if !named {
		return nil
	}
	return out
}

// HTMLForms is what the copy buttons of a table of the plan hand out, as JSON; "" leaves that to the page.
func (t Table) HTMLForms() template.JS {
	if t.File == "" {
		return ""
	}
	forms := map[string]string{}
	for _, f := range t.Forms() {
		forms[f.Name] = f.Text
	}
	text, err := json.Marshal(forms)
	if err != nil {
		panic("a map of strings is JSON: " + err.Error())
	}
	return template.JS(text)
}

// HTMLRows are the rows with classes; a head cell that repeats the row above is left empty.
func (t Table) HTMLRows() []htmlRow {
	out := make([]htmlRow, len(t.Rows))
	last := ""
	for i, row := range t.Rows {
		r := &out[i]
		for j, c := range row {
			if j < len(t.Columns) && t.Columns[j].Below {
				continue
			}
			h := htmlCell{Cell: c, Class: c.Class, Below: t.below(row, j)}
			switch {
			case c.Class == "head" && c.Text == last && j == 0:
				h.Cell.Text, h.Class = "", ""
			case c.Class == "head":
				h.Head, r.Rule = true, i > 0
				if j == 0 {
					last = c.Text
				}
			case j < len(t.Columns) && !t.Columns[j].Text:
				h.Class = "number"
				switch c.Class {
				case "muted", "uncomparable":
					h.Class = "number greyed"
				case "warn":
					h.Class = "number warn"
				}
			}
			r.Cells = append(r.Cells, h)
		}
	}
	return out
}
