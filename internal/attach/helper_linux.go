package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"dmgbench/internal/container"
	"dmgbench/internal/container/crypt"
	"dmgbench/internal/hostio"
)

// order is what the serving process reads from descriptor 3, as a line of JSON. The keys of an encrypted image follow,
// up to the end.
type order struct {
	Image    string
	ReadOnly bool
	MountAt  string
	Volume   bool      // serve the files of the exFAT volume in Parts[0], not the device
	Parts    []section // the partitions
	End      string    // where the last word goes
	Others   bool      // everybody may look into the mount, not only who made it
	UID, GID uint32    // of the files of a volume
}

// paths are what may be any bytes.
func (o *order) paths() []*string { return []*string{&o.Image, &o.MountAt, &o.End} }

// answer is what the process writes once to descriptor 4, when it serves or has failed.
type answer struct {
	Error    string // verbatim; empty: it serves
	InUse    bool   // the error is that somebody else has the container open
	NoFUSE   bool   // the error is that the system has no FUSE
	ReadOnly bool   // it could only be opened for reading
	Label    string // of a volume
	Warnings []string
}

// lastWord is what the process writes to a file when it ends.
type lastWord struct {
	Failures []string // writes and flushes that did not succeed, at most a few
	Count    int      // how many there were
}

const mostFailures = 8

// HelperMain is the process that serves one image; the program calls it when it was started with [HelperVerb]. It ends
// when its mount is gone. It writes the changes that failed to a file in the runtime folder; its exit status is 0 if
// there are none. It reads its orders from descriptor 3 and answers on 4.
func HelperMain([]string) int {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	ready := os.NewFile(4, "ready")
	o, secret, err := takeOrders(os.NewFile(3, "order"))
	if err != nil || ready == nil {
		fmt.Fprintln(os.Stderr, "this entry is only for the program itself")
		return 2
	}
	protect()
	s, a, err := start(o, secret)
	clear(secret)
	if err != nil {
		a.Error = err.Error()
		a.InUse = errors.Is(err, container.ErrInUse)
		a.NoFUSE = errors.Is(err, ErrNoFUSE)
	}
	// The process that started this one may be dead; then the image would stay served for ever.
	if e := json.NewEncoder(ready).Encode(a); e != nil && s != nil {
		_ = unmount(o.MountAt)
	}
	ready.Close()
	if err != nil {
		log.Print(err)
		return 1
	}
	return s.run(o)
}

// takeOrders reads orders and keys with as few copies of the keys as possible: the caller wipes the one there is.
func takeOrders(f *os.File) (o order, secret []byte, err error) {
	if f == nil {
		return o, nil, fs.ErrInvalid
	}
	defer f.Close()
	all := make([]byte, mostOrders)
	n, err := io.ReadFull(f, all)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		return o, nil, errors.Join(err, fs.ErrInvalid)
	}
	line, secret, _ := bytes.Cut(all[:n], []byte("\n"))
	err = json.Unmarshal(line, &o)
	for _, p := range o.paths() {
		*p = fromText(*p)
	}
	return o, secret, err
}

// mostOrders is one more than the most bytes of orders and keys.
const mostOrders = 1 << 20

// server is a mounted FUSE file system with its container.
type server struct {
	wait   func() // until the file system is unmounted
	image  container.Image
	dir    *hostio.Dir
	volume *volumeFS // nil when the device is served
	fails  *failures
}

// start opens the container and mounts the file system that serves it.
func start(o order, secret []byte) (s *server, a answer, err error) {
	s = &server{fails: &failures{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
			s = nil
		}
	}()
	if s.dir, err = hostio.OpenDir(filepath.Dir(o.Image)); err != nil {
		return s, a, err
	}
	if s.image, a, err = openImage(s.dir, o, secret); err != nil {
		return s, a, err
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return s, a, fmt.Errorf("%w: %w", ErrNoFUSE, err)
	}
	var raw fuse.RawFileSystem
	if o.Volume {
		if s.volume, err = openVolume(s.image, o, a.ReadOnly, s.fails); err != nil {
			return s, a, err
		}
		a.Label = s.volume.volume.Label()
		a.Warnings = append(a.Warnings, s.volume.warnings...)
		raw = s.volume.raw()
	} else if raw, err = newDeviceFS(s.image, o.Parts, a.ReadOnly, s.fails); err != nil {
		return s, a, err
	}
	return s, a, s.mount(raw, o, a.ReadOnly)
}

// mount shows the file system. A device that the kernel makes a disk of is served by our own loop.
func (s *server) mount(raw fuse.RawFileSystem, o order, readOnly bool) error {
	options := mountOptions(o, readOnly)
	if !o.Volume && os.Geteuid() == 0 {
		l, err := newLink(raw, o.MountAt, options)
		if err != nil {
			return fmt.Errorf("mounting on %q: %w", o.MountAt, err)
		}
		s.wait = l.wait
		return nil
	}
	f, err := fuse.NewServer(raw, o.MountAt, options)
	if err != nil {
		return fmt.Errorf("mounting on %q: %w", o.MountAt, err)
	}
	s.wait = f.Wait
	go f.Serve()
	return f.WaitMount()
}

