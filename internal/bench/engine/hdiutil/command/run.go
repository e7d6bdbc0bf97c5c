package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxOutput bounds how much of each output is read, in bytes.
const maxOutput = 16 << 20

// Job is one run of a program.
type Job struct {
	Path     string   // absolute
	Args     []string // without the program's name
	Input    []byte   // standard input, nil for /dev/null
	Deadline time.Duration
	Grace    time.Duration // between SIGTERM and SIGKILL, more than 0
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
func Run(ctx context.Context, j Job) (r Result, err error) {
	if !filepath.IsAbs(j.Path) {
		return r, fmt.Errorf("running %q: want an absolute path", j.Path)
	}
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return r, ctx.Err()
	}
	stdout, err := createOutput(j.Dir)
	if err != nil {
		return r, err
	}
	defer stdout.Close()
	stderr, err := createOutput(j.Dir)
	if err != nil {
		return r, err
	}
	defer stderr.Close()
	err = j.run(ctx, stdout, stderr, &r)
	var errOut, errErr error
	r.Stdout, errOut = readOutput(stdout)
	r.Stderr, errErr = readOutput(stderr)
	return r, errors.Join(err, errOut, errErr)
}

// run starts the program and waits for its end.
func (j Job) run(ctx context.Context, stdout, stderr *os.File, r *Result) error {
	late := fmt.Errorf("%w: ended after %s", ErrDeadline, j.Deadline)
	ctx, cancel := context.WithTimeoutCause(ctx, j.Deadline, late)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.Path, j.Args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = stdout, stderr, j.Dir, childEnvironment(os.Environ())
	if j.Input != nil {
		cmd.Stdin = bytes.NewReader(j.Input)
	}
	// A session and process group of its own, without our terminal: the
	// interrupt key is for us alone, and the program cannot prompt.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ended := false
	cmd.Cancel = func() error {
		ended = true
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	cmd.WaitDelay = j.Grace
	start := time.Now()
	err := cmd.Run()
	r.Duration = time.Since(start)
	switch {
	case cmd.ProcessState == nil: // not started
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: %w", ErrMissing, err)
		}
		return fmt.Errorf("running %q: %w", j.Path, err)
	case ended:
		// Also what the program started and left running. A group that has
		// ended is not an error.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		err = context.Cause(ctx)
	case cmd.ProcessState.ExitCode() < 0:
		err = fmt.Errorf("%w: %s", ErrSignal, strings.TrimPrefix(cmd.ProcessState.String(), "signal: "))
	default:
		err = nil // the status is part of the result
	}
	r.Status = cmd.ProcessState.ExitCode()
	return err
}

// createOutput makes a file that no other program can open and that disappears
// with its last descriptor.
func createOutput(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".out-*")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("making an output file: %w", err)
	}
	return f, nil
}

func readOutput(f *os.File) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, maxOutput))
}

// passedVariables are the variables that tools may need. All others are left
// out: one may hold a passphrase, and com_apple_hdid_… would change what
// hdiutil does.
var passedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "__CF_USER_TEXT_ENCODING", "SUDO_UID", "SUDO_GID", "SUDO_USER",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "DMGBENCH_RUNTIME_DIR", "GOCOVERDIR",
}

// childEnvironment is the environment of tools, in the language C.
func childEnvironment(all []string) []string {
	env := []string{"LC_ALL=C", "LANG=C"}
	for _, e := range all {
		if name, _, _ := strings.Cut(e, "="); slices.Contains(passedVariables, name) {
			env = append(env, e)
		}
	}
	return env
}
