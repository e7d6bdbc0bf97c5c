package plan

import (
	"slices"
	"strconv"
	"strings"
)

// tables checks the tables of results: one side names quantities, each cell is
// one figure, and each line has a cell that can be filled.
func (c *checker) tables(whole bool) {
	if c.invalid["table"] {
		return
	}
	seen := map[string]bool{}
	for i := range c.p.Tables {
		t := &c.p.Tables[i]
		n := c.root.at("table", i)
		if seen[t.Name] && t.Name != "" {
			c.problem(n.at("name").off, "name", "the table %q is there twice", t.Name)
		}
		seen[t.Name] = true
		if len(t.Rows)*len(t.Columns) > maxCells {
			c.problem(n.key, "table", "the table %q has %d cells, more than %d", t.Name, len(t.Rows)*len(t.Columns), maxCells)
			continue
		}
		c.headings(n.at("columns"), "column", t.Columns)
		c.headings(n.at("rows"), "row", t.Rows)
		if c.sides(n, t) && c.disjoint(n, t) && c.fitted(n, t) && whole {
			c.cells(n, t)
		}
	}
}

// headings reports two lines of a side that read alike.
func (c *checker) headings(n *node, what string, lines []TableLine) {
	seen := map[string]bool{}
	for i := range lines {
		name := lines[i].Group + "\n" + lines[i].Heading()
		if seen[name] {
			c.problem(n.at(i).off, what, "two %ss are both called %q", what, lines[i].Heading()).
				hintf("give them a title or group of their own")
		}
		seen[name] = true
	}
}

// sides checks that quantities are named by all lines of one side and by none of the other.
func (c *checker) sides(n *node, t *Table) bool {
	named := func(lines []TableLine) (with, without int) {
		for i := range lines {
			if lines[i].Asks() {
				with++
			} else {
				without++
			}
		}
		return with, without
	}
	columns, bareColumns := named(t.Columns)
	rows, bareRows := named(t.Rows)
	at := n.at("columns")
	switch {
	case len(t.Rows) == 0 || len(t.Columns) == 0: // said already
		return false
	case columns > 0 && rows > 0:
		c.problem(n.at("rows").off, "rows", "rows and columns both name quantities").
			hintf("one side names them, the other only selects: { where = { … } }")
	case columns+rows == 0:
		c.problem(at.off, "columns", "neither rows nor columns name a quantity").
			hintf("write a column as { write = { phase = \"new\" } }")
	case columns > 0 && bareColumns > 0 || rows > 0 && bareRows > 0:
		lines, name := t.Columns, "columns"
		if rows > 0 {
			lines, name = t.Rows, "rows"
		}
		i := slices.IndexFunc(lines, func(l TableLine) bool { return !l.Asks() })
		c.problem(n.at(name, i).off, name, "this line names no quantity, others of the %s do", name)
	default:
		c.unitUsed(n, t)
		c.digitsUsed(n, t)
		return true
	}
	return false
}

// fitted checks coefficients against the fits that the other side names.
func (c *checker) fitted(n *node, t *Table) bool {
	asking, bare, sides := t.Columns, t.Rows, [2]string{"columns", "rows"}
	if t.Rows[0].Asks() {
		asking, bare, sides = t.Rows, t.Columns, [2]string{"rows", "columns"}
	}
	before, units := len(c.found), map[int]string{}
	wants := slices.ContainsFunc(asking, func(l TableLine) bool { return l.Coefficient != "" })
	for i := range bare {
		at := n.at(sides[1], i)
		k := slices.IndexFunc(asking, func(l TableLine) bool { return l.Statistic != "" })
		if s := at.get("statistic"); s != nil && k >= 0 {
			c.problem(s.key, "statistic", "a statistic stands here and in line %d of the %s", k+1, sides[0]).
				hintf("let one of them say it")
		}
		if bare[i].Fit == "" {
			continue
		}
		if f := c.fitOf(at, bare[i].Fit); f != nil && !wants {
			c.problem(at.at("fit").key, "fit", "fit has no meaning here: none of the %s names a coefficient", sides[0])
		} else if f != nil {
			c.coefficients(n, sides[0], asking, f, units)
		}
	}
	if wants && !slices.ContainsFunc(bare, func(l TableLine) bool { return l.Fit != "" }) {
		i := slices.IndexFunc(asking, func(l TableLine) bool { return l.Coefficient != "" })
		c.problem(n.at(sides[0], i).at("coefficient").key, "coefficient", "none of the %s names a fit", sides[1]).
			hintf("write { title = …, fit = \"NAME\" }")
	}
	return len(c.found) == before
}

