// Package workload does the timed work: it draws file sets, makes their data,
// and writes, reads, verifies, deletes, copies and streams files on a volume.
//
// It defines [File] and [Volume], which every target implements. What is timed
// is fixed in one place, span.transfer: the time of a write is that of all its
// write calls and the requested flush, the time of a read that of all its read
// calls. Open, close, data, hashing and bookkeeping are outside. Files are
// timed in waves (batches whose workers are released together, each on an
// operating system thread), with the garbage collector off; see [Options] and
// [Outcome].
//
// # Limits
//
// The package decides nothing about disk images, keeps no results after a call,
// writes no journal, and does not sum the rates of workers. Inside a timed span
// it generates no data, shows no progress and collects no garbage. The one
// exception is a file that does not fit into memory: its data is generated
// inside the span, with a warning.
package workload

import (
	"errors"
	"io"
	"io/fs"

	"dmgbench/internal/system/hostio"
)

// Volume is a file system on which files can be made. Names use "/" and are
// relative to its root. Methods are safe for concurrent use.
type Volume interface {
	// Mkdir makes a folder and any missing parents; one that exists is no error.
	Mkdir(name string) error
	// Create makes a new file for size bytes: a hint where to place it, and
	// what o.Preallocate reserves. It fails if the name exists (fs.ErrExist).
	// Writing beyond size makes the file longer; a file whose volume sets its
	// length at once is a [Truncater], for a write that ends early.
	Create(name string, size int64, o FileOptions) (File, error)
	// Open opens an existing file for reading, and with o.Write for writing,
	// too. It returns fs.ErrNotExist if there is none.
	Open(name string, o FileOptions) (File, error)
	// Rename gives a file another name; a file that has that name is replaced.
	Rename(from, to string) error
	// List returns the names in a folder in any order; "." is the root.
	List(folder string) ([]string, error)
	// Remove deletes a file or a link, Rmdir an empty folder.
	Remove(name string) error
	Rmdir(name string) error
	// Size is the length of a file in bytes, 0 of a folder. It returns
	// fs.ErrNotExist if there is neither.
	Size(name string) (int64, error)
	// Free is the free space that the volume offers, in bytes.
	Free() (int64, error)
	// Sync makes names and sizes durable: the data of files is that of
	// [File.Sync]. It is not called inside a timed span.
	Sync() error
}

// Opener is implemented by volumes that can look up a folder before its files are
// timed.
type Opener interface {
	Volume
	OpenFolder(name string) (Folder, error)
}

// Folder is an open folder as a volume of its own. A method with a name that has
// no "/" takes no other call than the one that it is named after. Files in it
// are those of the caller.
type Folder interface {
	Volume
	Close() error
}

// Linker is implemented by volumes with symbolic links and permissions.
type Linker interface {
	Volume
	// Symlink makes a link to a target, which is not looked up.
	Symlink(target, name string) error
	// Chmod sets the permissions of a file.
	Chmod(name string, mode fs.FileMode) error
}

// FileOptions control how a file is opened.
type FileOptions struct {
	Cache       hostio.CacheMode
	Write       bool // Open opens the file for writing as well
	Preallocate bool // Create reserves the space of the file at once
	Worker      int  // index of the worker expected to do the I/O, from 0: a hint for placement
}

// File is one open file. Offsets and lengths are bytes.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync makes the written data durable as far as mode requests, and returns
	// the mode that took effect; a weaker one is no error.
	Sync(mode hostio.SyncMode) (hostio.SyncMode, error)
	// Evict drops cached pages of the file as far as the volume can.
	Evict() error
	// Resident returns the fraction of the file in the page cache, 0 to 1;
	// ErrUnknown where the volume cannot tell.
	Resident() (float64, error)
	// Cache returns the mode that took effect when the file was opened.
	Cache() hostio.CacheMode
	Close() error
}

// Dataless is implemented by volumes that can be without data: simulated
// devices, whose times follow a configured law. If Dataless returns true, every
// file is a [Skipper], and Skip is called in place of ReadAt and WriteAt: no data
// is generated.
type Dataless interface {
	Volume
	// Dataless reports whether this volume holds no bytes.
	Dataless() bool
	// Operate takes the time of one operation of a tree or random step that
	// transfers n bytes: "read" and "write" at the rates of the device, "flush",
	// or any other at its latency.
	Operate(kind string, n int64) error
}

// Skipper is an open file of a dataless volume.
type Skipper interface {
	File
	// Skip takes the time of a call that writes, or reads, n bytes at offset off.
	Skip(write bool, off, n int64) error
}

// ErrUnknown is returned where a volume cannot tell the state of the cache.
var ErrUnknown = errors.New("not known on this volume")

// HostPather is implemented by volumes whose files other programs can open.
// HostPath returns the path of a file on the host.
type HostPather interface{ HostPath(name string) string }

// Requested ways to reach files, as in plans.
const (
	CacheDirect   = "direct"   // past the page cache
	CacheBuffered = "buffered" // through it, as it is
	CacheCold     = "cold"     // through it, evicted before reading
)

// Achieved ways, from the one that weakens a number most to the one that does
// least.
const (
	FoundUnknown  = "unknown"           // unknown, or a virtual machine hides the host's cache
	FoundResident = "buffered-resident" // reads went through the cache and found pages of the file in it
	FoundBuffered = "buffered"          // writes went through the cache
	FoundCold     = "buffered-cold"     // reads went through the cache, which had no page of the file
	FoundDirect   = "direct"            // transfers went past the page cache
)

var foundByWeakness = []string{FoundUnknown, FoundResident, FoundBuffered, FoundCold, FoundDirect}

// residentLimit is the share of a file in the page cache above which a read is
// not cold: looking at the file may leave a few pages.
const residentLimit = 0.05

// syncByWeakness orders flushes by how far they make data durable.
var syncByWeakness = []hostio.SyncMode{hostio.SyncNone, hostio.SyncFsync, hostio.SyncFull}

// cacheBefore is the state of the cache that the first read of an open file
// will find. Direct transfers are believed only if no page is resident: despite
// F_NOCACHE, macOS serves resident pages from the cache.
func cacheBefore(f File) string {
	direct := f.Cache() == CacheDirect
	share, err := f.Resident()
	switch {
	case err != nil && !direct:
		return FoundUnknown
	case err == nil && share > residentLimit:
		return FoundResident
	case direct:
		return FoundDirect
	}
	return FoundCold
}

// cacheAfter corrects [cacheBefore] once the file is read: what the kernel
// refused to read directly came through the page cache, which had no page of
// it.
func cacheAfter(before string, f File) string {
	if before != FoundDirect || f.Cache() == CacheDirect {
		return before
	}
	if _, err := f.Resident(); err != nil {
		return FoundUnknown
	}
	return FoundCold
}
