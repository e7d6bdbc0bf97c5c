package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// fuzzer builds test programs with the coverage that fuzzing needs, each once,
// and runs them.
type fuzzer struct {
	dir      string // of the programs, temporary
	corpus   string // the folder in Go's cache that go test keeps the module's corpora in
	workers  int
	stdout   io.Writer
	programs map[string]string // by folder
}

func newFuzzer(ctx context.Context, workers int, stdout io.Writer) (*fuzzer, error) {
	cache, err := runGo(ctx, "env", "GOCACHE")
	if err != nil {
		return nil, err
	}
	module, err := runGo(ctx, "list", "-m")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fuzz-")
	return &fuzzer{dir, filepath.Join(cache, "fuzz", module), workers, stdout, map[string]string{}}, err
}

func runGo(ctx context.Context, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running go %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return strings.TrimSpace(string(text)), nil
}

// program returns the path of the test program of a folder.
func (f *fuzzer) program(ctx context.Context, folder string) (string, error) {
	if path := f.programs[folder]; path != "" {
		return path, nil
	}
	path := filepath.Join(f.dir, strconv.Itoa(len(f.programs))+".test")
	// With -c, -fuzz builds the counters of coverage in and runs no target.
	_, err := runGo(ctx, "test", "-c", "-o", path, "-fuzz=.", "./"+folder)
	f.programs[folder] = path
	return path, err
}

// usage is the cost of turns of a target.
type usage struct {
	cpu        time.Duration
	executions int64
}

var errHangs = errors.New("an input takes minutes or does not end")

// lateEnd matches all that go test prints of a target whose turn ended while a
// worker was at an input: a defect of Go before
// 1.27 (golang/go#75804), not a failure. A failure names the file of its input, or how the process ended.
var lateEnd = regexp.MustCompile(`(?m)^--- FAIL: \S+ \(\S+\)\n +context deadline exceeded\nFAIL\n?\z`)

func endedLate(output []byte) bool {
	return lateEnd.Match(output) && !bytes.Contains(output, []byte("Failing input"))
}

var executions = regexp.MustCompile(`execs: (\d+)`)

// fuzz gives a target one turn.
func (f *fuzzer) fuzz(ctx context.Context, t target, length time.Duration) (usage, error) {
	program, err := f.program(ctx, t.folder)
	if err != nil {
		return usage{}, err
	}
	fmt.Fprintf(f.stdout, "fuzz: %s\n", t)
	// go test looks at its clock only between two inputs: it would not notice
	// one that does not end.
	turn, stop := context.WithTimeoutCause(ctx, 3*length+5*time.Minute, errHangs)
	defer stop()
	// Inputs that merely reach new code are not minimised: that would use up
	// the turn.
	cmd := exec.CommandContext(turn, program, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+length.String(),
		"-test.fuzzminimizetime=10x", "-test.parallel="+strconv.Itoa(f.workers),
		"-test.fuzzcachedir="+filepath.Join(f.corpus, filepath.FromSlash(t.folder)))
	cmd.Dir = filepath.FromSlash(t.folder) // its testdata holds the seeds
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	if cause := context.Cause(turn); errors.Is(cause, errHangs) {
		err = cause
	} else if err != nil && cmd.ProcessState != nil && (ctx.Err() != nil || endedLate(output.Bytes())) {
		err = nil
	}
	if err != nil {
		return usage{}, fmt.Errorf("fuzzing %s: %w\n%s", t, err, output.Bytes())
	}
	u := usage{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if all := executions.FindAllSubmatch(output.Bytes(), -1); len(all) > 0 {
		u.executions, _ = strconv.ParseInt(string(all[len(all)-1][1]), 10, 64) // digits only; overflow is out of reach
	}
	return u, nil
}

// ledger is the account of CPU time: the rows of a table in a page of
// documentation. The rest of the page stays as it is.
//
//	| `internal/gpt` | `FuzzRead` | 3600 | 12345678 |
//
// The columns are folder, target, CPU seconds and executions, of all turns so
// far.
type ledger struct {
	path string // empty: nothing is stored
	rows map[target]usage
}

var ledgerRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(Fuzz[A-Za-z0-9_]*)` \\| +(\\d+) \\| +(\\d+) \\|\n")
var ledgerHead = regexp.MustCompile(`(?m)^\|--[-|:]*\|\n`)

// readLedger reads the account from the page, if there is one.
func readLedger(path string) (*ledger, error) {
	l := &ledger{path: path, rows: map[target]usage{}}
	if path == "" {
		return l, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the account: %w", err)
	}
	for _, m := range ledgerRow.FindAllStringSubmatch(string(text), -1) {
		seconds, err := strconv.ParseInt(m[3], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("reading the account %s: %w", path, err)
		}
		n, err := strconv.ParseInt(m[4], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the account %s: %w", path, err)
		}
		l.rows[target{m[1], m[2]}] = usage{time.Duration(seconds) * time.Second, n}
	}
	return l, nil
}

// add adds a turn and rewrites the page: to a temporary name, synced, then
// renamed.
func (l *ledger) add(t target, u usage) error {
	sum := l.rows[t]
	sum.cpu += u.cpu
	sum.executions += u.executions
	l.rows[t] = sum
	if l.path == "" {
		return nil
	}
	text, err := os.ReadFile(l.path)
	if err == nil {
		text, err = setRow(text, t, sum)
	}
	if err == nil {
		err = replaceFile(l.path, text)
	}
	if err != nil {
		return fmt.Errorf("adding %s to %s: %w", t, l.path, err)
	}
	return nil
}

// setRow returns the page with the row of a target changed, or added after the
// last row.
func setRow(page []byte, t target, sum usage) ([]byte, error) {
	key := fmt.Sprintf("| `%s` | `%s` |", t.folder, t.name)
	line := fmt.Sprintf("%s %d | %d |\n", key, int64(sum.cpu.Seconds()), sum.executions)
	text, end := string(page), -1
	for _, at := range ledgerRow.FindAllStringIndex(text, -1) {
		if end = at[1]; strings.HasPrefix(text[at[0]:], key) {
			return []byte(text[:at[0]] + line + text[end:]), nil
		}
	}
	if heads := ledgerHead.FindAllStringIndex(text, -1); end < 0 && len(heads) > 0 {
		end = heads[len(heads)-1][1]
	}
	if end < 0 {
		return nil, fmt.Errorf("the page has no table")
	}
	return []byte(text[:end] + line + text[end:]), nil
}

func replaceFile(path string, text []byte) error {
	temporary := path + ".new"
	defer os.Remove(temporary)
	f, err := os.Create(temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
