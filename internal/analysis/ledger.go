package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dmgbench/internal/result"
)

// LedgerRun is a run for [NewLedger]; of the result, claims, sessions, departures
// and the plan's name are read.
type LedgerRun struct {
	Result *result.Result
	Path   string // of its report, for links; "" for none
	Name   string // by which it is told from others that are left out; "" is its id
}

func (r LedgerRun) name() string { return cmp.Or(r.Name, cmp.Or(r.Path, r.Result.Run)) }

// Ledger is the verdicts of many runs: a row for each claim, a column for each
// machine with its system and engine. Lists are never nil.
type Ledger struct {
	Columns  []LedgerColumn
	Variants []LedgerVariant
	Rows     []LedgerRow
	Answers  []string
	LeftOut  []string // runs that are not in it, with the reason
}

// LedgerColumn is where claims were judged.
type LedgerColumn struct{ System, Machine, Engine string }

// Name is the column in one line.
func (c LedgerColumn) Name() string {
	return strings.Join(slices.DeleteFunc([]string{c.System, c.Machine, c.Engine}, func(s string) bool { return s == "" }), ", ")
}

// LedgerVariant is one plan as executed: digest and scale. Verdicts of different
// variants carry their marks.
type LedgerVariant struct {
	Mark, Plan, Digest string
	Scale              []string
	Seed               uint64
	Rounds             int
}

// LedgerRow is one claim of one plan.
type LedgerRow struct {
	Plan, ID, Says, By, Scope string
	Cells                     []LedgerCell // one a column
}

// LedgerCell is the verdict of the runs of a column on a claim.
type LedgerCell struct {
	Verdict string // "" where no run has the claim
	Changed string // the earlier system of the same machine on which the verdict was the other
	Scaled  bool   // decided by runs of other sizes or numbers of files than the plan's
	Marks   []string
	Entries []LedgerEntry
}

// LedgerEntry is the verdict of one run.
type LedgerEntry struct {
	Run, Path, Mark string
	Started         time.Time // of its first session, the zero time where that is not known
	Counts          bool      // false: measured at another scale than others of the cell, which decide
	Claim           result.Claim
}

const unscaled = "as the plan has it"

// NewLedger sorts the verdicts of runs by claim, system and machine. It is a pure
// function of them and does not judge again: the verdict of a cell is the one that
// all deciding runs agree in, and cannot_tell where they contradict each other.
// Where some runs of a cell were scaled and others not, the others decide; which
// plan as executed each verdict belongs to, its mark shows. Pooled results are left out,
// as their runs speak for themselves, and so is a run that is there twice.
func NewLedger(runs []LedgerRun) *Ledger {
	l := &ledgerMaker{out: &Ledger{Columns: []LedgerColumn{}, Variants: []LedgerVariant{}, Rows: []LedgerRow{}, Answers: []string{}, LeftOut: []string{}}}
	seen := map[string]bool{}
	for _, r := range runs {
		switch {
		case len(r.Result.Runs) > 0:
			l.out.LeftOut = append(l.out.LeftOut, r.name()+": pooled of runs that speak for themselves")
		case seen[r.Result.Run]:
			l.out.LeftOut = append(l.out.LeftOut, fmt.Sprintf("%s: run %s is there already", r.name(), r.Result.Run))
		case len(r.Result.Claims) == 0:
			l.out.LeftOut = append(l.out.LeftOut, r.name()+": its plan claims nothing")
		default:
			seen[r.Result.Run] = true
			l.kept = append(l.kept, r)
		}
	}
	l.columns()
	for _, r := range l.kept {
		l.addRun(r)
	}
	for i := range l.out.Rows {
		l.decideRow(&l.out.Rows[i])
	}
	l.answers()
	return l.out
}

type ledgerMaker struct {
	out  *Ledger
	kept []LedgerRun
}

func columnOf(r *result.Result) LedgerColumn {
	model := strings.TrimSpace(factsText(r, []string{"model"}))
	if cpu := factsText(r, []string{"cpu"}); cpu != "cpu unknown" && !strings.Contains(model, cpu) {
		model += ", " + cpu
	}
	return LedgerColumn{System: factsText(r, []string{"os"}), Machine: model, Engine: factsText(r, []string{"engine"})}
}

