package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
)

const (
	// maxRequest is the largest FUSE request in bytes: two of them share a
	// megabyte among two cores.
	maxRequest = 512 << 10
	// deviceName is the file that is the whole device.
	deviceName = "image"
	// discardUnit is what statfs answers as the block size; a loop device takes
	// it as the granularity of discards.
	discardUnit = 4096
	// cacheTime is how long the kernel may cache names and sizes, which only it
	// can change.
	cacheTime = 24 * time.Hour
)

// deviceFS is a FUSE file system of one folder: the device as a file, and each
// partition as another.
type deviceFS struct {
	fuse.RawFileSystem
	nodes    []deviceNode // node i has the number i+2
	readOnly bool
	fails    *failures
	now      time.Time
}

type deviceNode struct {
	name string
	dev  blockdev.Device
}

// newDeviceFS returns the file system of a device and its partitions.
func newDeviceFS(dev blockdev.Device, parts []gpt.Partition, readOnly bool, fails *failures) (*deviceFS, error) {
	d := &deviceFS{RawFileSystem: fuse.NewDefaultRawFileSystem(), readOnly: readOnly, fails: fails, now: time.Now()}
	d.nodes = append(d.nodes, deviceNode{deviceName, dev})
	for _, p := range parts {
		part, err := blockdev.Section(dev, p.Offset(), p.Size())
		if err != nil {
			return nil, err
		}
		d.nodes = append(d.nodes, deviceNode{partName(p), part})
	}
	return d, nil
}

// partName is the file of a partition.
func partName(p gpt.Partition) string { return fmt.Sprintf("p%d", p.Index+1) }

func (d *deviceFS) String() string { return "dmgbench" }

// node returns the file of a FUSE node number, nil for the folder and for
// unknown numbers. The kernel reads and writes only what it has opened.
func (d *deviceFS) node(id uint64) *deviceNode {
	if id < 2 || id-2 >= uint64(len(d.nodes)) {
		return nil
	}
	return &d.nodes[id-2]
}

// attr fills in the attributes of the folder or of a file.
func (d *deviceFS) attr(id uint64, a *fuse.Attr) fuse.Status {
	a.Ino, a.Nlink, a.Blksize = id, 1, discardUnit
	a.SetTimes(&d.now, &d.now, &d.now)
	a.Uid, a.Gid = uint32(os.Geteuid()), uint32(os.Getegid())
	if id == fuse.FUSE_ROOT_ID {
		a.Mode, a.Nlink = unix.S_IFDIR|0o700, 2
		return fuse.OK
	}
	n := d.node(id)
	if n == nil {
		return fuse.ENOENT
	}
	a.Mode, a.Size = unix.S_IFREG|0o600, uint64(n.dev.Size())
	if d.readOnly {
		a.Mode = unix.S_IFREG | 0o400
	}
	a.Blocks = a.Size / 512
	return fuse.OK
}

func (d *deviceFS) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	for i, n := range d.nodes {
		if h.NodeId == fuse.FUSE_ROOT_ID && n.name == name {
			out.NodeId = uint64(i + 2)
			out.SetEntryTimeout(cacheTime)
			out.SetAttrTimeout(cacheTime)
			return d.attr(out.NodeId, &out.Attr)
		}
	}
	return fuse.ENOENT
}

func (d *deviceFS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.SetTimeout(cacheTime)
	return d.attr(in.NodeId, &out.Attr)
}

func (d *deviceFS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	if in.NodeId != fuse.FUSE_ROOT_ID {
		return fuse.ENOTDIR
	}
	return fuse.OK
}

