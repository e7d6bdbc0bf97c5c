package analysis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/wording"
	"dmgbench/internal/result"
)

// HistoryRun is a run for [NewLedger] and [NewHistory]. Of the result, ledgers
// read claims, sessions, deviations and the plan's name, histories everything
// but the steps of cases and the claims; see [result.ReadSummary].
type HistoryRun struct {
	Result *result.Result
	// Of its report, for links; "" for none
	Path string
	// By which people know it; "" is its id
	Name string
	// Marked as the baseline of its plan
	Baseline bool
}

func (r HistoryRun) name() string { return cmp.Or(r.Name, r.Result.Run) }

// Ledger is the verdicts of many runs: a row for each claim, a column for each
// machine with its system and engine. Lists are never nil.
type Ledger struct {
	Columns  []LedgerColumn
	Variants []LedgerVariant
	Rows     []LedgerRow
	Answers  []string
	// Runs that are not in it, with the reason
	LeftOut []string
}

// LedgerColumn is where claims were judged.
type LedgerColumn struct{ System, Machine, Engine string }

// Name is the column in one line.
func (c LedgerColumn) Name() string { return wording.JoinFacts(c.System, c.Machine, c.Engine) }

// LedgerVariant is one plan as executed: digest and scale. Verdicts of
// different variants carry their marks.
type LedgerVariant struct {
	Mark, Plan, Digest string
	Scale              []string
	Seed               uint64
	Rounds             int
}

// LedgerRow is one claim of one plan.
type LedgerRow struct {
	Plan, ID, Says, By, Scope string
	// One a column
	Cells []LedgerCell
}

// LedgerCell is the verdict of the runs of a column on a claim.
type LedgerCell struct {
	// "" where no run has the claim
	Verdict string
	// The earlier system of the same machine on which the verdict was the other
	Changed string
	// Decided by runs of other sizes or numbers of files than the plan's
	Scaled  bool
	Marks   []string
	Entries []LedgerEntry
}

// LedgerEntry is the verdict of one run.
type LedgerEntry struct {
	Run, Path, Mark string
	// Of its first session, the zero time where that is not known
	Started time.Time
	// False: of another plan or scale than those that decide the cell, or older
	Counts bool
	Claim  result.Claim
	run    HistoryRun
	scale  string
}

// ReadRun reads a run in full, with its plan; nil where that is missing.
type ReadRun func(HistoryRun) (*plan.Plan, *result.Result, error)

// NewLedger sorts the verdicts of runs by claim, system and machine. Of the plans
// as executed in a cell, the one with most runs decides, of as many the newest;
// scaled ones decide only where there are no others. Its runs are judged pooled,
// with the session as the unit, from [minRounds] on: of several runs that are
// judged one by one, some would decide by chance. Runs that cannot be pooled
// decide where all of them agree. Pooled results are left out, as their runs are
// judged here, and so is a run that is given twice.
func NewLedger(runs []HistoryRun, read ReadRun) *Ledger {
	l := &Ledger{Columns: []LedgerColumn{}, Variants: []LedgerVariant{}, Rows: []LedgerRow{}, Answers: []string{}}
	hasClaims := func(r *result.Result) bool { return len(r.Claims) > 0 }
	kept, leftOut := distinctRuns(runs, hasClaims, "left-out.no-claims")
	l.LeftOut = leftOut
	for _, r := range kept {
		if c := columnOf(r.Result); !slices.Contains(l.Columns, c) {
			l.Columns = append(l.Columns, c)
		}
	}
	// Machines by name, and the systems of each by version
	slices.SortStableFunc(l.Columns, func(a, b LedgerColumn) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(engineKind(a.Engine), engineKind(b.Engine)),
			compareNatural(a.System, b.System), compareNatural(a.Engine, b.Engine))
	})
	for _, r := range kept {
		l.addRun(r)
	}
	pools := &pools{read: read, room: changeReads, claims: map[string][]result.Claim{}}
	for i := range l.Rows {
		l.decideRow(&l.Rows[i], pools)
	}
	l.addAnswers()
	return l
}

