// Package proc runs one command of the system cleanly, and only that.
//
// A tool runs alone (one at a time in this process), in a session of its own,
// with a fixed small environment, with a deadline at which its whole process
// group is ended, first politely. Its output goes to files that have no name:
// a helper that outlives the tool and inherits a pipe would keep its reader
// waiting for ever. Standard input is always given. The package knows no
// tool, judges no output and retries nothing.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// maxOutput bounds how much of each output is read back, in bytes. What is longer is cut in the middle.
const maxOutput = 16 << 20

// Job is one command.
type Job struct {
	Path     string   // absolute
	Args     []string // without the program's name
	Input    []byte   // standard input, nil for /dev/null; at most 4096 bytes
	Deadline time.Duration
	Grace    time.Duration // between the polite end and the other
	Dir      string        // where output files are made, and the working directory
}

// Result is what a command that ran did.
type Result struct {
	Stdout, Stderr []byte
	Status         int // exit status, -1 when a signal ended it
	Duration       time.Duration
}

// Conditions that callers branch on.
var (
	// ErrMissing says that there is no such program.
	ErrMissing = errors.New("the program is missing")
	// ErrDeadline says that the command did not end in time and was ended.
	ErrDeadline = errors.New("it did not end in time")
	// ErrSignal says that somebody else's signal ended the command: the system's when memory runs short, or a person's.
	ErrSignal = errors.New("a signal ended it")
)

// turn is held by the command that runs.
var turn = make(chan struct{}, 1)

// Run runs the command to its end and returns what it printed and its status.
// An error means that it did not run to its end: [ErrMissing], [ErrDeadline],
// [ErrSignal], the context's error. Even then the output so far is in the result, and no
// process of the command's group is left.
func Run(ctx context.Context, j Job) (Result, error) {
	if err := j.check(); err != nil {
		return Result{}, err
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
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
		return fmt.Errorf("running %q: no program: %w", j.Path, ErrMissing)
	case len(j.Input) > 4096:
		return fmt.Errorf("running %q: input of %d bytes, at most 4096", j.Path, len(j.Input))
	case j.Deadline <= 0:
		return fmt.Errorf("running %q: no deadline", j.Path)
	}
	return nil
}

func (j Job) run(ctx context.Context) (Result, error) {
	var r Result
	out, err := j.unnamed()
	if err != nil {
		return r, err
	}
	defer out.Close()
	said, err := j.unnamed()
	if err != nil {
		return r, err
	}
	defer said.Close()
	in, err := j.input()
	if err != nil {
		return r, err
	}
	defer in.Close()
	cmd := exec.Command(j.Path, j.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, said
	cmd.Dir, cmd.Env, cmd.SysProcAttr = j.Dir, environment(os.Environ()), session()
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
	var e1, e2 error
	r.Stdout, e1 = content(out)
	r.Stderr, e2 = content(said)
	return r, errors.Join(err, e1, e2)
}

// wait lets the command end, or ends its group: at the deadline, or when the context does.
func (j Job) wait(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the status tells more
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
	terminate(cmd.Process.Pid)
	grace := time.NewTimer(j.Grace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
	kill(cmd.Process.Pid) // also what the leader left behind in its group
	<-done
	return err
}

// unnamed is a file for output that nobody else can open and that ends with its last descriptor.
func (j Job) unnamed() (*os.File, error) {
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

// input is the null device, or a pipe that already holds everything and has no writer.
func (j Job) input() (*os.File, error) {
	if j.Input == nil {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return nil, fmt.Errorf("opening the input: %w", err)
		}
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the input: %w", err)
	}
	_, err = w.Write(j.Input)
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("filling the input: %w", err)
	}
	return r, nil
}

func content(f *os.File) ([]byte, error) {
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
	return append(append(head, "\n[…]\n"...), tail...), err
}

// kept are the variables that tools may need. All others stay here: a
// passphrase may be among them, and com_apple_hdid_… would change what hdiutil does.
var kept = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "__CF_USER_TEXT_ENCODING", "SUDO_UID", "SUDO_GID", "SUDO_USER",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "DMGBENCH_RUNTIME_DIR", "GOCOVERDIR",
}

func environment(all []string) []string {
	env := []string{"LC_ALL=C", "LANG=C"}
	for _, e := range all {
		name, _, _ := strings.Cut(e, "=")
		for _, k := range kept {
			if name == k {
				env = append(env, e)
			}
		}
	}
	return env
}
