package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/container/crypt"
)

// serveRequest is what the serving process reads from descriptor 3, as a line of JSON. The keys of an encrypted image
// follow, up to the end.
type serveRequest struct {
	Image    string
	ReadOnly bool
	MountAt  string
	Volume   bool      // serve the files of the exFAT volume in Parts[0], not the device
	Parts    []section // the partitions
	End      string    // the file for the exitReport
	Others   bool      // all users may read the mount, not only the one who made it
	UID, GID uint32    // of the files of a volume
}

// paths are those that may be any bytes.
func (r *serveRequest) paths() []*string { return []*string{&r.Image, &r.MountAt, &r.End} }

// serveReply is what the process writes once to descriptor 4, when it serves or has failed.
type serveReply struct {
	Error    string // verbatim; empty: it serves
	InUse    bool   // the error is that another process has the container open
	NoFUSE   bool   // the error is that the system has no FUSE
	ReadOnly bool   // it could only be opened for reading
	Warnings []string
}

// helperTimeout is how long a process may take to open a container and to mount, and to end.
const helperTimeout = 60 * time.Second

// helperMark is a variable in the environment of a serving process. A program that does not dispatch to HelperMain,
// such as a test program of another package, would otherwise do its own work there, and start the next process.
const helperMark = "DMGBENCH_ATTACH_HELPER"

// inUseError marks an error as that of a container which another process has open.
type inUseError struct{ error }

func (e inUseError) Unwrap() error { return unix.EAGAIN }

// spawn starts the process that serves an image in a session of its own, and waits until it serves.
func (s *store) spawn(
	ctx context.Context, r *record, args []string, req serveRequest, keys *crypt.Keys,
) (reply serveReply, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("serving %q: %w", req.Image, err)
		}
	}()
	if os.Getenv(helperMark) != "" {
		return reply, fmt.Errorf("this process serves an image, and its program ignores %s", HelperVerb)
	}
	if len(args) == 0 {
		args = []string{"/proc/self/exe", HelperVerb}
	}
	logFile, err := os.OpenFile(s.path(r.ID+".log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return reply, err
	}
	defer logFile.Close()
	requestEnd, toHelper, err := os.Pipe()
	if err != nil {
		return reply, err
	}
	defer toHelper.Close()
	fromHelper, replyEnd, err := os.Pipe()
	if err != nil {
		requestEnd.Close()
		return reply, err
	}
	defer fromHelper.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Args = slices.Concat([]string{"dmgbench"}, args[1:], []string{req.Image}) // what a list of processes shows
	cmd.Dir, cmd.Env = "/", helperEnv()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.ExtraFiles = []*os.File{requestEnd, replyEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = startAsFlusher(cmd)
	requestEnd.Close()
	replyEnd.Close()
	if err != nil {
		return reply, err
	}
	r.HelperPID = cmd.Process.Pid
	r.HelperStart, _ = processStart(r.HelperPID)
	go cmd.Wait() // a program that runs on after the attach must not keep its remains
	if err = s.save(r); err == nil {
		reply, err = handshake(ctx, toHelper, fromHelper, req, keys)
	}
	if err != nil && reply.Error == "" {
		cmd.Process.Kill()
	}
	return reply, err
}

// startAsFlusher starts a process that the kernel does not let wait for its own writing back. The mark is that of the
// thread which forks, passes to all threads of the new process, and takes CAP_SYS_RESOURCE.
func startAsFlusher(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_IO_FLUSHER, 1, 0, 0, 0) == nil {
		defer unix.Prctl(unix.PR_SET_IO_FLUSHER, 0, 0, 0, 0)
	}
	return cmd.Start()
}

// helperEnv is the environment of the process: only what it needs. It uses every core, whatever limit a measuring
// program has.
func helperEnv() []string {
	env := []string{"LC_ALL=C", helperMark + "=1"}
	for _, name := range []string{"PATH", "GOCOVERDIR", "DMGBENCH_RUNTIME_DIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// handshake sends the request and the keys, and waits for the reply.
func handshake(
	ctx context.Context, to, from *os.File, req serveRequest, keys *crypt.Keys,
) (reply serveReply, err error) {
	for _, p := range req.paths() {
		*p = asText(*p)
	}
	err = json.NewEncoder(to).Encode(req)
	if err == nil && keys != nil {
		secret := keys.Marshal()
		_, err = to.Write(secret)
		clear(secret)
	}
	if err = errors.Join(err, to.Close(), from.SetReadDeadline(time.Now().Add(helperTimeout))); err != nil {
		return reply, err
	}
	stop := context.AfterFunc(ctx, func() { from.SetReadDeadline(time.Now()) })
	defer stop()
	err = json.NewDecoder(from).Decode(&reply)
	switch {
	case ctx.Err() != nil:
		return reply, ctx.Err()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return reply, errors.New("the process ended without a reply")
	case err != nil || reply.Error == "":
		return reply, err
	}
	err = errors.New(strings.TrimSpace(reply.Error))
	if reply.InUse {
		err = inUseError{err}
	}
	if reply.NoFUSE {
		err = fmt.Errorf("%w%.0w", err, ErrNoFUSE)
	}
	return reply, err
}
