package html

import (
	"encoding/json"
	"html/template"

	"dmgbench/internal/report"
)

// tableRow is a row with the classes of its cells.
//
// Classes are ours, whatever a result has: the style sheet knows no others.
type tableRow struct {
	Rule  bool // a line above: a new case begins
	Cells []tableCell
}

type tableCell struct {
	report.Cell
	Class string
	Head  bool
	Below []report.BelowLine
}

// rows are the rows of a table; a case that is named in the row above is not
// named again.
func rows(t report.Table) []tableRow {
	out := make([]tableRow, len(t.Rows))
	last := ""
	for i, row := range t.Rows {
		r := &out[i]
		for j, c := range row {
			if j < len(t.Columns) && t.Columns[j].Below {
				continue
			}
			h := tableCell{Cell: c, Class: c.Class, Below: t.Below(row, j)}
			switch {
			case c.Class == "head" && c.Text == last && j == 0:
				h.Text, h.Class = "", ""
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

// forms is what the copy buttons of a table of the plan give, as JSON; ""
// leaves that to the script of the page.
//
// The text is JSON inside a script element, so that < is escaped by the
// encoder.
func forms(t report.Table) (template.JS, error) {
	if t.File == "" {
		return "", nil
	}
	texts := map[string]string{}
	for _, f := range t.Forms() {
		texts[f.Name] = f.Text
	}
	text, err := json.Marshal(texts)
	return template.JS(text), err
}