func (c *checker) fitOf(at *node, name string) *Fit {
	var names []string
	for i := range c.p.Fits {
		if c.p.Fits[i].Name == name {
			return &c.p.Fits[i]
		}
		names = append(names, c.p.Fits[i].Name)
	}
	c.hintName(c.problem(at.at("fit").off, "fit", "there is no fit %q", name), name, "fits", names)
	return nil
}

// coefficients checks that a fit has every coefficient that is asked of it, in the
// unit of its line and of the fits before it.
func (c *checker) coefficients(n *node, side string, asking []TableLine, f *Fit, units map[int]string) {
	for i := range asking {
		l, at := &asking[i], n.at(side, i)
		have := coefficients[f.Model]
		if l.Coefficient == "" || have == nil || f.Quantity == "" {
			continue
		}
		unit, _ := CoefficientUnit(*f, l.Coefficient)
		before := units[i]
		units[i] = unit
		switch base, _, ok := DisplayUnit(l.Unit); {
		case !slices.Contains(have, l.Coefficient):
			c.hintName(c.problem(at.at("coefficient").off, "coefficient", "the model %s of the fit %q has no coefficient %q",
				f.Model, f.Name, l.Coefficient), l.Coefficient, "coefficients", have)
		case unit == "":
			c.problem(at.at("coefficient").off, "coefficient", "the slope of a %s over bytes has no unit that a table prints",
				unitWord(f.Quantity.Unit()))
		case ok && base != unit:
			c.problem(at.at("unit").off, "unit", "%s is the unit of a %s, and the %s of the fit %q is a %s", l.Unit,
				unitWord(base), l.Coefficient, f.Name, unitWord(unit))
		case before != "" && before != unit:
			c.problem(at.at("coefficient").off, "coefficient", "the %s of one fit is a %s, that of the fit %q a %s",
				l.Coefficient, unitWord(before), f.Name, unitWord(unit)).
				hintf("give the fits tables of their own")
		case !ok && l.Digits != nil && unit != "1":
			c.problem(at.at("digits").key, "digits", "digits need a unit: the %s of the fit %q is a %s", l.Coefficient, f.Name,
				unitWord(unit))
		}
	}
}

// unitUsed reports a unit of the table that fits none of its quantities.
func (c *checker) unitUsed(n *node, t *Table) {
	base, _, ok := DisplayUnit(t.Unit)
	if ok && !slices.ContainsFunc(slices.Concat(t.Rows, t.Columns),
		func(l TableLine) bool { return l.Quantity != "" && l.Quantity.Unit() == base }) {
		c.problem(n.at("unit").off, "unit", "%s is the unit of a %s, and the table has none", t.Unit, unitWord(base))
	}
}

// digitsUsed reports digits of figures that no unit is given for: without a unit they have no meaning.
func (c *checker) digitsUsed(n *node, t *Table) {
	used := t.Digits == nil
	for _, side := range []string{"columns", "rows"} {
		lines := t.Columns
		if side == "rows" {
			lines = t.Rows
		}
		for i, l := range lines {
			unit, _ := t.Shown(l, TableLine{})
			bare := unit == "" && l.Quantity.Unit() != "1"
			used = used || l.Quantity != "" && !bare
			if l.Quantity != "" && l.Digits != nil && bare {
				c.problem(n.at(side, i).at("digits").key, "digits", "digits need a unit: %s is a %s", l.Quantity,
					unitWord(l.Quantity.Unit()))
			}
		}
	}
	if !used {
		c.problem(n.at("digits").key, "digits", "digits need a unit, and no line of the table has one")
	}
}

// disjoint checks that no key is selected by a row and a column at once.
func (c *checker) disjoint(n *node, t *Table) bool {
	for i := range t.Rows {
		for _, choice := range t.Rows[i].Where {
			for j := range t.Columns {
				if t.Columns[j].Where.names(choice.Key) {
					c.problem(n.at("rows", i).off, choice.Key, "this row and column %d both select by %q", j+1, choice.Key).
						hintf("a cell is what both select: let one of them do it")
					return false
				}
			}
		}
	}
	return true
}