// openImage opens the container past the host's page cache; one that cannot be written is opened for reading.
func openImage(dir *hostio.Dir, o order, secret []byte) (container.Image, answer, error) {
	options := container.OpenOptions{ReadOnly: o.ReadOnly, Hold: true, Cache: hostio.CacheDirect}
	if len(secret) > 0 {
		keys, err := crypt.ParseKeys(secret)
		if err != nil {
			return nil, answer{}, err
		}
		defer keys.Wipe()
		options.Keys = keys
	}
	image, err := container.Open(dir, filepath.Base(o.Image), options)
	a := answer{ReadOnly: o.ReadOnly}
	if cannotWrite(err) && !o.ReadOnly {
		options.ReadOnly = true
		if second, e := container.Open(dir, filepath.Base(o.Image), options); e == nil {
			a.ReadOnly = true
			if _, sealed := second.(container.Tabled); !sealed { // these are read-only by nature
				a.Warnings = []string{fmt.Sprintf("attached read-only: %v", err)}
			}
			image, err = second, nil
		}
	}
	if err != nil {
		return nil, a, err
	}
	if w, ok := image.(container.Warner); ok {
		a.Warnings = append(a.Warnings, w.Warnings()...)
	}
	return image, a, nil
}

// cannotWrite reports whether a container can only be opened for reading.
func cannotWrite(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)
}

// fuseType is the type of our mounts in the mount table.
const fuseType = "fuse.dmgbench"

// mountOptions are those that were measured to matter: large requests, many of them at once, no splicing.
func mountOptions(o order, readOnly bool) *fuse.MountOptions {
	options := &fuse.MountOptions{
		AllowOther:          o.Others,
		MaxBackground:       64,
		CongestionThreshold: 64,
		MaxWrite:            maxRequest,
		DisableSplice:       true,
		DisableXAttrs:       true,
		EnableLocks:         false,
		FsName:              "dmgbench:" + strings.Map(plainName, filepath.Base(o.Image)),
		Name:                "dmgbench",
		ExtraCapabilities:   fuse.CAP_ASYNC_DIO | fuse.CAP_IOCTL_DIR,
		DirectMountStrict:   os.Geteuid() == 0,
		Options:             []string{"default_permissions"},
	}
	if os.Geteuid() == 0 {
		options.DirectMountFlags = mountFlags
		if readOnly {
			options.DirectMountFlags |= unix.MS_RDONLY
		}
	} else {
		options.Options = append(options.Options, "nosuid", "nodev")
		if readOnly {
			options.Options = append(options.Options, "ro")
		}
	}
	return options
}

// plainName replaces characters that have a meaning in mount options.
func plainName(r rune) rune {
	if r == ',' || r == '\\' || r < ' ' {
		return '_'
	}
	return r
}

// run serves until the mount is gone.
func (s *server) run(o order) int {
	// The terminal and the session are not ours; a request to end would leave a mount without a file system.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE)
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	go func() {
		for range term {
			log.Print("asked to end: flushing, and serving on until the image is detached")
			s.fails.add("flushing", s.flush())
		}
	}()
	s.wait()
	s.fails.add("closing", s.release())
	word := s.fails.lastWord()
	data, err := json.Marshal(word)
	if err == nil {
		err = os.WriteFile(o.End, data, 0o600)
	}
	if err != nil {
		log.Print(err)
	}
	if word.Count > 0 || err != nil {
		return 1
	}
	return 0
}

// flush makes durable what was written so far.
func (s *server) flush() error {
	if s.volume != nil {
		return s.volume.volume.Sync()
	}
	return s.image.Flush()
}

// release closes volume, container and folder, each if it is open.
func (s *server) release() error {
	var errs []error
	if s.volume != nil {
		errs = append(errs, s.volume.close())
	}
	if s.image != nil {
		errs = append(errs, s.image.Close())
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Close())
	}
	return errors.Join(errs...)
}

// protect prevents deadlocks when memory is short: the pages of the process stay in memory, the kernel does not write
// back through it to free memory for it, and it is killed last. Failures are written to the log, and the image is
// served in any case.
func protect() {
	debug.SetGCPercent(400) // the buffers of requests are few and live long
	note := func(what string, err error) {
		if err != nil {
			log.Printf("%s: %v", what, err)
		}
	}
	note("being killed last", os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0))
	if mayLock() {
		note("staying in memory", unix.Mlockall(unix.MCL_CURRENT|unix.MCL_FUTURE|unix.MCL_ONFAULT))
	} else {
		log.Print("staying in memory: no CAP_IPC_LOCK")
	}
}

// mayLock reports whether memory can be locked without a limit: with one, later allocations would fail.
func mayLock() bool {
	var header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0
}
