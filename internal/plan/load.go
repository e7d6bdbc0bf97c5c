package plan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// MaxSize is the largest plan that is read, in bytes.
const MaxSize = 1 << 20

// Load reads the plan in a file. Whatever is wrong with its text comes back as
// *Problems; a file that cannot be read as another error. Only regular
// files are read, and none larger than MaxSize.
func Load(path string) (*Plan, error) {
	p, _, err := LoadAll(path)
	return p, err
}

// LoadAll is Load that also gives the warnings of a plan that can be run.
func LoadAll(path string) (*Plan, []Problem, error) {
	text, err := readFile(path)
	if err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err // the path is named once
		}
		return nil, nil, fmt.Errorf("reading plan %q: %w", path, err)
	}
	p, problems := Parse(path, text)
	if len(problems.Errors()) > 0 {
		return nil, nil, problems
	}
	return p, problems.Warnings(), nil
}

// readFile opens without blocking (a FIFO would wait for a writer) and looks at
// the open file, so that what is checked is what is read.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("it is a directory, want a TOML file")
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())
	case info.Size() > MaxSize:
		return nil, tooLarge(info.Size())
	}
	return io.ReadAll(io.LimitReader(f, MaxSize+1)) // one that grows meanwhile is refused by Parse
}

// tooLarge is the error for a text of n bytes.
func tooLarge(n int64) error {
	return fmt.Errorf("it holds %d bytes, plans are at most %d", n, MaxSize)
}

// nameOf is the plan's name: the file's without ".toml".
func nameOf(path string) string { return strings.TrimSuffix(filepath.Base(path), ".toml") }
