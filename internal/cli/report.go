package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var reportFormats = []string{"text", "markdown", "html"}

type reportOptions struct {
	Dirs    []string
	Format  string
	Out     string
	Ledger  string
	SVG     string
	Tables  string
	Methods bool
	Verbose bool
}

func (o *reportOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Format, "format", "text", "output `format`: text, markdown or html")
	f.StringVar(&o.Out, "out", "", "new `folder` for the pooled report of several runs")
	f.StringVar(&o.SVG, "svg", "", "save every chart as SVG into a `folder` instead of printing text")
	f.StringVar(&o.Tables, "tables", "", "save every table of the plan as HTML, Markdown and TSV into a `folder` instead of printing text")
	f.BoolVar(&o.Verbose, "verbose", false, "print the whole report")
	f.BoolVar(&o.Methods, "methods", false, "print the Methods paragraphs of what was run instead of the report")
	f.StringVar(&o.Ledger, "ledger", "", "verdicts of all runs below a `folder`, by claim, system, machine and engine")
}

// saved reports whether files are all that is wanted.
func (o *reportOptions) saved() bool { return (o.SVG != "" || o.Tables != "") && o.Format == "text" }

func (o *reportOptions) validate() error {
	if !slices.Contains(reportFormats, o.Format) {
		return want("format", o.Format, reportFormats)
	}
	switch {
	case o.Ledger != "" && (o.SVG != "" || o.Tables != "" || o.Methods):
		return &usageError{err: errors.New("--svg, --tables and --methods are of a run, not of --ledger"), hint: "dmgbench report RUN --svg DIR"}
	case o.Ledger != "" && len(o.Dirs) > 0:
		return &usageError{err: errLedgerRuns, hint: "leave the runs out, or --ledger"}
	case o.Ledger == "" && len(o.Dirs) == 0:
		return &usageError{err: errors.New("reading the arguments of report: RUN is missing"), hint: "dmgbench report RUN, or --ledger DIR for all runs below a folder"}
	}
	if o.Out != "" && len(o.Dirs) < 2 {
		return &usageError{err: errors.New("--out needs several runs"), hint: "the report of one run is in its own folder"}
	}
	return nil
}

func (a *app) newReportCommand(runF func(reportOptions) error) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use: "report RUN...", GroupID: "report", Args: between(0, -1, "RUN"),
		Short: "render the report of a run, or pool several runs of one plan",
		Long: `Render the report of a run again. result.json and report.html are made anew
from plan.toml and journal.jsonl of the run folder alone: the same two files
give the same bytes. A summary of one screen is also printed, with --verbose all
of the report, or the report in another --format.

Several runs are pooled into one report if they are repetitions: the same plan
as executed, machine, system and engine. Every run keeps its own rounds and
sessions. From three runs on, each run counts as one value, since the rounds of
a session share whatever that session was like; the rounds of two runs are
taken together, with a warning where the two differ. The run folders stay as
they are; --out puts plan.toml, result.json and report.html into a new folder.

--ledger DIR answers "is it still true in 26.5?": the verdicts of all runs below
DIR, a row for each claim and a column for each system, machine and engine. In
HTML each cell opens its evidence, and leads to the reports if the page lies in
DIR.

--svg saves every chart as a picture for an article, as the page draws it, with
machine, system, engine, plan and the meaning of its bars inside; --tables saves
every [[table]] of the plan as HTML, Markdown and TSV. Both write over their own
files in the folder, and print how many they are in place of the summary.
--methods prints the paragraphs that an article needs of what was run.

EXIT STATUS
  0  rendered, whatever the report says
  1  error, such as a damaged journal, or runs that are no repetitions
  2  bad usage`,
		Example: "  dmgbench report runs/quick-20260101T120000Z\n" +
			"  dmgbench report runs/quick-20260101T120000Z --format markdown > quick.md\n" +
			"  dmgbench run runs/quick-20260101T120000Z/plan.toml --out runs/again\n" +
			"  dmgbench report runs/quick-20260101T120000Z runs/again --out runs/pooled\n" +
			"  dmgbench report --ledger runs --format html > runs/ledger.html",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dirs, a.verbose = args, o.Verbose
			if err := o.validate(); err != nil {
				return err
			}
			return runF(o)
		},
	}
	o.AddFlags(cmd.Flags())
	oneOf(cmd, "format", reportFormats)
	return cmd
}

func (a *app) runReport(o reportOptions) error {
	if o.Ledger != "" {
		return a.runLedger(o)
	}
	for _, path := range append(slices.Clone(o.Dirs), o.Out, o.SVG, o.Tables) {
		a.leaves(path)
	}
	p, r, err := reported(o)
	if err != nil {
		return err
	}
	if o.SVG != "" {
		err := a.save(o, o.SVG, "pictures", func(save func(string, []byte) error) error { return report.SVG(p, r, save) })
		if err != nil {
			return err
		}
	}
	if o.Tables != "" {
		err := a.save(o, o.Tables, "tables", func(save func(string, []byte) error) error { return text.Tables(p, r, save) })
		if err != nil {
			return err
		}
	}
	if o.Methods {
		return text.Methods(a.out, p, r)
	}
	if o.saved() {
		return nil
	}
	if err := a.render(p, r, o.Format); err != nil || o.Format != "text" {
		return err
	}
	if len(o.Dirs) == 1 {
		a.nameReport(o.Dirs[0])
	} else if o.Out != "" {
		a.nameReport(o.Out)
	}
	return nil
}

// save writes files into a folder, over those of the same names, and prints how many.
func (a *app) save(o reportOptions, dir, what string, write func(save func(name string, text []byte) error) error) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the folder of %s: %w", what, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the folder of %s: %w", what, err)
	}
	defer root.Close()
	n := 0
	if err := write(func(name string, text []byte) error { n++; return root.WriteFile(name, text, 0o644) }); err != nil {
		return err
	}
	to := a.out
	if !o.saved() || o.Methods { // what is printed there is another document
		to = a.err
	}
	_, err = fmt.Fprintf(to, "%s in %s\n", count(n, "file"), printable(dir))
	return err
}

// reported is the result to print: of one run, whose folder is brought up to date,
// or of several together.
func reported(o reportOptions) (*plan.Plan, *result.Result, error) {
	if len(o.Dirs) == 1 {
		return finish(o.Dirs[0])
	}
	return pool(o.Dirs, o.Out)
}

func (a *app) render(p *plan.Plan, r *result.Result, format string) error {
	switch format {
	case "html":
		return report.HTML(a.out, p, r)
	case "markdown":
		return text.RunMarkdown(a.out, p, r)
	}
	return text.Run(a.out, p, r, a.textOptions())
}
