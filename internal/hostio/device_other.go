//go:build !linux && !darwin

package hostio

import "fmt"

// DeviceBytes is known on Linux and macOS only: [ErrUnsupported].
func DeviceBytes(path string) (read, written int64, err error) {
	return 0, 0, fmt.Errorf("reading device counters below %q: %w", path, ErrUnsupported)
}
