package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ledger is the account of CPU time: the rows of a table in a page of documentation, which everything else on that
// page surrounds unchanged.
//
//	| `internal/gpt` | `FuzzRead` | 3600 | 12345678 |
//
// The columns are the folder, the target, CPU seconds and executions, since the page began.
type ledger struct {
	path string // empty: nothing is kept

	mu   sync.Mutex
	rows map[target]spent
}

var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(Fuzz[A-Za-z0-9_]*)` \\| +(\\d+) \\| +(\\d+) \\|$")

// read takes the account from the page.
func (l *ledger) read() error {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return fmt.Errorf("reading the account: %w", err)
	}
	l.rows = map[target]spent{}
	for _, m := range row.FindAllSubmatch(text, -1) {
		seconds, err1 := strconv.ParseInt(string(m[3]), 10, 40)
		execs, err2 := strconv.ParseInt(string(m[4]), 10, 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("reading the account: %s: not numbers: %q", l.path, m[0])
		}
		l.rows[target{string(m[1]), string(m[2])}] = spent{time.Duration(seconds) * time.Second, execs}
	}
	return nil
}

func (l *ledger) cpu(t target) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows[t].cpu
}

// add enters a turn and writes the page anew: to a temporary name, synced, then renamed. A target without a row gets one
// behind the last row.
func (l *ledger) add(t target, s spent) error {
	if l.path == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := os.ReadFile(l.path)
	if err != nil {
		return fmt.Errorf("entering %s: %w", t, err)
	}
	sum := l.rows[t]
	_, known := l.rows[t]
	sum.cpu += s.cpu
	sum.execs += s.execs
	l.rows[t] = sum
	if text, err = entered(text, t, sum, known); err != nil {
		return fmt.Errorf("entering %s: %s: %w", t, l.path, err)
	}
	if err := replace(l.path, text); err != nil {
		return fmt.Errorf("entering %s: %w", t, err)
	}
	return nil
}

// entered returns the page with the row of a target set, or added.
func entered(text []byte, t target, sum spent, known bool) ([]byte, error) {
	line := fmt.Sprintf("| `%s` | `%s` | %d | %d |", t.folder, t.name, int64(sum.cpu.Seconds()), sum.execs)
	begin := fmt.Sprintf("| `%s` | `%s` |", t.folder, t.name)
	places := row.FindAllIndex(text, -1)
	for _, at := range places {
		if strings.HasPrefix(string(text[at[0]:at[1]]), begin) {
			return bytes.Join([][]byte{text[:at[0]], []byte(line), text[at[1]:]}, nil), nil
		}
	}
	if known {
		return nil, fmt.Errorf("the row %s is gone", begin)
	}
	head := regexp.MustCompile(`(?m)^\|--[-|:]*\|$`).FindAllIndex(text, -1)
	switch {
	case len(places) > 0:
		at := places[len(places)-1][1]
		return bytes.Join([][]byte{text[:at], []byte("\n" + line), text[at:]}, nil), nil
	case len(head) > 0:
		at := head[len(head)-1][1]
		return bytes.Join([][]byte{text[:at], []byte("\n" + line), text[at:]}, nil), nil
	}
	return nil, fmt.Errorf("no table for the account")
}

func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".fuzzing-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
