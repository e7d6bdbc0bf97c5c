// Package workload does the timed work: it draws file sets, makes their data,
// and writes, reads, verifies, deletes, copies and streams files on a volume.
//
// It defines [File] and [Volume], which every target implements. What is timed
// is fixed in one place, span.transfer: the time of a write is that of all its
// write calls and the requested flush, the time of a read that of all its read
// calls. Open, close, data, hashing and bookkeeping are outside. Files are
// timed in waves that a gate starts, on threads of their own, with the garbage
// collector off; see [Options] and [Outcome].
//
// # Limits
//
// The package makes no decision about images, keeps no results after a call,
// writes no journal, and adds up no rates of workers. While a clock of the step
// runs it makes no data, shows no progress and collects no garbage. The one
// exception is a file that does not fit into memory: its data is made
// meanwhile, with a warning.
package workload

import (
	"errors"
	"io"

	"dmgbench/internal/system/hostio"
)

// Volume is a file system on which files can be made. Names use "/" and are
// relative to its root. Methods are safe for concurrent use.
type Volume interface {
	// Mkdir makes a folder, with those above it that are missing.
	Mkdir(name string) error
	// Create makes a new file of an expected size in bytes. It fails if the
	// name exists (fs.ErrExist). Writing beyond size makes the file longer, see
	// also [Truncater].
	Create(name string, size int64, o FileOptions) (File, error)
	// Open opens an existing file for reading. A missing one is fs.ErrNotExist.
	Open(name string, o FileOptions) (File, error)
	// Remove deletes a file or an empty folder.
	Remove(name string) error
	// List returns the entries of one folder, sorted by name; "." is the root.
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

// FileOptions are how a file is opened.
type FileOptions struct {
	Cache       hostio.CacheMode
	Preallocate bool // reserve the space at once
	Worker      int  // that is likely to do the I/O, from 0; a hint for placement
}

// File is one open file. Offsets and lengths are bytes.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync makes the written data durable as far as mode requests, and returns
	// the achieved mode.
	Sync(mode hostio.SyncMode) (hostio.SyncMode, error)
	// Evict drops cached pages of the file as far as the volume can.
	Evict() error
	// Resident is the share of the file in the page cache, or ErrUnknown.
	Resident() (float64, error)
	// Cache is the mode that the open achieved.
	Cache() hostio.CacheMode
	Close() error
}

// Dataless is a [Volume] that may hold no bytes. Its files are then each a
// [Skipper] and receive only
// the lengths of calls ([Skipper]); no data and no buffers are made. Only a
// simulated device is one: what is timed there is a given law.
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

// ErrUnknown is returned for a fact about the cache that is not known on this
// volume.
var ErrUnknown = errors.New("not known on this volume")

// HostPather is a [Volume] that the system's own programs can reach.
type HostPather interface{ HostPath(name string) string }
