package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pidFile = "pid" // in the folder of a task: its child

	// graceTime is how long a child may take to detach its images after an
	// interrupt, before it is killed.
	graceTime = 30 * time.Second

	maxLine = 16 << 10 // bytes of a line of a child; the rest is dropped
)

// program is the dmgbench of the agent. Its state folder is the agent's own, so
// that it does not touch the owner's runs.
type program struct{ path, state, machine string }

// lineWriter calls onLine for each line that is written to it.
type lineWriter struct {
	onLine  func(line []byte)
	partial []byte
}

// Write never fails: the child must not end because of a line.
func (w *lineWriter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		w.partial = append(w.partial, text[:min(len(text), maxLine-len(w.partial))]...)
		if whole {
			w.onLine(w.partial)
			w.partial = w.partial[:0]
		}
	}
	return len(p), nil
}

// execute executes dmgbench for the task in dir and returns its exit status, -1
// if a signal ended it. onLine gets each line of stderr, and stdin for answers.
// When ctx ends, the child is interrupted and later killed.
func (p program) execute(ctx context.Context, dir string, onLine func([]byte, io.Writer), args ...string) (int, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DMGBENCH_STATE="+p.state, "DMGBENCH_HOST_NAME="+p.machine)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, graceTime
	cmd.SysProcAttr = childAttributes()
	stdin, err := cmd.StdinPipe()
	cmd.Stderr = &lineWriter{onLine: func(line []byte) { onLine(line, stdin) }}
	// The system sends the signal of childAttributes when the thread ends that
	// started the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("starting %q: %w", p.path, err)
	}
	file := filepath.Join(dir, pidFile)
	_ = os.WriteFile(file, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600) // the lock of the journal protects the run, too
	_ = cmd.Wait()                                                       // its status follows
	_ = os.Remove(file)
	return cmd.ProcessState.ExitCode(), nil
}

// endFormer ends the child that an agent started for the task in dir before it
// was killed. The number may belong to another process by now: the command line
// decides.
func endFormer(dir string) {
	text, _ := os.ReadFile(filepath.Join(dir, pidFile))
	pid, err := strconv.Atoi(string(text))
	if err != nil || pid <= 1 {
		return
	}
	isOurs := func() bool {
		line, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.Contains(string(line), dir)
	}
	if isOurs() {
		_ = syscall.Kill(pid, syscall.SIGINT)
	}
	for end := time.Now().Add(graceTime); isOurs(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// version is the version of the program, "" if it cannot be executed.
func (p program) version(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, p.path, "version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "dmgbench ")
}
