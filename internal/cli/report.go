package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/chart"
	"dmgbench/internal/report/html"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/units"
)

// reportRuns is the command "report". One run folder is brought up to date
// first; several are pooled.
func (a *app) reportRuns(_ context.Context, dirs []string) error {
	if err := a.checkReportFlags(len(dirs)); err != nil {
		return err
	}
	if dir := a.text("ledger"); dir != "" {
		l, err := a.runs.Ledger(dir)
		if err != nil {
			return err
		}
		return a.printDocument(report.LedgerDocument(l))
	}
	out, format, methods := a.text("out"), a.text("format"), a.isSet("methods")
	for _, path := range append(slices.Clone(dirs), out, a.text("svg"), a.text("tables")) {
		a.chownAtExit(path)
	}
	update := runfolders.Pool
	if len(dirs) == 1 {
		out = dirs[0]
		update = func([]string, string) (*plan.Plan, *result.Result, error) { return runfolders.Update(out) }
	}
	p, r, err := update(dirs, out)
	if err != nil {
		return err
	}
	saved := (a.text("svg") != "" || a.text("tables") != "") && format == "text"
	counts := a.stdout
	if !saved || methods { // another document is printed there
		counts = a.stderr
	}
	err = errors.Join(saveFiles(counts, a.text("svg"), "pictures", p, r, chart.SVG),
		saveFiles(counts, a.text("tables"), "tables", p, r, text.Tables))
	switch {
	case err != nil:
		return err
	case methods:
		return text.Methods(a.stdout, p, r)
	case saved:
		return nil
	}
	err = a.render(p, r, format)
	if err == nil && format == "text" && out != "" {
		fmt.Fprintln(a.stderr, printable(a.reportPath(out)))
	}
	return err
}

// checkReportFlags refuses combinations of flags and numbers of runs that would
// ignore one of them.
func (a *app) checkReportFlags(runs int) error {
	ledger := a.text("ledger") != ""
	switch {
	case ledger && (runs > 0 || a.text("svg") != "" || a.text("tables") != "" || a.isSet("methods")):
		return usageError("dmgbench report RUN --svg DIR",
			"--ledger takes the runs below its folder, and no RUN, --svg, --tables and --methods")
	case !ledger && runs == 0:
		return usageError("dmgbench report RUN, or --ledger DIR for all runs below a folder",
			"reading the arguments of report: RUN is missing")
	case a.text("out") != "" && runs < 2:
		return usageError("the report of one run is in its own folder", "--out needs several runs")
	}
	return nil
}

// saveFunc writes one file.
type saveFunc = func(name string, data []byte) error

// saveFiles writes a form of the report that articles need into a folder,
// replaces files of the same names, and prints their number to w. Names cannot
// lead out of the folder. The folder above it has to exist. "" saves no files.
func saveFiles(w io.Writer, dir, what string, p *plan.Plan, r *result.Result,
	files func(*plan.Plan, *result.Result, saveFunc) error,
) error {
	if dir == "" {
		return nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the folder of %s: %w", what, err)
	}
	defer root.Close()
	n := 0
	err = files(p, r, func(name string, data []byte) error {
		n++
		return root.WriteFile(name, data, 0o644)
	})
	if err == nil {
		_, err = fmt.Fprintf(w, "%s in %s\n", units.Count(n, "file"), printable(dir))
	}
	return err
}

// render prints the report of a run to stdout.
func (a *app) render(p *plan.Plan, r *result.Result, format string) error {
	switch format {
	case "html":
		return html.Run(a.stdout, p, r)
	case "markdown":
		return text.RunMarkdown(a.stdout, p, r)
	}
	return text.Run(a.stdout, p, r, a.textOptions())
}

// printDocument prints a document as HTML, Markdown or text, as --format
// requests it.
func (a *app) printDocument(d report.Document) error {
	switch a.text("format") {
	case "html":
		return html.Document(a.stdout, d)
	case "markdown":
		return text.DocumentMarkdown(a.stdout, d)
	}
	return text.Document(a.stdout, d, a.textOptions())
}

// warnOutdated warns that a result.json was not used, because plan or journal
// were changed after it was written.
func (a *app) warnOutdated(dir string) {
	a.warn(fmt.Sprintf("%s: %s does not belong to the present plan and journal: analyzed again\n"+
		"  hint: dmgbench report %s writes it again", dir, result.ResultFile, quoted(dir)))
}

// exportRuns is the command "export".
func (a *app) exportRuns(_ context.Context, dirs []string) error {
	format, table := a.text("format"), a.text("table")
	if table != "" && format != "csv" {
		return usageError("", "reading --table: %s has no tables, only csv has", format)
	}
	var all []*result.Result
	for _, dir := range dirs {
		_, r, err := runfolders.Analyze(dir)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	err := export.Write(a.stdout, all, format, table)
	if errors.Is(err, export.ErrOneRun) {
		return usageError("", "%w", err)
	}
	return err
}

// writeJSON prints a value as indented JSON.
func (a *app) writeJSON(v any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
