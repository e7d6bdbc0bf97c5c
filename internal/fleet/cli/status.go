package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/report"
)

const (
	watchInterval = time.Second
	maxCell       = 60 // characters
	clearScreen   = "\x1b[H\x1b[2J"
)

// printStatus is the command "status".
func (a *app) printStatus(ctx context.Context, _ []string) error {
	f, err := a.openFleet()
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		var page strings.Builder
		if file, ok := a.stdout.(*os.File); ok && a.isSet("watch") && term.IsTerminal(int(file.Fd())) {
			page.WriteString(clearScreen)
		}
		if err := writeStatus(ctx, f, &page); err != nil {
			return err
		}
		if _, err := io.WriteString(a.stdout, page.String()); err != nil || !a.isSet("watch") {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchInterval):
		}
	}
}

// writeStatus writes both tables.
func writeStatus(ctx context.Context, f *control.Fleet, w io.Writer) error {
	machines, err := f.Machines(ctx)
	if err != nil {
		return err
	}
	jobs, err := f.Jobs(ctx)
	if err != nil {
		return err
	}
	writeTable(w, machineRows(machines, time.Now()))
	fmt.Fprintln(w)
	writeTable(w, jobRows(jobs, time.Now()))
	return nil
}

// machineRows is the table of machines, with its head.
func machineRows(machines []control.Machine, now time.Time) [][]string {
	rows := [][]string{strings.Fields("MACHINE SYSTEM STATE HEARD WAITING JOB CASE ROUND DONE LEFT ERROR")}
	for _, m := range machines {
		if m.Status == nil {
			rows = append(rows, []string{m.Name, "", "not joined", "", fmt.Sprint(m.Waiting), "", "", "", "", "", ""})
			continue
		}
		s, p := m.Status, fleet.Progress{}
		if s.Progress != nil {
			p = *s.Progress
		}
		system := strings.Join(report.NonEmpty([]string{s.Host.OS, s.Host.OSVersion, s.Host.Arch}), " ")
		row := []string{m.Name, system, s.State, age(now, m.Heard), fmt.Sprint(m.Waiting), s.Job, p.Case, "", "", "", s.Error}
		if p.Rounds > 0 {
			row[7] = fmt.Sprintf("%d/%d", p.Round, p.Rounds)
		}
		if p.Of > 0 {
			row[8] = fmt.Sprintf("%.0f %%", 100*float64(p.Bytes)/float64(p.Of))
		}
		if p.Left > 0 {
			row[9] = time.Duration(p.Left).Round(time.Second).String()
		}
		rows = append(rows, row)
	}
	return rows
}

// age is how long ago something was, to the second; clocks may differ.
func age(now, then time.Time) string {
	return max(now.Sub(then), 0).Truncate(time.Second).String() + " ago"
}

// writeTable writes rows in aligned columns. Cells come from other machines.
func writeTable(w io.Writer, rows [][]string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := report.Map(row, func(cell string) string { return cmp.Or(report.Plain(cell, maxCell), "-") })
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // to a builder or to stdout, which later writes report
}

// jobRows is the table of jobs, with its head.
func jobRows(jobs []control.JobView, now time.Time) [][]string {
	rows := [][]string{strings.Fields("JOB PLAN MACHINE TIME STATE RUN ERROR")}
	for _, j := range jobs {
		row := []string{j.Job, j.Plan, j.Machine, "", j.State, "", j.Error}
		if j.Occurrence > 0 {
			row[0] += fmt.Sprintf(" #%d", j.Occurrence+1)
		}
		switch {
		case j.Result != nil:
			row[3], row[5] = age(now, j.Ended), j.Result.Run
		case j.Due.After(now):
			row[3] = "in " + j.Due.Sub(now).Truncate(time.Second).String()
		}
		rows = append(rows, row)
	}
	return rows
}
