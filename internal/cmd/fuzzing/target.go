package main

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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// target is one fuzz function: the folder of its package, relative to the module with slashes, and its name.
type target struct{ folder, name string }

func (t target) String() string { return t.folder + " " + t.name }

var declared = regexp.MustCompile(`(?m)^func (Fuzz[A-Za-z0-9_]*)\(`)

// find lists the targets of the module at root, in order of their folders. With paths it lists those below them, and those
// that they name: folder/FuzzName.
func find(root string, paths []string) ([]target, error) {
	var targets []target
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			targets = append(targets, target{filepath.ToSlash(folder), string(m[1])})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for fuzz targets: %w", err)
	}
	if len(paths) > 0 {
		targets = slices.DeleteFunc(targets, func(t target) bool { return !below(t.folder+"/"+t.name, paths) })
	}
	return targets, nil
}

func below(path string, of []string) bool {
	return slices.ContainsFunc(of, func(f string) bool {
		f = strings.TrimPrefix(strings.TrimSuffix(f, "/"), "./")
		return path == f || strings.HasPrefix(path, f+"/")
	})
}

// workshop builds test programs with the coverage that fuzzing needs, each once, and runs them.
type workshop struct {
	dir    string // of the programs
	corpus string // the folder in go's cache where go test keeps what it found
	module string
	out    io.Writer
	mu     sync.Mutex
	built  map[string]string
}

func newWorkshop(ctx context.Context, out io.Writer) (*workshop, error) {
	cache, err := output(ctx, "go", "env", "GOCACHE")
	if err != nil {
		return nil, err
	}
	module, err := output(ctx, "go", "list", "-m")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fuzzing-")
	if err != nil {
		return nil, err
	}
	return &workshop{dir: dir, corpus: filepath.Join(cache, "fuzz"), module: module, out: out, built: map[string]string{}}, nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// program returns the path of the test program of a folder, built with these flags.
func (w *workshop) program(ctx context.Context, folder string, flags ...string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path := w.built[folder]; path != "" {
		return path, nil
	}
	path := filepath.Join(w.dir, strconv.Itoa(len(w.built))+".test")
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-c", "-o", path}, flags, []string{"./" + folder})...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", folder, err, text)
	}
	w.built[folder] = path
	return path, nil
}

var errHangs = errors.New("an input takes minutes, or never ends")

// late is all that go test says of a target whose turn ended while its worker was at an input: a defect of Go before 1.27
// (golang/go#75804), and no finding. A finding names the file that holds its input, or what became of the process.
var late = regexp.MustCompile(`(?m)^--- FAIL: \S+ \(\S+\)\n +context deadline exceeded\nFAIL\n?\z`)

func endedLate(said []byte) bool {
	return late.Match(said) && !bytes.Contains(said, []byte("Failing input"))
}

var executions = regexp.MustCompile(`execs: (\d+)`)

// fuzz gives a target one turn with one worker.
func (w *workshop) fuzz(ctx context.Context, t target, length time.Duration) (spent, error) {
	program, err := w.program(ctx, t.folder, "-fuzz=.") // with -c: the counters of coverage are built in, nothing runs
	if err != nil {
		return spent{}, err
	}
	fmt.Fprintf(w.out, "fuzzing: %s\n", t)
	// go test looks at its clock between two inputs only: one that never ends would never be seen.
	turn, stop := context.WithTimeoutCause(ctx, 3*length+5*time.Minute, errHangs)
	defer stop()
	// What merely reaches new code is not minimised: that would use the turn up.
	cmd := exec.CommandContext(turn, program, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+length.String(),
		"-test.fuzzminimizetime=10x", "-test.parallel=1",
		"-test.fuzzcachedir="+filepath.Join(w.corpus, w.module, filepath.FromSlash(t.folder)))
	cmd.Dir = filepath.FromSlash(t.folder) // testdata is looked for there
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if cause := context.Cause(turn); errors.Is(cause, errHangs) {
		return spent{}, fmt.Errorf("fuzzing %s: %w\n%s", t, cause, text.Bytes())
	}
	if err != nil && ctx.Err() == nil && !endedLate(text.Bytes()) {
		return spent{}, fmt.Errorf("fuzzing %s: %w\n%s", t, err, text.Bytes())
	}
	if cmd.ProcessState == nil {
		return spent{}, errors.Join(err, ctx.Err())
	}
	s := spent{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if all := executions.FindAllSubmatch(text.Bytes(), -1); len(all) > 0 {
		s.execs, _ = strconv.ParseInt(string(all[len(all)-1][1]), 10, 64) // digits only; overflow is not in reach
	}
	return s, nil
}
