package attach

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"dmgbench/internal/exfat"
)

// handle is an open file of a volume.
type handle struct {
	v     *volumeFS
	n     *node
	file  *exfat.File
	mtime time.Time // as the volume had it at the opening
}

var (
	_ fusefs.FileReader    = (*handle)(nil)
	_ fusefs.FileWriter    = (*handle)(nil)
	_ fusefs.FileReleaser  = (*handle)(nil)
	_ fusefs.FileAllocater = (*handle)(nil)
	_ fusefs.FileFlusher   = (*handle)(nil)
)

func (n *node) handle(file *exfat.File, modified time.Time) *handle {
	h := &handle{v: n.v, n: n, file: file, mtime: modified}
	n.v.mu.Lock()
	n.v.open[h] = struct{}{}
	n.v.mu.Unlock()
	return h
}

// info describes the open file, even one whose name is gone.
func (h *handle) info() exfat.Info {
	i := exfat.Info{Size: h.file.Size(), Created: h.mtime, Modified: h.mtime}
	if now, err := h.v.volume.Stat(h.n.path("")); err == nil && !now.Dir {
		i.Created, i.Modified = now.Created, now.Modified
	}
	return i
}

func (n *node) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if n.v.readOnly && flags&unix.O_ACCMODE != unix.O_RDONLY {
		return nil, 0, syscall.EROFS
	}
	name := n.path("")
	file, err := n.v.volume.Open(name)
	if err != nil {
		return nil, 0, n.v.readErrno("opening", err)
	}
	i, err := n.v.volume.Stat(name)
	if err != nil {
		return nil, 0, n.v.readErrno("opening", errors.Join(err, file.Close()))
	}
	return n.handle(file, i.Modified), 0, 0
}

func (n *node) Create(ctx context.Context, name string, _, _ uint32, out *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	where := n.path(name)
	file, err := n.v.volume.Create(where, 0)
	if no := n.v.errno("creating", err); no != 0 {
		return nil, nil, 0, no
	}
	i, err := n.v.volume.Stat(where)
	if err != nil {
		return nil, nil, 0, n.v.errno("creating", errors.Join(err, file.Close()))
	}
	inode := n.child(ctx, i, out)
	return inode, inode.Operations().(*node).handle(file, i.Modified), 0, 0
}

func (h *handle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := h.file.ReadAt(dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, h.v.readErrno("reading", err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (h *handle) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	n, err := h.file.WriteAt(data, off)
	if no := h.v.errno("writing", err); no != 0 {
		return 0, no
	}
	return uint32(n), 0
}

// Flush is close(2): nothing becomes durable by it.
func (h *handle) Flush(context.Context) syscall.Errno { return 0 }

func (h *handle) Release(context.Context) syscall.Errno {
	h.v.mu.Lock()
	_, open := h.v.open[h]
	delete(h.v.open, h)
	h.v.mu.Unlock()
	if !open { // closed with the volume
		return 0
	}
	err := h.file.Close()
	h.v.sweep()
	return h.v.errno("closing", err)
}

// Allocate makes a file longer with its space reserved; exFAT has no space behind the end of a file, and no holes.
func (h *handle) Allocate(_ context.Context, off, size uint64, mode uint32) syscall.Errno {
	if mode != 0 {
		return syscall.EOPNOTSUPP
	}
	end := int64(off + size)
	if end < 0 || off+size < off {
		return syscall.EFBIG
	}
	if end <= h.file.Size() {
		return 0
	}
	return h.v.errno("allocating", h.file.Truncate(end))
}
