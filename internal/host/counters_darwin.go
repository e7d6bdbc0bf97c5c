package host

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// DeviceBytes returns the bytes that the disk below path has read and written
// since boot, by everybody: the statistics of the storage drivers of the
// volume's disks. An error that matches [ErrUnsupported] is why they are not
// known. It asks ioreg(8), since without cgo there is no other way into the
// registry, which takes some tens of milliseconds: outside of whatever is timed.
func DeviceBytes(path string) (read, written int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, err
	}
	name, err := bsdName(unix.ByteSliceToString(st.Mntfromname[:]))
	if err != nil {
		return 0, 0, err
	}
	// Without -l only the drivers themselves have their properties shown.
	out := askLong(context.Background(), registryOutput, "/usr/sbin/ioreg", "-a", "-l", "-r", "-c", storageDriver, "-w", "0")
	if out == nil {
		return 0, 0, fmt.Errorf("ioreg did not answer: %w", ErrUnsupported)
	}
	return storageBytes(out, name)
}