// engineKind is the engine without its version, which goes with the system's.
func engineKind(title string) string {
	name, _, _ := strings.Cut(title, ",")
	return name
}

// columns sorts machines by name, and the systems of each by version.
func (l *ledgerMaker) columns() {
	for _, r := range l.kept {
		if c := columnOf(r.Result); !slices.Contains(l.out.Columns, c) {
			l.out.Columns = append(l.out.Columns, c)
		}
	}
	slices.SortStableFunc(l.out.Columns, func(a, b LedgerColumn) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(engineKind(a.Engine), engineKind(b.Engine)),
			compareNatural(a.System, b.System), compareNatural(a.Engine, b.Engine))
	})
}

// compareNatural compares texts with the numbers in them as numbers: 26.9 before 26.10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := leading(a), leading(b)
		m, errX := strconv.Atoi(x)
		n, errY := strconv.Atoi(y)
		order := cmp.Compare(x, y)
		if errX == nil && errY == nil {
			order = cmp.Or(cmp.Compare(m, n), order)
		}
		if order != 0 {
			return order
		}
		a, b = a[len(x):], b[len(y):]
	}
	return cmp.Compare(len(a), len(b))
}

// leading is the first stretch of digits, or of anything else.
func leading(s string) string {
	digit := false
	for i, r := range s {
		if i == 0 {
			digit = unicode.IsDigit(r)
		} else if unicode.IsDigit(r) != digit {
			return s[:i]
		}
	}
	return s
}

// variant is the mark of a run's plan as executed: a, b, … z, a2 …
func (l *ledgerMaker) variant(r *result.Result) (mark string, scale []string) {
	scale = scaleFacts(r)
	for _, v := range l.out.Variants {
		if v.Digest == r.Plan.Digest && v.Plan == r.Plan.Name && slices.Equal(v.Scale, scale) {
			return v.Mark, scale
		}
	}
	n := len(l.out.Variants)
	mark = string(rune('a' + n%26))
	if n >= 26 {
		mark += strconv.Itoa(n/26 + 1)
	}
	l.out.Variants = append(l.out.Variants, LedgerVariant{mark, r.Plan.Name, r.Plan.Digest, scale, r.Seed, r.Rounds})
	return mark, scale
}

// addWay puts the verdicts of a run into their cells.
func (l *ledgerMaker) addRun(r LedgerRun) {
	mark, scale := l.variant(r.Result)
	at := slices.Index(l.out.Columns, columnOf(r.Result))
	for _, k := range r.Result.Claims {
		i := slices.IndexFunc(l.out.Rows, func(row LedgerRow) bool { return row.Plan == r.Result.Plan.Name && row.ID == k.ID })
		if i < 0 {
			i = len(l.out.Rows)
			l.out.Rows = append(l.out.Rows, LedgerRow{Plan: r.Result.Plan.Name, ID: k.ID, Says: k.Says, By: k.By, Scope: k.Scope,
				Cells: make([]LedgerCell, len(l.out.Columns))})
		}
		cell := &l.out.Rows[i].Cells[at]
		cell.Entries = append(cell.Entries, LedgerEntry{Run: r.Result.Run, Path: r.Path, Mark: mark, Started: startTime(r.Result), Counts: slices.Equal(scale, []string{unscaled}), Claim: k})
	}
}

// startTime is the start of the first session.
func startTime(r *result.Result) time.Time {
	if len(r.Sessions) == 0 {
		return time.Time{}
	}
	return r.Sessions[0].Started
}

