package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pidFile = "pid"    // in the folder of a task: its child
	maxLine = 16 << 10 // bytes of a line of a child; the rest is dropped

	// graceTime is how long a child may take to detach its images after an
	// interrupt, before it is killed.
	graceTime = 30 * time.Second
)

// program is the dmgbench of the agent. Its state folder is the agent's own, so
// that it does not touch the owner's runs.
type program struct{ path, state, machine string }

// command makes a command that is interrupted when ctx ends, and later killed.
func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = append(os.Environ(), "DMGBENCH_STATE="+p.state, "DMGBENCH_HOST_NAME="+p.machine)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, graceTime
	// Ctrl-C interrupts the child once, by the agent: at the second interrupt it
	// would leave its images.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// version is the version of the program, "" if it cannot be executed.
func (p program) version(ctx context.Context) string {
	out, _ := p.command(ctx, "version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "dmgbench ")
}

// execute executes a command that does not measure. The error is what it printed
// on stderr, if it failed or would refuse the run.
func (p program) execute(ctx context.Context, args ...string) error {
	var text bytes.Buffer
	cmd := p.command(ctx, args...)
	cmd.Stderr = &text
	err := cmd.Run()
	if text.Len() > 0 && (err != nil || strings.Contains(text.String(), "this run would be refused")) {
		err = errors.New(strings.TrimSpace(text.String()))
	}
	return err
}

// measure executes `dmgbench run` or `resume` for the task in dir and returns its
// exit status, -1 if a signal ended it. onLine gets each line of stderr, and stdin
// for answers. When the agent is killed, the end of stdin interrupts the child.
func (p program) measure(ctx context.Context, dir string, onLine func([]byte, io.Writer), args ...string) (int, error) {
	cmd := p.command(ctx, args...)
	stdin, err := cmd.StdinPipe()
	cmd.Stderr = &lineWriter{onLine: func(line []byte) { onLine(line, stdin) }}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("starting %q: %w", p.path, err)
	}
	// Without the file the lock of the journal still protects the run.
	_ = os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	_ = cmd.Wait() // its status follows
	return cmd.ProcessState.ExitCode(), nil
}

// lineWriter calls onLine for each line that is written to it.
type lineWriter struct {
	onLine  func(line []byte)
	partial []byte
}

// Write never fails: the child must not end because of a line.
func (w *lineWriter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		w.partial = append(w.partial, line[:min(len(line), maxLine-len(w.partial))]...)
		if bytes.HasSuffix(line, []byte("\n")) {
			w.onLine(w.partial)
			w.partial = w.partial[:0]
		}
	}
	return len(p), nil
}

// endFormer ends the child that an agent started for the task in dir before it
// was killed. The number may belong to another process by now: the command line
// decides. The child is interrupted already, and gets its time.
func endFormer(dir string) {
	text, _ := os.ReadFile(filepath.Join(dir, pidFile))
	pid, _ := strconv.Atoi(string(text))
	for end := time.Now().Add(graceTime); pid > 1; time.Sleep(100 * time.Millisecond) {
		line, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || !strings.Contains(string(line), dir) {
			return
		}
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
