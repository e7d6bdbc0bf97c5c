//go:build !linux && !darwin

package inprocess

import (
	"context"

	"dmgbench/internal/engine"
)

// Xattr is refused: nothing is known of extended attributes on this system.
func (c *image) Xattr(context.Context, string, string, string) (engine.Report, error) {
	return engine.Report{}, refuse("extended attributes", "use Linux or macOS")
}
