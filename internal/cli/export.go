package cli

import (
	"errors"
	"slices"

	"dmgbench/internal/result"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type exportOptions struct {
	Dirs          []string
	Format, Table string
}

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
		Use: "export RUN...", GroupID: "report", Args: between(1, -1, "RUN"),
		Short: "write the result of runs for another program",
		Long: `Write the result of a run to stdout in a format of another program: csv for
spreadsheets (one table at a time; tables are those of the plan, a row for each
cell), json as result.json has it, jsonl a sample
a line, benchfmt for benchstat, openmetrics for Prometheus. Several runs go into
one file as benchfmt, jsonl and csv, where each row names its run; for csv their
cases need the same keys.

EXIT STATUS
  0  written
  1  error, such as a damaged journal
  2  bad usage`,
		Example: "  dmgbench export runs/quick-20260101T120000Z --format benchfmt > quick.txt\n" +
			"  dmgbench export runs/quick-20260101T120000Z --table summaries > quick.csv",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dirs = args
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
	var all []*result.Result
	for _, dir := range o.Dirs {
		r, err := judged(dir)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	err := result.ExportAll(a.out, all, o.Format, result.ExportOptions{Table: o.Table})
	if errors.Is(err, result.ErrOneRun) {
		return &usageError{err: err}
	}
	return err
}

// judged is the result of the run in a folder.
func judged(dir string) (*result.Result, error) {
	d, err := result.OpenRun(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	_, r, err := judge(d)
	return r, err
}
