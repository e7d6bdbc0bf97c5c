// Package workload does the timed work: it draws file sets, makes their data,
// writes, reads, verifies, deletes and streams files on a volume, and times
// what is to be timed.
//
// It defines [File] and [Volume], which every target offers. What is timed is
// fixed in one place: a write is all its write calls plus the flush that was
// asked for, a read all its read calls; open, close, data, hashing and
// book-keeping are outside. Files are timed in waves that a gate starts, on threads
// of their own, with the collector off; see [Options] and [Outcome].
//
// # What it refuses
//
// The package makes no decision about images, keeps no results beyond the call,
// writes no journal, adds up no rates of workers, and never makes data, shows
// progress or collects garbage while a clock of the step runs, except where
// memory cannot hold a file: then there is a warning.
package workload

import (
	"errors"
	"io"

	"dmgbench/internal/hostio"
)

// Volume is a file system that files can be put on. Names use "/" and are
// relative to its root. Methods are safe for concurrent use.
type Volume interface {
	Mkdir(name string) error
	// Create makes a new file that is going to be size bytes long. It fails if the name exists
	// (fs.ErrExist). Writing beyond size makes the file longer, see also [Truncater].
	Create(name string, size int64, o FileOptions) (File, error)
	// Open opens an existing file for reading. A missing one is fs.ErrNotExist.
	Open(name string, o FileOptions) (File, error)
	// Remove deletes a file or an empty folder.
	Remove(name string) error
	// List gives the entries of one folder, sorted by name; "." is the root.
	List(dir string) ([]Entry, error)
	// Free is the free space that the volume offers, in bytes.
	Free() (int64, error)
	// Sync makes names and sizes durable, outside any timed span.
	Sync() error
}

// Entry is one name in a folder.
type Entry struct {
	Name string
	Size int64
	Dir  bool
}

// FileOptions are how a file is to be reached.
type FileOptions struct {
	Cache       hostio.CacheMode
	Preallocate bool // reserve the space at once
	Worker      int  // who is likely to do the I/O, from 0; a hint for placement
}

// File is one open file. Offsets and lengths are bytes.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync makes what was written durable as far as mode asks, and returns how far that really went.
	Sync(mode hostio.SyncMode) (hostio.SyncMode, error)
	// Evict drops cached pages of the file as far as the volume can.
	Evict() error
	// Resident is the share of the file in the page cache, or ErrUnknown.
	Resident() (float64, error)
	// Cache is what the open really achieved.
	Cache() hostio.CacheMode
	Close() error
}

// Dataless is a [Volume] that may hold no bytes. Its files then get the lengths of
// calls only ([Skipper]); data are neither made nor passed, and no buffer is
// needed. Only a simulated device is one: what is timed there is its own stated law.
type Dataless interface {
	Volume
	// Dataless reports whether this volume holds no bytes.
	Dataless() bool
}

// Skipper is an open file of a dataless volume.
type Skipper interface {
	File
	// Skip replaces one call that writes, or reads, n bytes from offset off.
	Skip(write bool, off, n int64) error
}

// isDataless reports whether a volume holds no bytes.
func isDataless(v Volume) bool {
	h, ok := v.(Dataless)
	return ok && h.Dataless()
}

// ErrUnknown is returned for a fact about the cache that is not known on this volume.
var ErrUnknown = errors.New("not known on this volume")
