package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/exfat"
	"dmgbench/internal/hostio"
)

// Make puts an empty file system of the given name (see [FilesystemOf]) on a device or file: the Partition of an image
// that is attached without mounting. Nothing is left for later that would disturb a measurement: structures are written
// in full, and nothing is discarded. A label that is too long for the file system is cut. A missing program is an error
// that names its package.
func Make(ctx context.Context, path, filesystem, label string, o MakeOptions) error {
	fs, ok := FilesystemOf(filesystem)
	if !ok {
		return fmt.Errorf("making %s: not one of the file systems known here: %w", filesystem, errors.ErrUnsupported)
	}
	if fs.Kernel == "exfat" {
		return makeExFAT(path, label, o)
	}
	tool := findTool(fs.Tool)
	if tool == "" {
		return fmt.Errorf("making %s: %s is missing (Debian package %s): %w", fs.Name, fs.Tool, fs.Package, exec.ErrNotFound)
	}
	args, err := makeArgs(fs.Kernel, label)
	if err != nil {
		return err
	}
	return runTool(ctx, tool, append(args, path)...)
}

// makeArgs are the options of the program, each for a reason: no initialisation after the first mount (ext4), no
// discards, requests of whole 4096-byte blocks, no space kept back for root.
func makeArgs(fs, label string) ([]string, error) {
	uid, gid := owner()
	switch fs {
	case "ext4":
		return []string{"-q", "-F", "-b", "4096", "-m", "0", "-L", cut(label, 16, false),
			"-E", fmt.Sprintf("lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=%d:%d", uid, gid)}, nil
	case "xfs":
		return []string{"-q", "-f", "-K", "-s", "size=4096", "-L", cut(label, 12, false)}, nil
	case "btrfs":
		return []string{"-q", "-f", "--nodiscard", "-L", cut(label, 255, false)}, nil
	case "vfat":
		return []string{"-F", "32", "-n", strings.ToUpper(cut(label, 11, false))}, nil
	case "hfsplus":
		return []string{"-v", label}, nil
	}
	return nil, fmt.Errorf("making %s: %w", fs, errors.ErrUnsupported)
}

// runTool runs a program to its end; what it said is part of the error.
func runTool(ctx context.Context, tool string, args ...string) error {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	text := strings.Join(strings.Fields(string(out)), " ")
	return fmt.Errorf("running %s: %w: %s", filepath.Base(tool), err, text)
}

func makeExFAT(path, label string, o MakeOptions) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("making exFAT: %w", err)
	}
	size, err := f.Seek(0, 2)
	if err == nil {
		err = exfat.Format(fileDevice{f, size}, exfat.FormatOptions{Label: cut(label, 11, true), PartitionOffset: o.PartitionOffset,
			Serial: uint32(wall.Wall().UnixNano() >> 10)})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("making exFAT on %q: %w", path, err), f.Close())
	}
	return f.Close()
}

// fileDevice is a device node or a served file as a device.
type fileDevice struct {
	*os.File
	size int64
}

func (d fileDevice) Size() int64  { return d.size }
func (d fileDevice) Flush() error { return d.Sync() }
func (d fileDevice) Discard(off, n int64) error {
	return errors.Join(blockdev.CheckRange(off, n, d.size), hostio.ErrUnsupported)
}

var _ blockdev.Device = fileDevice{}

// Grow lets the file system of an attached image fill its partition, after image and partition were enlarged. ext4 is
// grown unmounted, xfs and btrfs mounted, as their programs want it.
func Grow(ctx context.Context, a Attached) error {
	switch a.Filesystem {
	case "ext4":
		if err := check(ctx, a.Partition); err != nil {
			return err
		}
		return runNamed(ctx, "resize2fs", "e2fsprogs", a.Partition)
	case "xfs", "btrfs":
		if a.MountPoint == "" {
			return fmt.Errorf("growing %s: it has to be mounted for that", a.Filesystem)
		}
		if a.Filesystem == "xfs" {
			return runNamed(ctx, "xfs_growfs", "xfsprogs", a.MountPoint)
		}
		return runNamed(ctx, "btrfs", "btrfs-progs", "filesystem", "resize", "max", a.MountPoint)
	case "exfat":
		return growExFAT(a.Partition)
	}
	return fmt.Errorf("growing %s: %w", strconv.Quote(a.Filesystem), errors.ErrUnsupported)
}

// check is e2fsck, without which resize2fs does nothing. Its status 1 is that it corrected something.
func check(ctx context.Context, partition string) error {
	err := runNamed(ctx, "e2fsck", "e2fsprogs", "-f", "-p", partition)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return nil
	}
	return err
}

func runNamed(ctx context.Context, name, pkg string, args ...string) error {
	tool := findTool(name)
	if tool == "" {
		return fmt.Errorf("running %s: it is missing (Debian package %s): %w", name, pkg, exec.ErrNotFound)
	}
	return runTool(ctx, tool, args...)
}

func growExFAT(partition string) error {
	f, err := os.OpenFile(partition, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, 2)
	if err != nil {
		return err
	}
	volume, err := exfat.Mount(fileDevice{f, size}, exfat.MountOptions{Now: wall.Wall})
	if err != nil {
		return err
	}
	return errors.Join(volume.Resize(size), volume.Unmount())
}
