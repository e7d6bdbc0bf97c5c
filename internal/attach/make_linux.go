package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"dmgbench/internal/exfat"
)

// Make makes an empty file system of the given name (see [FilesystemOf]) on a device or file: the Partition of an
// image that is attached without mounting. It writes all structures in full and discards no blocks, so that no later
// initialisation disturbs a measurement. A label that is too long for the file system is cut. The error for a missing
// program names its package.
func Make(ctx context.Context, path, filesystem, label string) error {
	fs, ok := FilesystemOf(filesystem)
	if !ok {
		return fmt.Errorf("making %s: not one of the file systems known here: %w", filesystem, errors.ErrUnsupported)
	}
	if fs.Tool == "" {
		return makeExFAT(path, label)
	}
	uid, gid := owner()
	return runTool(ctx, fs.Tool, fs.Package, append(fs.makeArgs(label, uid, gid), path)...)
}

// runTool runs a program of the host to its end; its output is part of the error.
func runTool(ctx context.Context, name, pkg string, args ...string) error {
	tool := findTool(name)
	if tool == "" {
		return fmt.Errorf("running %s: it is missing (Debian package %s): %w", name, pkg, exec.ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("running %s: %w: %s", name, err, strings.Join(strings.Fields(string(out)), " "))
}

// makeExFAT formats in this process, so exFAT needs no program of the host.
func makeExFAT(path, label string) error {
	dev, err := openDevice(path, os.O_RDWR)
	if err != nil {
		return fmt.Errorf("making exFAT: %w", err)
	}
	serial := uint32(wall.Wall().UnixNano() >> 10)
	err = exfat.Format(dev, exfat.FormatOptions{Label: cut(label, 11, true), Serial: serial})
	if err = errors.Join(err, dev.Close()); err != nil {
		return fmt.Errorf("making exFAT on %q: %w", path, err)
	}
	return nil
}

// CanGrow returns why the file system of that name cannot be grown on this machine, nil if it can. A missing program is
// found by Grow.
func CanGrow(filesystem string) error {
	fs, _ := FilesystemOf(filesystem)
	switch {
	case fs.growTool == nil:
		return errors.New("they cannot be resized here")
	case !Loops():
		return errors.New("growing them needs loop devices and the rights of root")
	}
	return nil
}

// Grow enlarges the file system of an attached image to fill its partition, after image and partition were enlarged.
// Those that only grow while mounted are mounted on a temporary folder for that, if they are not mounted.
func Grow(ctx context.Context, a Attached) error {
	fs, ok := FilesystemOf(a.Filesystem)
	switch {
	case a.Filesystem == "exfat":
		return growExFAT(a.Partition)
	case !ok || fs.growTool == nil:
		return fmt.Errorf("growing %q: %w", a.Filesystem, errors.ErrUnsupported)
	case fs.growMounted && a.MountPoint == "":
		return growMounted(ctx, a)
	}
	target := a.MountPoint
	if !fs.growMounted {
		target = a.Partition
		// Without a check resize2fs refuses; status 1 of e2fsck: it corrected something.
		err := runTool(ctx, "e2fsck", fs.Package, "-f", "-p", target)
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
			return err
		}
	}
	return runTool(ctx, fs.growTool[0], fs.growTool[1], append(slices.Clone(fs.growTool[2:]), target)...)
}

// growMounted grows a volume on a temporary mount point.
func growMounted(ctx context.Context, a Attached) (err error) {
	point, err := os.MkdirTemp("", "dmgbench-grow-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(point)) }()
	mounted, err := Mount(ctx, a, Request{Image: a.Image, MountPoint: point, NoTrim: true})
	if err != nil {
		return err
	}
	return errors.Join(Grow(ctx, mounted), Unmount(context.WithoutCancel(ctx), mounted, false))
}

// growExFAT grows the unmounted volume to the size of the partition.
func growExFAT(partition string) error {
	dev, err := openDevice(partition, os.O_RDWR)
	if err != nil {
		return err
	}
	defer dev.Close()
	volume, err := exfat.Mount(dev, exfat.MountOptions{Now: wall.Wall})
	if err != nil {
		return err
	}
	return errors.Join(volume.Resize(dev.size), volume.Unmount())
}
