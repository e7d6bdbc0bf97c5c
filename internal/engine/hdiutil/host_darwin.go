package hdiutil

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// systemMounts asks getfsstat(2) without waiting for file systems that hang.
func systemMounts() ([]Mount, error) {
	n, err := unix.Getfsstat(nil, unix.MNT_NOWAIT)
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	table := make([]unix.Statfs_t, n+8) // some may come in between
	n, err = unix.Getfsstat(table, unix.MNT_NOWAIT)
	if err != nil {
		return nil, fmt.Errorf("reading the mount table: %w", err)
	}
	list := make([]Mount, 0, n)
	for _, s := range table[:min(n, len(table))] {
		list = append(list, Mount{
			From: unix.ByteSliceToString(s.Mntfromname[:]), On: unix.ByteSliceToString(s.Mntonname[:]),
			Kind: unix.ByteSliceToString(s.Fstypename[:]), ReadOnly: s.Flags&unix.MNT_RDONLY != 0,
		})
	}
	return list, nil
}
