package attach

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
)

// HelperMain is the process that serves one image; the program calls it when it
// was started with [HelperVerb]. It ends when its mount is gone. It writes the
// changes that failed to a file in the runtime folder; its exit status is 0 if
// there are none. It reads its request from stdin and replies on stdout.
func HelperMain([]string) int {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	// The terminal and the session are not ours; a request to end would leave a
	// mount without a file system.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTERM)
	protectKeys()
	var r serveRequest
	if os.Getenv(helperMark) == "" || gob.NewDecoder(os.Stdin).Decode(&r) != nil {
		fmt.Fprintln(os.Stderr, "this entry is only for the program itself")
		return 2
	}
	lockMemory()
	go serveSignals(r.Tag)
	fails, served := &failures{}, false
	answer := func(reply serveReply) {
		served = reply.Error == ""
		// The process that started this one may be dead; then the image would stay
		// served for ever.
		if err := gob.NewEncoder(os.Stdout).Encode(reply); err != nil && served {
			_ = unmount(context.Background(), r.MountAt)
		}
	}
	err := serveImage(r, fails, answer)
	if report := strings.Join(fails.lost, "\n"); served {
		err = os.WriteFile(r.End, []byte(report), 0o600)
		if err == nil && report != "" {
			err = errors.New("changes failed, see the report")
		}
	} else {
		answer(serveReply{Error: err.Error(), InUse: errors.Is(err, container.ErrInUse)})
	}
	if err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

// unmountSignal asks a serving process to unmount its file system, which a
// command in another mount namespace cannot do.
const unmountSignal = unix.SIGUSR1

// serveSignals unmounts the file system of this process at every [unmountSignal].
// One in use stays.
func serveSignals(tag string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unmountSignal)
	for range signals {
		points, err := (&record{Tag: tag}).servedMounts()
		for _, point := range points {
			err = errors.Join(err, unmount(context.Background(), point))
		}
		if err != nil {
			log.Print(err)
		}
	}
}

// protectKeys keeps the memory of this process, which has the keys of encrypted
// images, out of core dumps and from other processes of the user.
func protectKeys() {
	err1 := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	err2 := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if err := errors.Join(err1, err2); err != nil {
		log.Printf("protecting keys: %v", err)
	}
}

// serveImage opens the container, mounts the file system that serves it, and
// calls ready. It returns when the file system is unmounted.
func serveImage(r serveRequest, fails *failures, ready func(serveReply)) error {
	dir, err := hostio.OpenDir(filepath.Dir(r.Image))
	if err != nil {
		return err
	}
	defer dir.Close()
	image, reply, err := openImage(dir, r)
	clear(r.Keys) // the open image has what it needs
	if err != nil {
		return err
	}
	defer func() { fails.add("closing", image.Close()) }()
	var raw fuse.RawFileSystem
	if r.Volume {
		v, err := openVolume(image, r, reply.ReadOnly, fails)
		if err != nil {
			return err
		}
		defer func() { fails.add("closing", v.close()) }()
		reply.Warnings, raw = append(reply.Warnings, v.warnings...), v.raw()
	} else if raw, err = newDeviceFS(image, r.Parts, reply.ReadOnly, fails); err != nil {
		return err
	}
	wait, err := mountFUSE(raw, r, reply.ReadOnly)
	if err != nil {
		return fmt.Errorf("mounting on %q: %w", r.MountAt, err)
	}
	ready(reply)
	wait()
	return nil
}

// mountFUSE shows the file system; wait returns when it is unmounted. A device
// that the kernel makes a disk of is served by our own loop.
func mountFUSE(raw fuse.RawFileSystem, r serveRequest, readOnly bool) (wait func(), err error) {
	options := mountOptions(r, readOnly)
	if !r.Volume && os.Geteuid() == 0 {
		f, err := newFuseServer(raw, r.MountAt, options)
		return f.wait, err
	}
	f, err := fuse.NewServer(raw, r.MountAt, options)
	if err != nil {
		return nil, decodeStatus(err)
	}
	go f.Serve()
	return f.Wait, f.WaitMount()
}

// fusermountEnded starts the error of a failed fusermount, whose reason is in the
// log.
const fusermountEnded = "fusermount ended with status"

// decodeStatus makes the exit status of fusermount readable: go-fuse prints what
// wait(2) returned.
func decodeStatus(err error) error {
	var status unix.WaitStatus
	if _, e := fmt.Sscanf(err.Error(), "fusermount exited with code %d", &status); e != nil {
		return err
	}
	return fmt.Errorf("%s %d", fusermountEnded, status.ExitStatus())
}

// CheckFUSE returns why this user cannot mount by FUSE: [ErrNoFUSE] and the cause.
func CheckFUSE() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0) // opening it mounts no volume
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoFUSE, err)
	}
	return f.Close()
}