func (d *deviceFS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	for i := int(in.Offset); i < len(d.nodes); i++ {
		e := fuse.DirEntry{Name: d.nodes[i].name, Mode: unix.S_IFREG, Ino: uint64(i + 2), Off: uint64(i + 1)}
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

// Open bypasses the page cache: the loop device above has one of its own.
func (d *deviceFS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if d.node(in.NodeId) == nil {
		return fuse.EISDIR
	}
	if d.readOnly && in.Flags&unix.O_ACCMODE != unix.O_RDONLY {
		return fuse.EROFS
	}
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
	return fuse.OK
}

func (d *deviceFS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	got, err := d.node(in.NodeId).dev.ReadAt(buf, int64(in.Offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fuse.Status(errnoOf(err))
	}
	return fuse.ReadResultData(buf[:got]), fuse.OK
}

func (d *deviceFS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	done, err := d.node(in.NodeId).dev.WriteAt(data, int64(in.Offset))
	if err != nil {
		return 0, fuse.Status(d.fails.change("writing", err))
	}
	return uint32(done), fuse.OK
}

func (d *deviceFS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fuse.Status(d.fails.change("flushing", d.node(in.NodeId).dev.Flush()))
}

// Fallocate frees ranges, both holes and ranges of zeros: a container does not
// distinguish them. Where it cannot, the kernel writes the zeros.
func (d *deviceFS) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	switch in.Mode {
	case unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE,
		unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE:
	case 0, unix.FALLOC_FL_KEEP_SIZE:
		return fuse.OK // all of the device is there; what has no band gets one when it is written
	default:
		return fuse.Status(unix.EOPNOTSUPP)
	}
	err := d.node(in.NodeId).dev.Discard(int64(in.Offset), int64(in.Length))
	return fuse.Status(d.fails.change("discarding", err))
}

// StatFs reports the block size, which a loop device uses as the granularity of
// discards.
func (d *deviceFS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = discardUnit, discardUnit, 255
	out.Blocks = uint64(d.nodes[0].dev.Size()) / discardUnit
	return fuse.OK
}

// fuseServer serves a FUSE file system over requests that it reads itself into
// memory of huge pages. With other memory the disk receives a request of half a
// megabyte in 128 pieces, at a third of the rate (measured). The protocol is
// implemented by go-fuse.
type fuseServer struct {
	fd      int
	server  *fuse.ProtocolServer
	threads sync.WaitGroup
}

const (
	serverThreads = 8 // requests under way at once; the disk's queue is to be kept filled
	page          = 4096
	// The data of a write follows these headers, and that of a read follows
	// that one; both are to start on a page.
	writeHeader = 80 // fuse_in_header and fuse_write_in
	readHeader  = 16 // fuse_out_header
	// requestSpace is what a request needs: its data, and a page before and
	// after.
	requestSpace = maxRequest + 2*page
	// opPoll is the number of a request in <linux/fuse.h>.
	opPoll = 40
)

// newFuseServer mounts the file system and serves it; only root can without a
// program to help. After an error the process ends, and with it what was
// opened.
func newFuseServer(fs fuse.RawFileSystem, at string, o *fuse.MountOptions) (*fuseServer, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &fuseServer{fd: fd, server: fuse.NewProtocolServer(fs, o)}
	buffers := make([]requestBuffer, serverThreads)
	for i := range buffers {
		mem, err := hostio.AlignedBuffer(2 * requestSpace)
		if err != nil {
			return nil, err
		}
		b := mem.Bytes()
		buffers[i] = requestBuffer{mem: mem, in: b[page-writeHeader : requestSpace],
			out: b[requestSpace+page-readHeader:]}
	}
	if err := s.mount(at, o, buffers[0]); err != nil {
		return nil, err
	}
	// With fewer places to run than threads, one that comes back from the
	// kernel would wait until another is found to be in the kernel: reading
	// took twice as long.
	runtime.GOMAXPROCS(serverThreads + runtime.NumCPU())
	for _, b := range buffers {
		s.threads.Go(func() {
			runtime.LockOSThread() // a thread that waits in the kernel costs no other a switch
			defer b.mem.Free()
			for more, err := true, error(nil); more; {
				if more, err = s.serveOne(b); err != nil {
					log.Printf("serving: %v", err)
				}
			}
		})
	}
	return s, nil
}

// mount shows the file system and answers the request that opens every
// connection.
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

// serveOne reads one request, answers it, and reports whether there may be
// another.
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
	// ENODEV and ENOENT: the process that asked is gone.
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return true, err
}

// refusal is the answer to a request that is not carried out.
func (b requestBuffer) refusal(no unix.Errno) []byte {
	head := b.out[:readHeader]
	binary.NativeEndian.PutUint32(head, readHeader)
	binary.NativeEndian.PutUint32(head[4:], uint32(-int32(no)))
	copy(head[8:], b.in[8:16])
	return head
}
