package report

// This file shapes a table for the page's template: headings of groups span their
// columns, and a case is named once for all its rows.

type spanned struct {
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
}

// Groups are the headings over groups of columns; none if no column has one.
func (t Table) Groups() []spanned {
	var out []spanned
	named := false
	for i, c := range t.Columns {
		named = named || c.Group != ""
		if i > 0 && t.Columns[i-1].Group == c.Group {
			out[len(out)-1].Span++
		} else {
			out = append(out, spanned{c.Group, 1})
		}
	}
	if !named {
		return nil
	}
	return out
}

// HTMLRows are the rows with classes; a head cell that repeats the row above is left empty.
func (t Table) HTMLRows() []htmlRow {
	out := make([]htmlRow, len(t.Rows))
	last := ""
	for i, row := range t.Rows {
		r := &out[i]
		for j, c := range row {
			h := htmlCell{Cell: c, Class: c.Class}
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
				case "muted":
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