// openImage opens the container past the host's page cache; one that cannot be
// written is opened for reading.
func openImage(dir *hostio.Dir, r serveRequest) (container.Image, serveReply, error) {
	options := container.OpenOptions{ReadOnly: r.ReadOnly, Hold: true, Cache: hostio.CacheDirect, Keys: r.Keys}
	name, reply := filepath.Base(r.Image), serveReply{ReadOnly: r.ReadOnly}
	image, err := container.Open(dir, name, options)
	if readWrite := err; cannotWrite(err) && !r.ReadOnly {
		options.ReadOnly, reply.ReadOnly = true, true
		image, err = container.Open(dir, name, options)
		if _, tabled := image.(container.UDIFImage); !tabled { // these are read-only by nature
			reply.Warnings = []string{fmt.Sprintf("attached read-only: %v", readWrite)}
		}
	}
	if err != nil {
		return nil, reply, err
	}
	if w, ok := image.(container.Warner); ok {
		reply.Warnings = append(reply.Warnings, w.Warnings()...)
	}
	return image, reply, nil
}

// cannotWrite reports whether a container can only be opened for reading.
func cannotWrite(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)
}

// fuseType is the type of our mounts in the mount table.
const fuseType = "fuse.dmgbench"

// mountOptions are those that were measured to matter: large requests, many of
// them at once, no splicing.
func mountOptions(r serveRequest, readOnly bool) *fuse.MountOptions {
	options := &fuse.MountOptions{FsName: r.Tag, Name: "dmgbench",
		MaxBackground: 64, CongestionThreshold: 64, MaxWrite: maxRequest,
		DisableSplice: true, DisableXAttrs: true,
		DisableReadDirPlus: !r.Volume, // deviceFS has few files
		ExtraCapabilities:  fuse.CAP_ASYNC_DIO | fuse.CAP_IOCTL_DIR,
		AllowOther:         r.Volume && os.Geteuid() == 0, Options: []string{"default_permissions"},
		DirectMountStrict: os.Geteuid() == 0, DirectMountFlags: mountFlags,
	}
	if readOnly {
		options.DirectMountFlags |= unix.MS_RDONLY
	}
	if os.Geteuid() != 0 { // fusermount takes words
		options.Options = append(options.Options, "nosuid", "nodev", map[bool]string{true: "ro", false: "rw"}[readOnly])
	}
	return options
}

// lockMemory prevents deadlocks when memory is short: the pages of the process
// stay in memory, the kernel does not write back through it to free memory for
// it, and it is killed last. Failures are written to the log, and the image is
// served in any case.
func lockMemory() {
	debug.SetGCPercent(400) // the buffers of requests are few and live long
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0); err != nil {
		log.Printf("being killed last: %v", err)
	}
	// Memory can only be locked without a limit: with one, later allocations
	// would fail.
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unlimited)
	if err == nil {
		err = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	}
	if err != nil {
		log.Printf("staying in memory: %v", err)
	}
}

// serveRequest is what the serving process reads from stdin, as gob, because
// paths may be any bytes.
type serveRequest struct {
	Image    string
	Tag      string     // the source of the mount
	Keys     crypt.Keys // of an encrypted image
	ReadOnly bool
	MountAt  string
	Volume   bool            // serve the files of the exFAT volume in Parts[0], not the device
	Parts    []gpt.Partition // of the device
	End      string          // the file for the report of what failed
	UID, GID uint32          // of the files of a volume
	Umask    uint32          // of their modes
}

// serveReply is what the process writes once to stdout, when it serves or has
// failed.
type serveReply struct {
	Error    string // verbatim; empty: it serves
	InUse    bool   // the error is container.ErrInUse
	ReadOnly bool   // it could only be opened for reading
	Warnings []string
}

// helperTimeout is how long a process may take to open a container and to
// mount.
const helperTimeout = 60 * time.Second

// answerTimeout is how long a serving process may take to answer a request, or
// to end; a variable for tests.
var answerTimeout = helperTimeout

// helperMark is a variable in the environment of a serving process. A program
// that does not dispatch to HelperMain, such as a test program of another
// package, would otherwise do its own work there, and start the next process.
const helperMark = "DMGBENCH_ATTACH_HELPER"