// distinctRuns drops runs that no ledger and no history has: those that are
// pooled, given twice, or not wanted for the reason of a key. leftOut has the
// reasons.
func distinctRuns(
	runs []HistoryRun, isWanted func(*result.Result) bool, other string,
) (kept []HistoryRun, leftOut []string) {
	leftOut = []string{}
	seen := map[string]bool{}
	for _, run := range runs {
		why, id := "", run.Result.Run
		switch {
		case len(run.Result.Runs) > 0:
			why = wording.Text("left-out.pooled")
		case seen[id]:
			why = wording.Text("left-out.twice", id)
		case !isWanted(run.Result):
			why = wording.Text(other)
		default:
			seen[id], kept = true, append(kept, run)
			continue
		}
		leftOut = append(leftOut, wording.Text("of-case", run.name(), why))
	}
	return kept, leftOut
}

func columnOf(r *result.Result) LedgerColumn {
	return LedgerColumn{System: factsText(r, "os"), Machine: machineText(r), Engine: factsText(r, "engine")}
}

var digits = regexp.MustCompile(`\d+`)

// compareNatural compares texts with the numbers in them as numbers: 26.9
// before 26.10.
func compareNatural(a, b string) int {
	padded := func(text string) string {
		return digits.ReplaceAllStringFunc(text, func(n string) string { return fmt.Sprintf("%20s", n) })
	}
	return cmp.Compare(padded(a), padded(b))
}

// addRun puts the verdicts of a run into their cells, with the mark of its plan
// as executed: a, b, … z, a2 …
func (l *Ledger) addRun(r HistoryRun) {
	scale := scaleFacts(r.Result)
	v, ok := find(l.Variants, func(v LedgerVariant) bool {
		return v.Digest == r.Result.Plan.Digest && v.Plan == r.Result.Plan.Name && slices.Equal(v.Scale, scale)
	})
	if n := len(l.Variants); !ok {
		v = LedgerVariant{string(rune('a' + n%26)), r.Result.Plan.Name, r.Result.Plan.Digest, scale, r.Result.Seed,
			r.Result.Rounds}
		if n >= 26 {
			v.Mark += strconv.Itoa(n/26 + 1)
		}
		l.Variants = append(l.Variants, v)
	}
	at := slices.Index(l.Columns, columnOf(r.Result))
	for _, k := range r.Result.Claims {
		i := slices.IndexFunc(l.Rows, func(row LedgerRow) bool { return row.Plan == v.Plan && row.ID == k.ID })
		if i < 0 {
			i = len(l.Rows)
			l.Rows = append(l.Rows, LedgerRow{Plan: v.Plan, ID: k.ID, Says: k.Says, By: k.By, Scope: k.Scope,
				Cells: make([]LedgerCell, len(l.Columns))})
		}
		cell := &l.Rows[i].Cells[at]
		cell.Marks = appendUnique(cell.Marks, v.Mark)
		cell.Entries = append(cell.Entries, LedgerEntry{Run: r.Result.Run, Path: r.Path, Mark: v.Mark,
			Started: startTime(r.Result), Claim: k, run: r, scale: strings.Join(scale, "; ")})
	}
}

// decideRow gives every cell of a row its verdict, and notes where it reversed.
func (l *Ledger) decideRow(row *LedgerRow, pools *pools) {
	scales := make([]string, len(row.Cells))
	for i := range row.Cells {
		c := &row.Cells[i]
		if len(c.Entries) == 0 {
			continue
		}
		deciding := c.deciding()
		for _, e := range deciding {
			e.Counts = true
		}
		scales[i] = deciding[0].scale
		c.Verdict, c.Scaled = pools.verdict(row.ID, deciding), scales[i] != unscaled
		// Only verdicts of one scale, on one machine and engine, can reverse
		before := -1
		for k, o := range l.Columns[:i] {
			isSame := o.Machine == l.Columns[i].Machine && engineKind(o.Engine) == engineKind(l.Columns[i].Engine)
			if isSame && isDecided(row.Cells[k].Verdict) && scales[k] == scales[i] {
				before = k
			}
		}
		if before >= 0 && isDecided(c.Verdict) && c.Verdict != row.Cells[before].Verdict {
			c.Changed = l.Columns[before].System
		}
	}
}

