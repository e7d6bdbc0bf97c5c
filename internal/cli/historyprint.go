package cli

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

func historyJSON(w io.Writer, runs []pastRun) error {
	if runs == nil {
		runs = []pastRun{}
	}
	b, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the history: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// historyColumns are the columns of the csv, each with what it says of a run.
var historyColumns = []struct {
	name string
	of   func(pastRun) string
}{
	{"dir", func(p pastRun) string { return p.Dir }},
	{"run", func(p pastRun) string { return p.Run }},
	{"started", func(p pastRun) string { return moment(p.Started) }},
	{"finished", func(p pastRun) string { return moment(p.Finished) }},
	{"plan", func(p pastRun) string { return p.Plan }},
	{"title", func(p pastRun) string { return p.Title }},
	{"digest", func(p pastRun) string { return p.Digest }},
	{"engine", func(p pastRun) string { return p.Engine }},
	{"engine_name", func(p pastRun) string { return p.EngineName }},
	{"system", func(p pastRun) string { return p.System }},
	{"machine", func(p pastRun) string { return p.Machine }},
	{"status", func(p pastRun) string { return p.Status }},
	{"baseline", func(p pastRun) string { return strconv.FormatBool(p.Baseline) }},
	{"sessions", func(p pastRun) string { return strconv.Itoa(p.Sessions) }},
	{"rounds", func(p pastRun) string { return strconv.Itoa(p.Rounds) }},
	{"cases_done", func(p pastRun) string { return strconv.Itoa(p.Cases[result.Done]) }},
	{"cases_failed", func(p pastRun) string { return strconv.Itoa(p.Cases[result.Failed]) }},
	{"cases_discarded", func(p pastRun) string { return strconv.Itoa(p.Cases[result.Discarded]) }},
	{"cases_skipped", func(p pastRun) string { return strconv.Itoa(p.Cases[result.Skipped]) }},
	{"holds", func(p pastRun) string { return strconv.Itoa(p.Verdicts["holds"]) }},
	{"does_not_hold", func(p pastRun) string { return strconv.Itoa(p.Verdicts["does_not_hold"]) }},
	{"cannot_tell", func(p pastRun) string { return strconv.Itoa(p.Verdicts["cannot_tell"]) }},
	{"not_measured", func(p pastRun) string { return strconv.Itoa(p.Verdicts["not_measured"]) }},
	{"departures", func(p pastRun) string { return strconv.Itoa(p.Departures) }},
	{"headline_case", func(p pastRun) string { return orNone(p.Headline).Case }},
	{"headline_phase", func(p pastRun) string { return orNone(p.Headline).Phase }},
	{"headline_op", func(p pastRun) string { return orNone(p.Headline).Op }},
	{"headline_bytes_per_second", func(p pastRun) string {
		if p.Headline == nil {
			return ""
		}
		return strconv.FormatFloat(p.Headline.Value, 'f', -1, 64)
	}},
	{"headline_ci_low_bytes_per_second", func(p pastRun) string { return digits(orNone(p.Headline).Low) }},
	{"headline_ci_high_bytes_per_second", func(p pastRun) string { return digits(orNone(p.Headline).High) }},
}

func orNone(h *headline) headline {
	if h == nil {
		return headline{}
	}
	return *h
}

func digits(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func historyCSV(w io.Writer, runs []pastRun) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	row := make([]string, len(historyColumns))
	for i, c := range historyColumns {
		row[i] = c.name
	}
	if err := out.Write(row); err != nil {
		return err
	}
	for _, p := range runs {
		for i, c := range historyColumns {
			row[i] = result.PlainCell(c.of(p))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// historyText writes a line for each run, its first columns aligned; width 0 cuts nothing.
func historyText(w io.Writer, runs []pastRun, width int) error {
	rows, wide := make([][]string, len(runs)), []int{}
	for i, p := range runs {
		rows[i] = historyLine(p)
		for k, text := range rows[i] {
			if k == len(wide) {
				wide = append(wide, 0)
			}
			wide[k] = max(wide[k], utf8.RuneCountInString(text))
		}
	}
	for _, row := range rows {
		line := ""
		for k, text := range row {
			line += text + strings.Repeat(" ", wide[k]-utf8.RuneCountInString(text)+2)
		}
		line = strings.TrimRight(strings.ReplaceAll(printable(line), "\n", " "), " ")
		if width > 0 {
			line = cut(line, width)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// unfinished says what can be done about a run that has not ended.
func unfinished(dir string) string {
	if result.Running(dir) {
		return "still running"
	}
	return "to go on: dmgbench resume " + quoted(dir)
}

// historyLine are the columns of a run: what a run is searched by comes first.
func historyLine(p pastRun) []string {
	when := "time unknown"
	if !p.Started.IsZero() {
		when = p.Started.Format("2006-01-02 15:04")
	}
	status := cmp.Or(p.Status, "status unknown")
	if p.Baseline {
		status += ", baseline"
	}
	rate := "no rate"
	if p.Headline != nil {
		rate = p.Headline.text()
	}
	if p.Status == result.Unfinished && p.Pooled == 0 {
		rate = unfinished(p.path)
	}
	return []string{when, p.Dir, cmp.Or(p.Plan, "plan unknown"), status, rate,
		tally(p.Cases, "case", []kind{{result.Done, "done", ""}, {result.Failed, "failed", ""}, {result.Discarded, "discarded", ""}, {result.Skipped, "skipped", ""}}),
		tally(p.Verdicts, "claim", []kind{{result.Holds, "hold", "holds"}, {result.DoesNotHold, "do not hold", "does not hold"},
			{result.CannotTell, "undecided", ""}, {result.NotMeasured, "not measured", ""}}),
		cmp.Or(strings.Trim(p.System+", "+p.Machine, ", "), "system and machine unknown"), cmp.Or(p.Engine, "engine unknown")}
}

// kind is a status or verdict with its name in a count; one is the name of a single one, if it differs.
type kind struct{ id, name, one string }

// tally counts kinds in words, those that there are none of left out.
func tally(counts map[string]int, noun string, kinds []kind) string {
	var parts []string
	total := 0
	for _, k := range kinds {
		if n := counts[k.id]; n > 0 {
			name := k.name
			if n == 1 {
				name = cmp.Or(k.one, k.name)
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, name))
			total += n
		}
	}
	if total == 0 {
		return "no " + noun + "s"
	}
	return count(total, noun) + " (" + strings.Join(parts, ", ") + ")"
}

// text is the rate without its interval, which the other formats have.
func (h headline) text() string {
	return strings.Join(strings.Fields(h.Op+" "+h.Phase), " ") + " " + units.Rate(h.Value).Human() + ", " + h.Case
}
