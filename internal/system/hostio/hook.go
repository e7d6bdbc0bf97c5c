package hostio

// Kind names a host operation as hooks see it.
type Kind string

// The kinds of operation. Reads, writes and flushes are single system calls:
// a transfer that the kernel cut short shows as several.
const (
	OpCreate    Kind = "create"    // a file that did not exist
	OpOpen      Kind = "open"      // a file that exists
	OpRead      Kind = "read"      // Off, Len
	OpWrite     Kind = "write"     // Off, Len, Data
	OpSync      Kind = "sync"      // flush of a file
	OpDirSync   Kind = "dirsync"   // flush of a folder's entries
	OpTruncate  Kind = "truncate"  // Len is the new length
	OpAllocate  Kind = "allocate"  // Off, Len
	OpPunch     Kind = "punch"     // Off, Len
	OpEvict     Kind = "evict"     // Off, Len (0 = to the end)
	OpRename    Kind = "rename"    // Path to To
	OpRemove    Kind = "remove"    // a file or an empty folder
	OpRemoveAll Kind = "removeall" // a tree
	OpMkdir     Kind = "mkdir"     // one folder

	opUnseen Kind = "" // of an operation that neither changes nor flushes: no hook sees it
)

// Op is one host operation. Path and To are relative to the folder that was
// opened with [WithHook], with forward slashes. Data is the caller's memory:
// valid and to be left unchanged during the call of the hook only.
type Op struct {
	Kind Kind
	Path string
	To   string
	Off  int64
	Len  int64
	Data []byte
}

// Hook watches and may fail every host operation of a [Dir] and of what was
// opened through it. Before may delay; an error from it is the operation's
// error, and the operation is not done. After sees the outcome: n is the
// bytes transferred by reads and writes. Hooks are called concurrently.
type Hook interface {
	Before(op Op) error
	After(op Op, n int, err error)
}

// Shortener is a [Hook] that can also make the kernel's transfers short.
// Shorten returns how many bytes the system call may move (at least 1); a
// direct transfer is rounded down to the block, but never to 0.
type Shortener interface {
	Hook
	Shorten(op Op) int
}

// guard runs do between the hook's Before and After.
func guard(h Hook, op Op, do func() error) error {
	if h == nil || op.Kind == opUnseen {
		return do()
	}
	if err := h.Before(op); err != nil {
		return err
	}
	err := do()
	h.After(op, 0, err)
	return err
}
