//go:build !linux && !darwin

package files

import (
	"fmt"

	"dmgbench/internal/hostio"
)

// Xattr is refused: extended attributes of this system are not supported.
func Xattr(_ *hostio.Dir, container, action, name, _ string) (map[string]string, error) {
	return nil, fmt.Errorf("%s attribute %q of %q: %w", action, name, container, hostio.ErrUnsupported)
}
