package cli

import (
	"context"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

var schemas = []string{"plan", "result", "comparison"}

// printSchema is the command "schema".
func (a *app) printSchema(_ context.Context, args []string) error {
	schema := map[string]func() []byte{"plan": plan.JSONSchema, "result": result.JSONSchema,
		"comparison": analysis.ComparisonSchema}[args[0]]
	if schema == nil {
		return usageError("", "printing schema %q: it is not one of %s", args[0], strings.Join(schemas, ", "))
	}
	_, err := a.stdout.Write(schema())
	return err
}