// deciding are the runs that decide a cell: the newest [changeRuns] of one plan
// as executed, which no verdict has a part in choosing.
func (c *LedgerCell) deciding() []*LedgerEntry {
	byMark := map[string][]*LedgerEntry{}
	for i := range c.Entries {
		e := &c.Entries[i]
		byMark[e.Mark] = append(byMark[e.Mark], e)
	}
	newest := func(list []*LedgerEntry) time.Time {
		return slices.MaxFunc(list, func(a, b *LedgerEntry) int { return a.Started.Compare(b.Started) }).Started
	}
	marks, isScaled := c.Marks, func(mark string) bool { return byMark[mark][0].scale != unscaled }
	if whole := slices.DeleteFunc(slices.Clone(marks), isScaled); len(whole) > 0 {
		marks = whole
	}
	best := slices.MaxFunc(marks, func(m, n string) int {
		a, b := byMark[m], byMark[n]
		return cmp.Or(cmp.Compare(len(a), len(b)), newest(a).Compare(newest(b)))
	})
	out := byMark[best]
	slices.SortStableFunc(out, func(a, b *LedgerEntry) int { return a.Started.Compare(b.Started) })
	return out[max(len(out)-changeRuns, 0):]
}

// pools judges several runs together.
type pools struct {
	read ReadRun
	// Runs that may still be read
	room int
	// By the ids of the runs; nil where they cannot be pooled
	claims map[string][]result.Claim
}

// verdict is that of several runs of one plan on a claim.
func (x *pools) verdict(id string, entries []*LedgerEntry) string {
	if len(entries) >= minRounds {
		if k, ok := find(x.judge(entries), func(k result.Claim) bool { return k.ID == id }); ok {
			return k.Verdict
		}
	}
	return commonVerdict(mapped(entries, func(e *LedgerEntry) string { return e.Claim.Verdict }))
}

func (x *pools) judge(entries []*LedgerEntry) []result.Claim {
	key := strings.Join(mapped(entries, func(e *LedgerEntry) string { return e.Run }), "\x00")
	if claims, ok := x.claims[key]; ok || len(entries) > x.room {
		return claims
	}
	x.room -= len(entries)
	x.claims[key] = nil
	var p *plan.Plan
	var runs []*result.Result
	for _, e := range entries {
		own, r, err := x.read(e.run)
		if err != nil {
			return nil
		}
		p, runs = own, append(runs, r)
	}
	// Not pooled: [commonVerdict] decides
	x.claims[key], _ = judgePooled(p, runs)
	return x.claims[key]
}

// commonVerdict is the verdict in which all runs agree that measured the claim.
// Without runs it is "".
func commonVerdict(verdicts []string) string {
	if len(verdicts) == 0 {
		return ""
	}
	isMissing := func(v string) bool { return v == result.NotMeasured }
	measured := slices.DeleteFunc(slices.Clone(verdicts), isMissing)
	switch {
	case len(measured) == 0:
		return result.NotMeasured
	case slices.ContainsFunc(measured, func(v string) bool { return v != measured[0] }):
		return result.CannotTell
	}
	return measured[0]
}

// addAnswers reports for each column which claims are still true there.
func (l *Ledger) addAnswers() {
	for i, c := range l.Columns {
		var no, reversed []string
		judged, scaled, open := 0, 0, 0
		for _, row := range l.Rows {
			cell := row.Cells[i]
			switch {
			case isDecided(cell.Verdict):
				judged++
			case cell.Verdict != "":
				open++
			}
			if cell.Verdict == result.DoesNotHold {
				no = append(no, "“"+row.Says+"”")
			}
			if cell.Scaled && isDecided(cell.Verdict) {
				scaled++
			}
			if cell.Changed != "" {
				verdict := wording.Text("verdict." + cell.Verdict)
				reversed = append(reversed, wording.Text("ledger.reversed", row.Says, verdict, cell.Changed))
			}
		}
		text := wording.Text("ledger.hold", c.Name(), judged-len(no), wording.Count{N: judged, Noun: "claim"})
		for _, more := range []struct {
			key   string
			n     int
			value any
		}{{"ledger.some-scaled", scaled, scaled}, {"ledger.not", len(no), strings.Join(no, ", ")},
			{"ledger.open", open, open}, {"ledger.all-reversed", len(reversed), strings.Join(reversed, "; ")}} {
			if more.n > 0 {
				text += wording.Text(more.key, more.value)
			}
		}
		l.Answers = append(l.Answers, text)
	}
}
