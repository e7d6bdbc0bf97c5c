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

// historyText writes a few lines for each run; width 0 cuts nothing.
func historyText(w io.Writer, runs []pastRun, width int) error {
	for _, p := range runs {
		when := "time unknown    "
		if !p.Started.IsZero() {
			when = p.Started.Format("2006-01-02 15:04")
		}
		name := p.Dir
		if p.Baseline {
			name += "  (baseline)"
		}
		lines := []string{when + "  " + name,
			cmp.Or(p.Plan, "plan unknown") + ", " + cmp.Or(p.Engine, "engine unknown"),
			cmp.Or(strings.Trim(p.System+", "+p.Machine, ", "), "system and machine unknown"),
			cmp.Or(p.Status, "status unknown") + ": " + tally(p.Cases, "case", []string{result.Done, result.Failed, result.Discarded, result.Skipped}) +
				"; " + tally(p.Verdicts, "claim", []string{"holds", "does_not_hold", "cannot_tell", "not_measured"})}
		if p.Headline != nil {
			lines = append(lines, p.Headline.text())
		}
		if p.Status == result.Unfinished && p.Pooled == 0 {
			lines = append(lines, unfinished(p.path))
		}
		for i, line := range lines {
			if line = printable(line); i > 0 {
				line = strings.Repeat(" ", len("2006-01-02 15:04  ")) + line
			}
			if width > 0 {
				line = cut(line, width)
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
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

// tally counts kinds in words, those that there are none of left out.
func tally(counts map[string]int, noun string, kinds []string) string {
	var parts []string
	total := 0
	for _, k := range kinds {
		if n := counts[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(k, "_", " ")))
			total += n
		}
	}
	if total == 0 {
		return "no " + noun + "s"
	}
	return count(total, noun) + " (" + strings.Join(parts, ", ") + ")"
}

func (h headline) text() string {
	text := strings.Join(strings.Fields(h.Op+" "+h.Phase), " ") + " " + units.Rate(h.Value).Human()
	if h.Low != nil && h.High != nil {
		text += " [" + units.Rate(*h.Low).Human() + " to " + units.Rate(*h.High).Human() + "]"
	}
	return text + ", " + h.Case
}
