package hostio

import (
	"fmt"

	"dmgbench/internal/host"
)

// DeviceBytes returns the bytes that the disk below path has read and written
// since boot, by everybody, as [host.DeviceBytes] finds them. It starts a program
// of the system and takes some tens of milliseconds. The kernel sums up in steps:
// over short spans a difference may lag. An error that matches
// errors.ErrUnsupported for what is on no disk.
func DeviceBytes(path string) (read, written int64, err error) {
	read, written, err = host.DeviceBytes(path)
	if err != nil {
		return 0, 0, fmt.Errorf("reading device counters below %q: %w", path, err)
	}
	return read, written, nil
}