// decideRow gives every cell of a row its verdict, and notes where it reversed.
func (l *ledgerMaker) decideRow(row *LedgerRow) {
	for i := range row.Cells {
		c := &row.Cells[i]
		if !slices.ContainsFunc(c.Entries, func(e LedgerEntry) bool { return e.Counts }) {
			first := "" // of scaled runs only, those of the first scale decide
			for k := range c.Entries {
				e := &c.Entries[k]
				if first == "" {
					first = l.scaleOf(e.Mark)
				}
				e.Counts = l.scaleOf(e.Mark) == first
			}
		}
		var deciding []string
		for _, e := range c.Entries {
			if e.Counts {
				deciding = append(deciding, e.Claim.Verdict)
			}
			c.Marks = appendUnique(c.Marks, e.Mark)
		}
		c.Verdict = combineVerdicts(deciding)
		c.Scaled = c.Verdict != "" && l.deciding(*c) != unscaled
	}
	for i := range row.Cells {
		for k := i - 1; k >= 0 && l.sameMachine(i, k); k-- {
			if before := row.Cells[k].Verdict; decisive(before) && l.deciding(row.Cells[k]) == l.deciding(row.Cells[i]) {
				if now := row.Cells[i].Verdict; decisive(now) && now != before {
					row.Cells[i].Changed = l.out.Columns[k].System
				}
				break
			}
		}
	}
}

func (l *ledgerMaker) scaleOf(mark string) string {
	i := slices.IndexFunc(l.out.Variants, func(v LedgerVariant) bool { return v.Mark == mark })
	return strings.Join(l.out.Variants[i].Scale, "; ")
}

// deciding is the scale of the runs that decide a cell: only verdicts of one
// scale can turn round.
func (l *ledgerMaker) deciding(c LedgerCell) string {
	for _, e := range c.Entries {
		if e.Counts {
			return l.scaleOf(e.Mark)
		}
	}
	return ""
}

func (l *ledgerMaker) sameMachine(i, k int) bool {
	a, b := l.out.Columns[i], l.out.Columns[k]
	return a.Machine == b.Machine && engineKind(a.Engine) == engineKind(b.Engine)
}

// answers reports for each column what is still true there.
func (l *ledgerMaker) answers() {
	for i, c := range l.out.Columns {
		var no, turned []string
		judged, holds, scaled, open := 0, 0, 0, 0
		for _, row := range l.out.Rows {
			cell := row.Cells[i]
			switch {
			case cell.Verdict == "":
				continue
			case cell.Verdict == result.Holds:
				judged++
				holds++
			case cell.Verdict == result.DoesNotHold:
				judged++
				no = append(no, "“"+row.Says+"”")
			default:
				open++
			}
			if cell.Scaled && decisive(cell.Verdict) {
				scaled++
			}
			if cell.Changed != "" {
				turned = append(turned, fmt.Sprintf("“%s” %s, unlike in %s", row.Says, strings.ReplaceAll(cell.Verdict, "_", " "), cell.Changed))
			}
		}
		text := c.Name() + ": no claim could be judged"
		if judged > 0 {
			text = fmt.Sprintf("%s: %d of %s judged hold", c.Name(), holds, plural(judged, "claim"))
		}
		switch {
		case scaled > 0 && scaled == judged:
			text += ", seen in scaled runs only"
		case scaled > 0:
			text += fmt.Sprintf(", %d of these seen in scaled runs only", scaled)
		}
		if len(no) > 0 {
			text += "; not " + strings.Join(no, ", ")
		}
		if open > 0 {
			text += fmt.Sprintf("; %d undecided or not measured", open)
		}
		if len(turned) > 0 {
			text += ". Turned round: " + strings.Join(turned, "; ")
		}
		l.out.Answers = append(l.out.Answers, text)
	}
}

// combineVerdicts is the verdict of several runs, whatever their order: one that decides
// wins over those that do not, and two that contradict each other do not decide,
// however many others there are. Of no runs it is "".
func combineVerdicts(verdicts []string) string {
	order := []string{"", result.NotMeasured, result.CannotTell}
	open, decided := 0, ""
	for _, v := range verdicts {
		switch {
		case !decisive(v):
			open = max(open, slices.Index(order, v))
		case decided != "" && decided != v:
			return result.CannotTell
		default:
			decided = v
		}
	}
	return cmp.Or(decided, order[open])
}