// spawn starts the process that serves an image in a session of its own, and
// waits until it serves.
func (s *store) spawn(ctx context.Context, r *record, req serveRequest) (reply serveReply, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("serving %q: %w", req.Image, err)
		}
	}()
	if os.Getenv(helperMark) != "" {
		return reply, fmt.Errorf("this process serves an image, and its program ignores %s", HelperVerb)
	}
	logFile, err := os.OpenFile(s.path(r.ID+".log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return reply, err
	}
	defer logFile.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"dmgbench", HelperVerb, req.Image} // what a list of processes shows
	cmd.Dir, cmd.Env = "/", []string{"LC_ALL=C", helperMark + "=1"}
	// Only what it needs. It uses every core, whatever limit a measuring
	// program has.
	for _, name := range []string{"PATH", "GOCOVERDIR", "DMGBENCH_RUNTIME_DIR"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	cmd.Stderr = logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err = errors.Join(err1, err2); err == nil {
		err = startAsFlusher(cmd)
	}
	if err != nil {
		return reply, err
	}
	r.HelperPID = cmd.Process.Pid
	r.HelperStart, _ = processStart(r.HelperPID)
	if err = s.save(r); err == nil {
		reply, err = handshake(ctx, cmd, in, out, req)
	}
	if err == nil {
		go cmd.Wait() // a program that runs on after the attach must not keep its remains
		return reply, nil
	}
	if errors.Is(err, errNoReply) {
		_ = cmd.Wait()
	} else {
		cmd.Process.Kill()
		go cmd.Wait()
	}
	words, _ := s.dir.ReadFile(r.ID+".log", 1<<20)
	switch {
	case errors.Is(err, errNoReply):
		err = fmt.Errorf("%w (%v): %s", err, cmd.ProcessState, lastWords(words, ""))
	case strings.Contains(reply.Error, fusermountEnded):
		err = fmt.Errorf("%w: %s", err, lastWords(words, "fusermount"))
	}
	return reply, err
}

// errNoReply is the error of a process that ended before it replied.
var errNoReply = errors.New("the process ended without a reply")

// lastWords are the last lines of a log, of those that contain a word.
func lastWords(log []byte, word string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(log)), "\n"),
		func(line string) bool { return !strings.Contains(line, word) })
	words := strings.Join(lines[max(0, len(lines)-4):], "; ")
	return cmp.Or(words, "its log is empty")
}

// startAsFlusher starts a process that the kernel does not let wait for its own
// writing back. The mark is that of the thread which forks, passes to all
// threads of the new process, and takes CAP_SYS_RESOURCE.
func startAsFlusher(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_IO_FLUSHER, 1, 0, 0, 0) == nil {
		defer unix.Prctl(unix.PR_SET_IO_FLUSHER, 0, 0, 0, 0)
	}
	return cmd.Start()
}

// handshake sends the request, and waits for the reply.
func handshake(
	ctx context.Context, cmd *exec.Cmd, in io.WriteCloser, out io.Reader, req serveRequest,
) (reply serveReply, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helperTimeout, fmt.Errorf("no reply within %v", helperTimeout))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	err = errors.Join(gob.NewEncoder(in).Encode(req), in.Close(), gob.NewDecoder(out).Decode(&reply))
	switch {
	case !stop():
		err = context.Cause(ctx)
	case err != nil:
		err = fmt.Errorf("%w: %w", errNoReply, err)
	case reply.InUse:
		err = fmt.Errorf("%s%.0w", reply.Error, container.ErrInUse)
	case reply.Error != "":
		err = errors.New(reply.Error)
	}
	return reply, err
}

// maxFailures is how many failures a report describes.
const maxFailures = 8

// failures collects the changes that failed in a serving process, for its log
// and for the caller of Detach. A read that fails loses nothing: its error goes
// to the program that reads.
type failures struct {
	mu   sync.Mutex
	lost []string // at most maxFailures and a line for the others
}

// change returns the number of the error of a change, 0 for nil, and records it
// unless it comes from a request rather than from a failing volume or host.
func (f *failures) change(doing string, err error) syscall.Errno {
	errno := errnoOf(err)
	switch errno {
	case 0, syscall.EOPNOTSUPP, syscall.ENOTEMPTY, syscall.EISDIR, syscall.ENOTDIR, syscall.EBUSY, syscall.EINVAL,
		syscall.ENOENT, syscall.EEXIST, syscall.EINTR:
		return errno
	}
	if !errors.Is(err, exfat.ErrNoSpace) { // then the volume is full, not the host
		f.add(doing, err)
	}
	return errno
}

// errnoOf is [Errno], with EIO for an error that has none.
func errnoOf(err error) syscall.Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, exfat.ErrCorrupt):
		return syscall.EUCLEAN
	}
	return cmp.Or(Errno(err), syscall.EIO)
}

// add records a failed change, if err is one.
func (f *failures) add(doing string, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text := doing + ": " + strings.ReplaceAll(err.Error(), "\n", "; ")
	if len(f.lost) == maxFailures {
		text = "and more failures"
	}
	if len(f.lost) <= maxFailures {
		log.Print(text)
		f.lost = append(f.lost, text)
	}
}