// cells checks what the cells are: one figure each, and in each line at least one.
func (c *checker) cells(n *node, t *Table) {
	filled := map[string]bool{}
	pick := c.picker(t)
	for i := range t.Rows {
		for j := range t.Columns {
			op := Cell(t.Rows[i], t.Columns[j])
			found := []string{}
			if !op.Published && op.Coefficient == "" {
				found = pick(i, j, &op)
			}
			if len(found) > 1 {
				c.problem(n.at("rows", i).off, "rows", "the cell of row %d and column %d is several figures: %s", i+1, j+1,
					shortList(found, 3)).
					hintf("select more: a cell is one figure")
				return
			}
			if len(found) == 1 || op.Fit != "" && op.Coefficient != "" || c.printed(&op.Operand) {
				filled["rows "+strconv.Itoa(i)], filled["columns "+strconv.Itoa(j)] = true, true
			}
		}
	}
	for name, lines := range map[string]int{"columns": len(t.Columns), "rows": len(t.Rows)} { // findings are sorted by place
		for i := range lines {
			if !filled[name+" "+strconv.Itoa(i)] {
				c.problem(n.at(name, i).off, name, "no cell of this line is measured or published").
					hintf("compare it with [matrix] and the phases of the protocol")
			}
		}
	}
}

// printed reports whether the source has a figure for a cell.
func (c *checker) printed(op *Operand) bool {
	return slices.ContainsFunc(c.p.Published, func(f Published) bool { return op.takes(&f, c.p.Source) })
}

// picker finds the figures that a cell could be. What a line selects of the
// cases is looked up once.
func (c *checker) picker(t *Table) func(i, j int, op *TableLine) []string {
	hits := func(lines []TableLine) [][]bool {
		out := make([][]bool, len(lines))
		for i := range lines {
			pick, _ := lines[i].Where.split()
			out[i] = make([]bool, len(c.cases))
			for k := range c.cases {
				out[i][k] = pick.matchAll(c.cases[k].Value)
			}
		}
		return out
	}
	rows, columns := hits(t.Rows), hits(t.Columns)
	keys := map[*Step][]stepID{}
	return func(i, j int, op *TableLine) []string {
		var out []string
		native := op.Where.names("baseline") || op.Where.names("target")
		_, samples := op.Where.split()
		do := op.do()
		for k := range c.cases {
			one := &c.cases[k]
			if !rows[i][k] || !columns[j][k] || one.Baseline && !native || len(one.Steps) == 0 {
				continue
			}
			if keys[&one.Steps[0]] == nil {
				keys[&one.Steps[0]] = stepIDs(one.Steps, 0)
			}
			for _, id := range keys[&one.Steps[0]] {
				if id.do != do {
					continue
				}
				for _, cycle := range id.cycles(samples) {
					if name := one.ID + id.text(cycle); !slices.Contains(out, name) {
						out = append(out, name)
					}
				}
			}
		}
		return out
	}
}

// stepID identifies one figure of a case. A step inside a repeat
// has one in each of its turns, a step outside (turns is 0) one alone.
type stepID struct {
	do, phase string
	turns     int
}

func stepIDs(steps []Step, turns int) []stepID {
	var out []stepID
	for i := range steps {
		out = append(out, stepID{steps[i].Do, steps[i].Phase, turns})
		inside := turns
		if steps[i].Do == "repeat" {
			inside = max(steps[i].Times, 1)
		}
		out = append(out, stepIDs(steps[i].Steps, inside)...)
	}
	return out
}

// cycles are those that a selection takes of the step, 0 for one outside repeats.
// Of cycles that are not selected by number, at most maxLines are listed.
func (s stepID) cycles(samples map[string][]string) []int {
	phases, cycles := samples["phase"], samples["cycle"]
	switch {
	case phases != nil && !slices.Contains(phases, s.phase):
		return nil
	case cycles == nil && s.turns == 0:
		return []int{0}
	}
	var out []int
	if cycles == nil {
		for turn := range min(s.turns, maxLines) {
			out = append(out, turn+1)
		}
		return out
	}
	for _, text := range cycles {
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= s.turns {
			out = append(out, n)
		}
	}
	return out
}

func (s stepID) text(cycle int) string {
	text := ""
	if s.phase != "" {
		text += ", phase " + s.phase
	}
	if cycle > 0 {
		text += ", cycle " + strconv.Itoa(cycle)
	}
	return text
}

// shortList names the first few of a list.
func shortList(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, "; ")
	}
	return strings.Join(list[:most], "; ") + " and " + strconv.Itoa(len(list)-most) + " more"
}
