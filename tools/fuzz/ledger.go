package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

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
