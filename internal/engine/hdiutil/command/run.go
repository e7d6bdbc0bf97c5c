package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxOutput bounds how much of each output is read, in bytes. The middle of a
// longer one is left out.
const maxOutput = 16 << 20

// maxInput is what a pipe holds without a reader, in bytes.
const maxInput = 4096

// Job is one run of a program.
type Job struct {
	Path     string   // absolute
	Args     []string // without the program's name
	Input    []byte   // standard input, nil for /dev/null; at most 4096 bytes
	Deadline time.Duration
	Grace    time.Duration // between SIGTERM and SIGKILL
	Dir      string        // the working directory, also for the files of the output
}

// Result is what a program that ran did.
type Result struct {
	Stdout, Stderr []byte
	Status         int // exit status, -1 if a signal ended it
	Duration       time.Duration
}

// Errors that callers test for.
var (
	ErrMissing  = errors.New("the program is missing")
	ErrDeadline = errors.New("it did not end in time")
	// ErrSignal means a signal that this package did not send: from the system
	// when memory ran short, or from a person.
	ErrSignal = errors.New("a signal ended it")
)

// running is held by the program that runs.
var running = make(chan struct{}, 1)

// Run runs a program to its end and returns its output and status. Programs run
// one at a time, each in a session of its own with a small fixed environment.
// Its output goes to files without a name: a helper that outlives the program
// and inherits a pipe would keep the reader of the pipe waiting. At the
// deadline or the end of the context Run ends the whole process group, first
// with SIGTERM.
//
// An error means that the program did not run to its end: [ErrMissing],
// [ErrDeadline], [ErrSignal], or the context's error. The result then has the
// output so far, and no process of the group is left.
func Run(ctx context.Context, j Job) (Result, error) {
	if err := j.check(); err != nil {
		return Result{}, err
	}
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return j.run(ctx)
}

func (j Job) check() error {
	if !filepath.IsAbs(j.Path) {
		return fmt.Errorf("running %q: want an absolute path", j.Path)
	}
	fi, err := os.Stat(j.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("running %q: %w", j.Path, ErrMissing)
	case err != nil:
		return fmt.Errorf("running %q: %w", j.Path, err)
	case !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("running %q: not a program: %w", j.Path, ErrMissing)
	case len(j.Input) > maxInput:
		return fmt.Errorf("running %q: input of %d bytes, at most %d", j.Path, len(j.Input), maxInput)
	case j.Deadline <= 0:
		return fmt.Errorf("running %q: no deadline", j.Path)
	}
	return nil
}

func (j Job) run(ctx context.Context) (Result, error) {
	var r Result
	stdout, err := j.createOutput()
	if err != nil {
		return r, err
	}
	defer stdout.Close()
	stderr, err := j.createOutput()
	if err != nil {
		return r, err
	}
	defer stderr.Close()
	stdin, err := j.openInput()
	if err != nil {
		return r, err
	}
	defer stdin.Close()
	cmd := exec.Command(j.Path, j.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.Dir, cmd.Env, cmd.SysProcAttr = j.Dir, childEnvironment(os.Environ()), newSession()
	start := time.Now()
	if err := cmd.Start(); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrMissing, err)
		}
		return r, fmt.Errorf("running %q: %w", j.Path, err)
	}
	err = j.wait(ctx, cmd)
	r.Duration, r.Status = time.Since(start), cmd.ProcessState.ExitCode()
	if err == nil && r.Status < 0 {
		err = fmt.Errorf("%w: %s", ErrSignal, strings.TrimPrefix(cmd.ProcessState.String(), "signal: "))
	}
	var errOut, errErr error
	r.Stdout, errOut = readOutput(stdout)
	r.Stderr, errErr = readOutput(stderr)
	return r, errors.Join(err, errOut, errErr)
}

// wait returns when the program has ended, or ends its group at the deadline or
// the end of the context.
func (j Job) wait(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // ProcessState has the status
	}()
	deadline := time.NewTimer(j.Deadline)
	defer deadline.Stop()
	var err error
	select {
	case <-done:
		return nil
	case <-deadline.C:
		err = fmt.Errorf("%w: ended after %s", ErrDeadline, j.Deadline)
	case <-ctx.Done():
		err = ctx.Err()
	}
	terminateGroup(cmd.Process.Pid)
	grace := time.NewTimer(j.Grace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
	killGroup(cmd.Process.Pid) // also what the program started and left running
	<-done
	return err
}

// createOutput makes a file that nobody else can open and that disappears with
// its last descriptor.
func (j Job) createOutput() (*os.File, error) {
	f, err := os.CreateTemp(j.Dir, ".out-*")
	if err != nil {
		return nil, fmt.Errorf("making an output file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("making an output file: %w", err)
	}
	return f, nil
}

// openInput opens the null device, or a pipe that already holds the whole input
// and has no writer.
func (j Job) openInput() (*os.File, error) {
	if j.Input == nil {
		return os.Open(os.DevNull)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the input: %w", err)
	}
	_, err = w.Write(j.Input)
	if err = errors.Join(err, w.Close()); err != nil {
		r.Close()
		return nil, fmt.Errorf("filling the input: %w", err)
	}
	return r, nil
}

func readOutput(f *os.File) ([]byte, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the output: %w", err)
	}
	if fi.Size() <= maxOutput {
		return io.ReadAll(io.NewSectionReader(f, 0, maxOutput))
	}
	head, err := io.ReadAll(io.NewSectionReader(f, 0, maxOutput/2))
	if err != nil {
		return nil, err
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, fi.Size()-maxOutput/2, maxOutput/2))
	return slices.Concat(head, []byte("\n[…]\n"), tail), err
}

// passedVariables are the variables that tools may need. All others are left
// out: one may hold a passphrase, and com_apple_hdid_… would change what
// hdiutil does.
var passedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "__CF_USER_TEXT_ENCODING", "SUDO_UID", "SUDO_GID", "SUDO_USER",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "DMGBENCH_RUNTIME_DIR", "GOCOVERDIR",
}

func childEnvironment(all []string) []string {
	env := []string{"LC_ALL=C", "LANG=C"}
	for _, e := range all {
		if name, _, _ := strings.Cut(e, "="); slices.Contains(passedVariables, name) {
			env = append(env, e)
		}
	}
	return env
}

// newSession gives a program a session and process group of its own, without
// our terminal: the interrupt key is for us alone, and the program cannot
// prompt.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// terminateGroup and killGroup signal the whole group. A group that has ended
// is not an error.
func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
