package cli

import (
	"slices"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var reportFormats = []string{"text", "markdown", "html"}

type reportOptions struct {
	Dirs   []string
	Format string
}

func (o *reportOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Format, "format", "text", "what is printed: text, markdown or html")
}

func (o *reportOptions) validate() error {
	if !slices.Contains(reportFormats, o.Format) {
		return want("format", o.Format, reportFormats)
	}
	return nil
}

func (a *app) newReportCommand(runF func(reportOptions) error) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use: "report RUN...", GroupID: "report", Args: cobra.MinimumNArgs(1),
		Short: "render the report of a run again",
		Long: `Render the report of a run again. result.json and report.html are made anew from
plan.toml and journal.jsonl of the run folder alone: the same two files give the
same bytes. The report is also printed, as text unless --format says otherwise.

EXIT STATUS
  0  rendered, whatever the report says
  1  error, such as a damaged journal
  2  bad usage`,
		Example: "  dmgbench report runs/quick-20260101T120000Z --format markdown",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dirs = args
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
	for _, dir := range o.Dirs {
		p, r, err := finish(dir)
		if err != nil {
			return err
		}
		if err := a.render(p, r, o.Format); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) render(p *plan.Plan, r *result.Result, format string) error {
	switch format {
	case "html":
		return report.HTML(a.out, p, r)
	case "markdown":
		return report.Markdown(a.out, p, r)
	}
	return report.Text(a.out, p, r, a.textOptions())
}
