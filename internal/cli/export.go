package cli

import (
	"slices"

	"dmgbench/internal/result"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type exportOptions struct{ Dir, Format, Table string }

func (o *exportOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Format, "format", "csv", "`form` of the file: csv, json, jsonl, benchfmt or openmetrics")
	f.StringVar(&o.Table, "table", "", "which `table` csv writes: samples, summaries, steps or tables (default samples)")
}

func (o *exportOptions) validate() error {
	switch {
	case !slices.Contains(result.Formats, o.Format):
		return want("format", o.Format, result.Formats)
	case o.Table != "" && (o.Format != "csv" || !slices.Contains(result.Tables, o.Table)):
		return want("table", o.Table, result.Tables)
	}
	return nil
}

func (a *app) newExportCommand(runF func(exportOptions) error) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use: "export RUN", GroupID: "report", Args: between(1, 1, "RUN"),
		Short: "write the result of a run for another program",
		Long: `Write the result of a run to stdout in a format of another program: csv for
spreadsheets (one table at a time; tables are those of the plan, a row for each
cell), json as result.json has it, jsonl a sample
a line, benchfmt for benchstat, openmetrics for Prometheus.

EXIT STATUS
  0  written
  1  error, such as a damaged journal
  2  bad usage`,
		Example: "  dmgbench export runs/quick-20260101T120000Z --format benchfmt > quick.txt\n" +
			"  dmgbench export runs/quick-20260101T120000Z --table summaries > quick.csv",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dir = args[0]
			if err := o.validate(); err != nil {
				return err
			}
			return runF(o)
		},
	}
	o.AddFlags(cmd.Flags())
	oneOf(cmd, "format", result.Formats)
	oneOf(cmd, "table", result.Tables)
	return cmd
}

func (a *app) runExport(o exportOptions) error {
	d, err := result.OpenRun(o.Dir)
	if err != nil {
		return err
	}
	defer d.Close()
	_, r, err := judge(d)
	if err != nil {
		return err
	}
	return result.Export(a.out, r, o.Format, result.ExportOptions{Table: o.Table})
}
