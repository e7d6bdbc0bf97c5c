package plan

import (
	"slices"
	"strings"
)

// This file is what a line of a table can ask for in addition to a quantity: a
// coefficient of the fits that the lines of the other side name, and how a step
// ended.

// Asks reports whether the line names the value of its cells; another line only
// selects.
func (l *TableLine) Asks() bool { return l.Quantity != "" || l.Coefficient != "" || l.Step != "" }

// do is the kind of step that yields what the line asks for, "" for a coefficient.
func (l *TableLine) do() string {
	if l.Step != "" {
		return l.Step
	}
	info, _ := l.Quantity.Info()
	return info.Do
}

// bytesAxes are the axes whose values are bytes.
var bytesAxes = []string{"file_size", "band_size", "size", "block"}

// CoefficientUnit is the base unit (B/s, B, s or 1) that a table prints a
// coefficient of a fit in; "" where there is none. The slope of a time over bytes
// is told as the rate that it is the inverse of.
func CoefficientUnit(f Fit, name string) (unit string, inverse bool) {
	bytes := slices.Contains(bytesAxes, f.Along)
	switch {
	case name == "r2" || name == "exponent" || name == "break" && !bytes:
		return "1", false
	case name == "break":
		return "B", false
	case strings.HasPrefix(name, "slope") && bytes && f.Quantity.Unit() == "s":
		return "B/s", true
	case strings.HasPrefix(name, "slope") && bytes:
		return "", false
	}
	return f.Quantity.Unit(), false
}

func coefficientNames() []string {
	var out []string
	for _, model := range []string{"line", "power", "two-lines"} {
		for _, name := range coefficients[model] {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// lineOutcomeTable is the value of the key outcome.
var lineOutcomeTable = table[TableLine]{name: "outcome", keys: []key[TableLine]{
	enumKey("do", func(l *TableLine) *string { return &l.Step }, stepNames()...).must(),
	selectorKeyOf("where", true, func(l *TableLine) *Selector { return &l.Where }),
	textKey("ok", lineText, func(l *TableLine) *string { return &l.OK }),
	textKey("fail", lineText, func(l *TableLine) *string { return &l.Fail }),
}}

func theLineOutcomeTable() *table[TableLine] { return &lineOutcomeTable }

// valueKeys are the keys by which a line asks for something other than a quantity, and the
// one by which a line of the other side names a fit.
func valueKeys() []key[TableLine] {
	return []key[TableLine]{
		enumKey("coefficient", func(l *TableLine) *string { return &l.Coefficient }, coefficientNames()...),
		textKey("fit", nameText, func(l *TableLine) *string { return &l.Fit }),
		tableKey("outcome", theLineOutcomeTable, func(l *TableLine) *TableLine { return l },
			func(l *TableLine) bool { return l.Step != "" }),
	}
}

// finishLine checks that a line asks for one thing or only selects, and that
// it has no key without a meaning there.
func finishLine(r *reader, n *node, l *TableLine) {
	asks := ""
	for _, p := range n.pairs {
		if Quantity(p.name).Unit() == "" && p.name != "coefficient" && p.name != "outcome" {
			continue
		}
		if asks != "" && (Quantity(p.name).Unit() == "" || Quantity(asks).Unit() == "") { // two quantities are reported where they are read
			r.problem(p.key, p.name, "a line asks for one thing; %q is there already", asks)
			return
		}
		asks = p.name
	}
	selects := n.get("where") != nil || n.get("fit") != nil || n.get("statistic") != nil
	if asks == "" && !selects && !r.broken &&
		!slices.ContainsFunc(n.pairs, func(c *node) bool { return lineTable.key(c.name) == nil }) {
		r.problem(n.off, n.name, "a line names neither a quantity nor a selection").
			hintf("write it as { write = { phase = \"new\" } } or { where = { format = \"UDSB\" } }")
	}
	if r.broken {
		return
	}
	if where := n.get("where"); asks != "" && where != nil {
		switch asks {
		case "coefficient":
			r.problem(where.key, "where", "a line that names a coefficient selects nothing: the fit of the other side does")
		case "outcome":
			r.problem(where.key, "where", "a line that names an outcome has its selection there").
				hintf("write outcome = { do = …, where = { … } }")
		default:
			r.problem(where.key, "where", "a line that names a quantity has its selection there").
				hintf("write %s = { … } and no where", l.Quantity)
		}
	}
	checkUnusedKeys(r, n, asks)
	if l.On.isSet() && !l.Published && l.Quantity != "" {
		r.problem(n.get("on").key, "on", "on has no meaning without published = true").
			hintf("a measured figure is taken on the machine of the run")
	}
	if base, _, ok := DisplayUnit(l.Unit); ok && l.Quantity != "" && base != l.Quantity.Unit() {
		r.problem(n.get("unit").off, "unit", "%s is the unit of a %s, and %s is a %s", l.Unit, unitWord(base), l.Quantity,
			unitWord(l.Quantity.Unit()))
	}
}

func askedWord(asks string) string {
	switch asks {
	case "coefficient":
		return "a coefficient"
	case "outcome":
		return "an outcome"
	}
	return "a quantity"
}

// checkUnusedKeys reports keys without a meaning in this kind of line.
func checkUnusedKeys(r *reader, n *node, asks string) {
	idle, in := []string{"fit"}, "that names "+askedWord(asks)
	switch asks {
	case "":
		idle, in = []string{"published", "on", "unit", "digits"}, "without a quantity"
		if n.get("where") == nil && n.get("fit") == nil {
			idle = nil // it may well be one whose quantity is misspelt
		}
	case "coefficient":
		idle = append(idle, "statistic", "published", "on")
	case "outcome":
		idle = append(idle, "statistic", "published", "on", "unit", "digits")
	}
	for _, k := range idle {
		if at := n.get(k); at != nil {
			r.problem(at.key, k, "%s has no meaning in a line %s", k, in)
		}
	}
}
