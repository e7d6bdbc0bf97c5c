package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
	"dmgbench/internal/runfolders"
)

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
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding JSON: %w", err)
	}
	_, err = a.stdout.Write(append(b, '\n'))
	return err
}
