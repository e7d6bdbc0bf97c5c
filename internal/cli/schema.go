package cli

import (
	"fmt"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"

	"github.com/spf13/cobra"
)

var schemas = []string{"plan", "result", "comparison"}

func (a *app) newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema {plan|result|comparison}", GroupID: "report",
		Args:      between(1, 1, "plan, result or comparison"),
		ValidArgs: schemas,
		Short:     "print the JSON Schema of plans, results or comparisons",
		Long: `Print the JSON Schema of plans, which editors of TOML can use, of
result.json, or of what compare --format json prints.

EXIT STATUS
  0  printed
  2  bad usage`,
		Example: "  dmgbench schema plan > plan.schema.json",
		RunE: func(_ *cobra.Command, args []string) error {
			text := plan.JSONSchema()
			switch args[0] {
			case "plan":
			case "result":
				text = result.JSONSchema()
			case "comparison":
				text = analysis.ComparisonSchema()
			default:
				return &usageError{err: fmt.Errorf("printing schema %q: there are those of %s", args[0], strings.Join(schemas, ", "))}
			}
			_, err := a.out.Write(text)
			return err
		},
	}
}
