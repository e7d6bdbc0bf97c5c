package hostio

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DeviceBytes returns the bytes that the disk below path has read and written
// since boot, by everybody, from /sys/dev/block/M:m/stat (fields 3 and 7, in
// sectors of 512 bytes). A partition counts as its disk. ErrUnsupported for
// file systems without a block device (tmpfs, overlay, network).
func DeviceBytes(path string) (read, written int64, err error) {
	read, written, err = deviceBytes(path)
	if err != nil {
		return 0, 0, fmt.Errorf("reading device counters below %q: %w", path, err)
	}
	return read, written, nil
}

func deviceBytes(path string) (read, written int64, err error) {
	var st unix.Stat_t
	if err := retryEINTR(func() error { return unix.Stat(path, &st) }); err != nil {
		return 0, 0, err
	}
	dev := uint64(st.Dev)
	if unix.Major(dev) == 0 { // anonymous: btrfs has one per subvolume
		if dev, err = mountSource(dev); err != nil {
			return 0, 0, err
		}
	}
	folder := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev))
	if _, err := os.Stat(filepath.Join(folder, "partition")); err == nil {
		real, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return 0, 0, err
		}
		folder = filepath.Dir(real)
	}
	data, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return parseDiskStat(data)
}

// parseDiskStat reads a block device's stat file, as the kernel's
// Documentation/block/stat.rst lists its fields.
func parseDiskStat(data []byte) (read, written int64, err error) {
	f := strings.Fields(string(data))
	if len(f) < 7 {
		return 0, 0, fmt.Errorf("reading device statistics: %d fields, want at least 7", len(f))
	}
	r, err := strconv.ParseInt(f[2], 10, 54)
	if err != nil {
		return 0, 0, fmt.Errorf("reading device statistics: %w", err)
	}
	w, err := strconv.ParseInt(f[6], 10, 54)
	if err != nil {
		return 0, 0, fmt.Errorf("reading device statistics: %w", err)
	}
	return r * 512, w * 512, nil
}

// mountSource finds the block device of an anonymous device number.
func mountSource(dev uint64) (uint64, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	want := fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))
	for line := range bytes.Lines(data) {
		// 36 35 98:0 /root /mount opts - type source superopts
		front, back, ok := strings.Cut(string(line), " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(f) < 3 || f[2] != want || len(b) < 2 || !strings.HasPrefix(b[1], "/dev/") {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(b[1], &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK {
			return uint64(st.Rdev), nil
		}
	}
	return 0, fmt.Errorf("no block device below it: %w", ErrUnsupported)
}
