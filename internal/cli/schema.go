package cli

import (
	"fmt"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"

	"github.com/spf13/cobra"
)

var schemas = []string{"plan", "result"}

func (a *app) newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema {plan|result}", GroupID: "report",
		Args:      between(1, 1, "plan or result"),
		ValidArgs: schemas,
		Short:     "print the JSON Schema of plans or of result.json",
		Long: `Print the JSON Schema of plans, which editors of TOML can use, or of
result.json.

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
			default:
				return &usageError{err: fmt.Errorf("printing schema %q: there are those of %s", args[0], strings.Join(schemas, " and "))}
			}
			_, err := a.out.Write(text)
			return err
		},
	}
}
