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
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/container/crypt"
)

// patience is how long a process may take to open a container and to mount, and to end.
const patience = 60 * time.Second

// helperMark is a variable in the environment of a serving process. A program that does not dispatch to HelperMain,
// such as a test program of another package, would otherwise do its own work there, and start the next process.
const helperMark = "DMGBENCH_ATTACH_HELPER"

// inUse marks an error as that of a container which somebody else has open.
type inUse struct{ error }

func (e inUse) Unwrap() error { return unix.EAGAIN }

// spawn starts the process that serves an image in a session of its own, and waits until it serves.
func spawn(ctx context.Context, s *store, r *record, args []string, o order, keys *crypt.Keys) (answer, error) {
	if os.Getenv(helperMark) != "" {
		return answer{}, fmt.Errorf("starting the process that serves %q: this is one, and its program ignores %s",
			o.Image, HelperVerb)
	}
	if len(args) == 0 {
		args = []string{"/proc/self/exe", HelperVerb}
	}
	logFile, err := os.OpenFile(s.path(r.ID+".log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return answer{}, fmt.Errorf("making the log of the serving process: %w", err)
	}
	defer logFile.Close()
	orders, tell, err := os.Pipe()
	if err != nil {
		return answer{}, err
	}
	defer tell.Close()
	hear, ready, err := os.Pipe()
	if err != nil {
		orders.Close()
		return answer{}, err
	}
	defer hear.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Args = append(append([]string{"dmgbench"}, args[1:]...), o.Image) // what a list of processes shows
	cmd.Dir, cmd.Env = "/", helperEnv()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.ExtraFiles = []*os.File{orders, ready}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = startAsFlusher(cmd)
	orders.Close()
	ready.Close()
	if err != nil {
		return answer{}, fmt.Errorf("starting the process that serves %q: %w", o.Image, err)
	}
	r.HelperPID = cmd.Process.Pid
	r.HelperStart, _ = processStart(r.HelperPID)
	go cmd.Wait() // whoever lives on after the attach shall not keep its remains
	if err := s.save(r); err != nil {
		cmd.Process.Kill()
		return answer{}, err
	}
	a, err := handshake(ctx, tell, hear, o, keys)
	if err != nil && a.Error == "" {
		cmd.Process.Kill()
	}
	return a, err
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
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name == "PATH" || name == "GOCOVERDIR" || name == "DMGBENCH_RUNTIME_DIR" {
			env = append(env, entry)
		}
	}
	return env
}

// handshake gives the orders and the keys, and waits for the answer.
func handshake(ctx context.Context, tell, hear *os.File, o order, keys *crypt.Keys) (a answer, err error) {
	coded := o
	for _, p := range coded.paths() {
		*p = asText(*p)
	}
	err = json.NewEncoder(tell).Encode(coded)
	if err == nil && keys != nil {
		secret := keys.Marshal()
		_, err = tell.Write(secret)
		clear(secret)
	}
	if err = errors.Join(err, tell.Close()); err != nil {
		return a, fmt.Errorf("telling the process that serves %q: %w", o.Image, err)
	}
	stop := context.AfterFunc(ctx, func() { hear.SetReadDeadline(time.Now()) })
	defer stop()
	if err := hear.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return a, err
	}
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	err = json.NewDecoder(hear).Decode(&a)
	switch {
	case ctx.Err() != nil:
		return a, ctx.Err()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return a, fmt.Errorf("serving %q: the process ended without a word", o.Image)
	case err != nil:
		return a, fmt.Errorf("serving %q: %w", o.Image, err)
	case a.Error == "":
		return a, nil
	}
	err = errors.New(a.Error)
	if a.InUse {
		err = inUse{err}
	}
	if a.NoFUSE {
		err = fmt.Errorf("%w%.0w", err, ErrNoFUSE)
	}
	return a, err
}
