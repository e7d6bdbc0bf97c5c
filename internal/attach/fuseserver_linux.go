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

// fuseServer serves a FUSE file system over requests that it reads itself into memory of huge pages. With other memory
// the disk receives a request of half a megabyte in 128 pieces, at a third of the rate (measured). The protocol is
// implemented by go-fuse.
type fuseServer struct {
	fd      int
	server  *fuse.ProtocolServer
	threads sync.WaitGroup
}

const (
	serverThreads = 8 // requests under way at once; the disk's queue is to be kept filled
	page          = 4096
	// The data of a write follows these headers, and that of a read follows that one; both are to start on a page.
	writeHeader = 80 // fuse_in_header and fuse_write_in
	readHeader  = 16 // fuse_out_header
	// requestSpace is what a request needs: its data, and a page before and after.
	requestSpace = maxRequest + 2*page
	// opPoll is the number of a request in <linux/fuse.h>.
	opPoll = 40
)

// newFuseServer mounts the file system and serves it; only root can without a program to help.
func newFuseServer(fs fuse.RawFileSystem, at string, o *fuse.MountOptions) (*fuseServer, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &fuseServer{fd: fd, server: fuse.NewProtocolServer(fs, o)}
	buffers, err := newRequestBuffers(serverThreads)
	if err == nil {
		err = s.mount(at, o, buffers[0])
	}
	if err != nil {
		for _, b := range buffers {
			b.mem.Free()
		}
		unix.Close(fd)
		return nil, err
	}
	// With fewer places to run than threads, one that comes back from the kernel would wait until another is found to
	// be in the kernel: reading took twice as long.
	runtime.GOMAXPROCS(serverThreads + runtime.NumCPU())
	for _, b := range buffers {
		s.threads.Go(func() { s.serve(b) })
	}
	return s, nil
}

// mount shows the file system and answers the request that opens every connection.
func (s *fuseServer) mount(at string, o *fuse.MountOptions, b requestBuffer) error {
	data := append([]string{fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,max_read=%d",
		s.fd, os.Geteuid(), os.Getegid(), o.MaxWrite)}, o.Options...)
	if o.AllowOther {
		data = append(data, "allow_other")
	}
	if err := unix.Mount(o.FsName, at, "fuse."+o.Name, o.DirectMountFlags, strings.Join(data, ",")); err != nil {
		return err
	}
	if _, err := s.serveOne(b); err != nil {
		return errors.Join(err, unix.Unmount(at, unix.MNT_DETACH))
	}
	return nil
}

// serve answers requests until the file system is unmounted.
func (s *fuseServer) serve(b requestBuffer) {
	runtime.LockOSThread() // a thread that waits in the kernel costs no other a switch
	defer b.mem.Free()
	for {
		more, err := s.serveOne(b)
		if err != nil {
			log.Printf("serving: %v", err)
		}
		if !more {
			return
		}
	}
}

// wait returns when the file system is unmounted and all threads have ended.
func (s *fuseServer) wait() {
	s.threads.Wait()
	unix.Close(s.fd)
}

// requestBuffer is the memory of one thread, for a request and for its answer.
type requestBuffer struct {
	mem     *hostio.Buffer
	in, out []byte
}

// newRequestBuffers allocates the memory of n threads. With an error it returns what was allocated.
func newRequestBuffers(n int) (list []requestBuffer, err error) {
	for range n {
		mem, err := hostio.AlignedBuffer(2 * requestSpace)
		if err != nil {
			return list, err
		}
		b := mem.Bytes()
		list = append(list, requestBuffer{mem: mem, in: b[page-writeHeader : requestSpace],
			out: b[requestSpace+page-readHeader:]})
	}
	return list, nil
}

// serveOne reads one request, answers it, and reports whether there may be another.
func (s *fuseServer) serveOne(b requestBuffer) (more bool, err error) {
	n, err := unix.Read(s.fd, b.in)
	switch {
	case errors.Is(err, unix.ENODEV):
		return false, nil
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EAGAIN):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading a request: %w", err)
	}
	var reply []byte
	if binary.NativeEndian.Uint32(b.in[4:]) == opPoll {
		reply = b.refusal(unix.ENOSYS)
	} else if m, status := s.server.HandleRequest([][]byte{b.in[:n]}, [][]byte{b.out}); !status.Ok() {
		reply = b.refusal(unix.Errno(status))
	} else {
		reply = b.out[:m]
	}
	if len(reply) == 0 {
		return true, nil
	}
	err = retryEINTR(func() error {
		_, err := unix.Write(s.fd, reply)
		return err
	})
	// Without ENODEV and ENOENT: the process that asked is gone.
	if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENOENT) {
		log.Printf("answering: %v", err)
	}
	return true, nil
}

// refusal is the answer to a request that is not carried out.
func (b requestBuffer) refusal(no unix.Errno) []byte {
	head := b.out[:readHeader]
	binary.NativeEndian.PutUint32(head, readHeader)
	binary.NativeEndian.PutUint32(head[4:], uint32(-int32(no)))
	copy(head[8:], b.in[8:16])
	return head
}
