package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/selftest"

	"github.com/spf13/cobra"
)

type selftestOptions struct {
	Format string
	Seed   uint64
	Study  []string
}

func (a *app) newSelftestCommand() *cobra.Command {
	var o selftestOptions
	cmd := &cobra.Command{
		Use: "selftest", GroupID: "maintain", Args: between(0, 0, ""),
		Short: "prove on a simulated device that the numbers are right",
		Long: `Play whole runs on a simulated device whose truth is known, and set what the
program says against it: rates and latencies are found again exactly where there
is no noise, intervals hold the truth as often as they say, verdicts and
warnings are not given without cause, and a true difference is found. That takes
seconds, writes to no disk and follows from the seed.

Then the harness itself is timed on this machine: what a file costs beside the
device, and so how small a file may be. That figure is this machine's, and
suffers from whatever else runs on it.

docs/accuracy.md has the same studies in full.

EXIT STATUS
  0  every promise is kept
  1  one is not, or another error
  2  bad usage`,
		Example: "  dmgbench selftest\n  dmgbench selftest --seed 7 --format json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Format != "text" && o.Format != "json" {
				return want("format", o.Format, runFormats)
			}
			for _, s := range o.Study {
				if !slices.Contains(selftest.IDs(), s) {
					return want("study", s, selftest.IDs())
				}
			}
			r, err := selftest.Run(cmd.Context(), selftest.Options{Seed: o.Seed, Only: o.Study})
			if err != nil {
				return err
			}
			return a.showSelftest(r, o.Format)
		},
	}
	cmd.Flags().StringVar(&o.Format, "format", "text", "output `format`: text or json")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "`number` that the simulated runs follow from")
	cmd.Flags().StringArrayVar(&o.Study, "study", nil, "one `study` instead of all; repeatable: "+strings.Join(selftest.IDs(), ", "))
	oneOf(cmd, "format", runFormats)
	oneOf(cmd, "study", selftest.IDs())
	return cmd
}

// showSelftest prints the outcome; a promise that is not kept is an error.
func (a *app) showSelftest(r selftest.Report, format string) error {
	text := []byte(r.Text())
	if format == "json" {
		var err error
		if text, err = json.MarshalIndent(r, "", "  "); err != nil {
			return err
		}
		text = append(text, '\n')
	}
	if _, err := a.out.Write(text); err != nil {
		return err
	}
	if !r.Kept {
		return fmt.Errorf("testing the numbers: not every promise is kept")
	}
	return nil
}
