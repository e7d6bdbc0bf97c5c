package hdiutil

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/system/host"
)

// systemHost has no more: the system's own tools make what it mounts, attach
// images without FUSE, and trim volumes when they mount them.
func systemHost() *Host {
	return &Host{Mounts: systemMounts, Exists: exists, CommandLines: commandLines, CommandLine: commandLine,
		VolumeSize: volumeSize, Writable: writable}
}

// maxMounts bounds the mount table. Macs have a few dozen mounts.
const maxMounts = 1024

// systemMounts asks getfsstat(2) without waiting for file systems that hang.
func systemMounts() ([]host.Mount, error) {
	table := make([]unix.Statfs_t, maxMounts)
	n, err := unix.Getfsstat(table, unix.MNT_NOWAIT)
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	var list []host.Mount
	for _, s := range table[:n] {
		list = append(list, host.Mount{
			Source: unix.ByteSliceToString(s.Mntfromname[:]), Point: unix.ByteSliceToString(s.Mntonname[:]),
			Type: unix.ByteSliceToString(s.Fstypename[:]), ReadOnly: s.Flags&unix.MNT_RDONLY != 0,
			Browsable: s.Flags&unix.MNT_DONTBROWSE == 0, IgnoresOwners: s.Flags&unix.MNT_IGNORE_OWNERSHIP != 0,
		})
	}
	return list, nil
}

// commandLines are those of all other processes, none if ps(1) does not answer.
func commandLines(ctx context.Context) []string {
	return parseProcesses(listProcesses(ctx, "-axww", "-o", "pid=,args="), os.Getpid())
}

// commandLine is that of one process.
func commandLine(ctx context.Context, pid int) string {
	return strings.TrimSpace(listProcesses(ctx, "-ww", "-o", "args=", "-p", strconv.Itoa(pid)))
}

// listProcesses is what ps(1) prints, "" if it does not answer.
func listProcesses(ctx context.Context, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/ps", args...).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// parseProcesses returns the command lines in a list of processes, each line a
// number and a command line, without that of one process.
func parseProcesses(list string, without int) (lines []string) {
	for line := range strings.Lines(list) {
		number, command, ok := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(number); ok && err == nil && n != without {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}
