package cli

import (
	"dmgbench/internal/plan"
	"dmgbench/internal/result"

	"github.com/spf13/cobra"
)

func (a *app) newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema {plan|result}", GroupID: "report",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"plan", "result"},
		Short:     "print the JSON Schema of plans or of result.json",
		Long: `Print the JSON Schema of plans, which editors of TOML can use, or of result.json.

EXIT STATUS
  0  printed
  2  bad usage`,
		Example: "  dmgbench schema plan > plan.schema.json",
		RunE: func(_ *cobra.Command, args []string) error {
			text := plan.JSONSchema()
			if args[0] == "result" {
				text = result.JSONSchema()
			}
			_, err := a.out.Write(text)
			return err
		},
	}
}
