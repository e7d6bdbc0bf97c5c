// Package exfat is an exFAT file system over a block device, after Microsoft's
// published exFAT specification (revision 1.00). It is the in-process volume of
// the benchmark: [Format] makes a volume, [Mount] opens it, [Check] verifies
// and repairs one that is not mounted.
//
// # Data path
//
// File data goes straight between the caller's buffer and the device, one
// device call for each contiguous extent, without a copy, without metadata and
// without an exclusive lock: readers and writers of one file or of many run at
// the speed of the device. Only the end of a file is special: if its size is
// not a multiple of 4096 bytes, its last block is padded with zeros, so that
// devices that are opened for direct I/O see whole blocks.
//
// # Metadata and crashes
//
// Allocation bitmap, FAT and directories are held in memory and written back,
// by the 4 KiB page, at [File.Sync], [Volume.Sync] and [Volume.Unmount], in an
// order that survives a crash at any point: data, FAT and bitmap first,
// flushed, then directory entries, flushed. Clusters that were freed are given
// out again only after the directory entry that named them is gone from the
// device, so that a crash can lose clusters but never mixes two files. The
// VolumeDirty flag is set before the first change and cleared by a clean
// Unmount. New entry sets do not straddle pages, so that a page written whole
// is a set written whole. exFAT has no journal: a file that is being moved to
// another directory when the power fails is found under its old name, its new
// one, or both; renamed within a directory it may be lost if the new name takes
// another number of entries and a page of its own. A name that a rename
// replaces has the old file or the new. Of two names of one file [Check] takes
// away the older, which has to be done before anything is removed: a move
// counts as an access, so that the later access time identifies the newer name.
//
// # What it refuses
//
// Volumes with two FATs (TexFAT), names that exFAT forbids, and volumes with
// more FAT and bitmap than fit into [MountOptions.MetadataLimit]. Directories
// take at most 256 MiB each (a limit of the format) and, all loaded ones
// together, at most that limit as well. It never follows a chain for longer
// than the volume has clusters. An entry
// that no path can name, since its name is forbidden, not valid UTF-16 or that
// of an entry before it, is left alone: [Folder.List] and [Folder.Walk] report
// it, and go on with the others.
//
// To put files on a volume use [Volume]; what a benchmark does with them is for
// the packages above.
package exfat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Errors that callers branch on. Errors about names also wrap fs.ErrNotExist,
// fs.ErrExist or fs.ErrInvalid.
var (
	// ErrNoSpace: the volume has not enough free clusters.
	ErrNoSpace = errors.New("volume is full")
	// ErrNotExFAT: neither boot region describes an exFAT volume.
	ErrNotExFAT = errors.New("not an exFAT volume")
	// ErrCorrupt: metadata contradicts itself; Check reports the details.
	ErrCorrupt = errors.New("damaged exFAT volume")
	// ErrUnsupported: the volume is legal but of a kind that this package does
	// not handle.
	ErrUnsupported = errors.New("unsupported kind of exFAT volume")
	// ErrReadOnly: the volume was mounted read-only.
	ErrReadOnly = errors.New("volume is mounted read-only")
	// ErrBusy: a file is open.
	ErrBusy = errors.New("file is open")
	// ErrNotEmpty: a directory to be removed has entries.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrIsDir and ErrNotDir: a path names a directory, or something else than
	// one.
	ErrIsDir  = errors.New("is a directory")
	ErrNotDir = errors.New("is not a directory")
	// ErrName: exFAT forbids a name.
	ErrName = errors.New("name is not allowed on exFAT")
	// ErrSameName: an entry has the name of one before it in its directory.
	ErrSameName = errors.New("another file or folder has this name")
	// ErrFATTooSmall: a volume cannot grow because its FAT was not made for
	// that many clusters; see FormatOptions.MaxSize.
	ErrFATTooSmall = errors.New("the file allocation table is too small")
	// ErrShrinkUsed: a volume cannot shrink because clusters beyond the new end
	// are in use.
	ErrShrinkUsed = errors.New("clusters beyond the new end are in use")
	// ErrClosed: the file or the volume was closed before.
	ErrClosed = fs.ErrClosed
)

// annotate adds to an error what was being done; deferred, it covers all
// returns of a function.
func annotate(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// structural reports whether err is about the contents of the device, rather
// than about a device that failed: only the former becomes a finding, or a
// reason to use a copy.
func structural(err error) bool {
	for _, kind := range []error{ErrNotExFAT, ErrCorrupt, ErrUnsupported, io.ErrUnexpectedEOF} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
