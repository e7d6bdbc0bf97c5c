package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"dmgbench/internal/hostio"
)

// link serves a FUSE file system over requests that it reads itself into memory of huge pages. With other memory the
// disk receives a request of half a megabyte in 128 pieces, at a third of the rate (measured). The protocol is
// implemented by go-fuse.
type link struct {
	fd      int
	server  *fuse.ProtocolServer
	threads sync.WaitGroup
}

const (
	linkThreads = 8 // requests under way at once; the disk's queue is to be kept filled
	page        = 4096
	// The data of a write follows these headers, and that of a read follows that one; both are to start on a page.
	writeHeader = 80 // fuse_in_header and fuse_write_in
	readHeader  = 16 // fuse_out_header
	// lane is what a request needs: its data, and a page before and after.
	lane = maxRequest + 2*page
)

// Numbers of <linux/fuse.h>.
const opPoll = 40

// newLink mounts the file system and serves it; only root can without a program to help.
func newLink(fs fuse.RawFileSystem, at string, o *fuse.MountOptions) (*link, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	l := &link{fd: fd, server: fuse.NewProtocolServer(fs, o)}
	all, err := newLanes(linkThreads)
	if err == nil {
		if err = l.mount(at, o, all[0]); err != nil {
			free(all)
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	// With fewer places to run than threads, one that comes back from the kernel would wait until another is found to
	// have gone there: reading took twice as long.
	runtime.GOMAXPROCS(linkThreads + runtime.NumCPU())
	for _, b := range all {
		l.threads.Go(func() { b.serve(l) })
	}
	return l, nil
}

// mount shows the file system and answers the request that opens every connection.
func (l *link) mount(at string, o *fuse.MountOptions, b *lanes) error {
	data := append([]string{fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,max_read=%d",
		l.fd, os.Geteuid(), os.Getegid(), o.MaxWrite)}, o.Options...)
	if o.AllowOther {
		data = append(data, "allow_other")
	}
	if err := unix.Mount(o.FsName, at, "fuse."+o.Name, o.DirectMountFlags, strings.Join(data, ",")); err != nil {
		return err
	}
	if _, err := b.turn(l); err != nil {
		return errors.Join(err, unix.Unmount(at, unix.MNT_DETACH))
	}
	return nil
}

// serve answers requests until the file system is unmounted.
func (b *lanes) serve(l *link) {
	runtime.LockOSThread() // a thread that waits in the kernel costs no other a switch
	defer b.mem.Free()
	for {
		on, err := b.turn(l)
		if err != nil {
			log.Printf("serving: %v", err)
		}
		if !on {
			return
		}
	}
}

// wait returns when the file system is unmounted and all threads have ended.
func (l *link) wait() {
	l.threads.Wait()
	unix.Close(l.fd)
}

// lanes are the memory of one thread, for a request and for its answer.
type lanes struct {
	mem     *hostio.Buffer
	in, out []byte
}

// newLanes allocates the memory of n threads.
func newLanes(n int) (all []*lanes, err error) {
	for range n {
		mem, err := hostio.AlignedBuffer(2 * lane)
		if err != nil {
			free(all)
			return nil, err
		}
		b := mem.Bytes()
		all = append(all, &lanes{mem: mem, in: b[page-writeHeader : lane], out: b[lane+page-readHeader:]})
	}
	return all, nil
}

// free releases the memory of threads that were not started.
func free(all []*lanes) {
	for _, b := range all {
		b.mem.Free()
	}
}

// turn reads one request, answers it, and reports whether there may be another.
func (b *lanes) turn(l *link) (on bool, err error) {
	n, err := unix.Read(l.fd, b.in)
	switch {
	case errors.Is(err, unix.ENODEV):
		return false, nil
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EAGAIN):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading a request: %w", err)
	}
	var answer []byte
	if binary.NativeEndian.Uint32(b.in[4:]) == opPoll {
		answer = refusal(b, unix.ENOSYS)
	} else if m, status := l.server.HandleRequest([][]byte{b.in[:n]}, [][]byte{b.out}); !status.Ok() {
		answer = refusal(b, unix.Errno(status))
	} else {
		answer = b.out[:m]
	}
	if len(answer) == 0 {
		return true, nil
	}
	for {
		_, err := unix.Write(l.fd, answer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENOENT): // who asked is gone
		case err != nil:
			log.Printf("answering: %v", err)
		}
		return true, nil
	}
}

// refusal is the answer to a request that is not carried out.
func refusal(b *lanes, no unix.Errno) []byte {
	head := b.out[:readHeader]
	binary.NativeEndian.PutUint32(head, readHeader)
	binary.NativeEndian.PutUint32(head[4:], uint32(-int32(no)))
	copy(head[8:], b.in[8:16])
	return head
}
