package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// keptSize is the size in bytes above which an input is not kept: the repository holds what is small.
const keptSize = 16 << 10

// blocks are the statement blocks that a run executed, as a coverage profile names them.
type blocks map[string]bool

// input is a file of a corpus.
type input struct {
	path    string
	size    int64
	reached blocks
}

// keepAll brings what fuzzing found from go's cache into the testdata of each target, at most most inputs each: the few that
// together execute every block that the whole corpus does and that the seeds and what was kept before do not.
func (w *workshop) keepAll(ctx context.Context, targets []target, most int) error {
	for _, t := range targets {
		kept, err := w.keep(ctx, t, most)
		if err != nil {
			return fmt.Errorf("keeping the corpus of %s: %w", t, err)
		}
		fmt.Fprintf(w.out, "fuzzing: %s: inputs kept: %d\n", t, kept)
	}
	return nil
}

func (w *workshop) keep(ctx context.Context, t target, most int) (int, error) {
	program, err := w.program(ctx, t.folder, "-cover", "-covermode=set", "-coverpkg=./...")
	if err != nil {
		return 0, err
	}
	place := filepath.Join(filepath.FromSlash(t.folder), "testdata", "fuzz", t.name)
	stage, err := newStage(filepath.FromSlash(t.folder), place, t.name)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(stage.dir)
	base, err := stage.run(ctx, program, "")
	if err != nil {
		return 0, err
	}
	found, err := w.candidates(t, place)
	if err != nil {
		return 0, err
	}
	for i := range found {
		if found[i].reached, err = stage.run(ctx, program, found[i].path); err != nil {
			return 0, err
		}
	}
	few := fewest(base, found, most)
	for _, in := range few {
		if err := os.MkdirAll(place, 0o755); err != nil {
			return 0, err
		}
		text, err := os.ReadFile(in.path)
		if err != nil {
			return 0, err
		}
		if err := replace(filepath.Join(place, filepath.Base(in.path)), text); err != nil {
			return 0, err
		}
	}
	return len(few), nil
}

// candidates are the inputs of the cache that are small enough and not kept yet.
func (w *workshop) candidates(t target, place string) ([]input, error) {
	folder := filepath.Join(w.corpus, w.module, filepath.FromSlash(t.folder), t.name)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []input
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		_, kept := os.Stat(filepath.Join(place, e.Name()))
		if kept != nil && info.Mode().IsRegular() && info.Size() <= keptSize {
			found = append(found, input{path: filepath.Join(folder, e.Name()), size: info.Size()})
		}
	}
	return found, nil
}

// fewest chooses inputs greedily: each time the one that adds most to what was executed, of equals the smallest, until none
// adds anything.
func fewest(base blocks, from []input, most int) []input {
	have := blocks{}
	for b := range base {
		have[b] = true
	}
	var few []input
	for len(few) < most {
		best, gain := -1, 0
		for i, in := range from {
			n := 0
			for b := range in.reached {
				if !have[b] {
					n++
				}
			}
			if n > gain || n == gain && best >= 0 && in.size < from[best].size {
				best, gain = i, n
			}
		}
		if best < 0 {
			break
		}
		for b := range from[best].reached {
			have[b] = true
		}
		few = append(few, from[best])
	}
	return few
}

// stage is a folder in which a test program finds the testdata of its package, with one input more for a target.
type stage struct{ dir, corpus, name string }

func newStage(folder, kept, name string) (*stage, error) {
	dir, err := os.MkdirTemp("", "fuzzing-keep-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, corpus: filepath.Join(dir, "testdata", "fuzz", name), name: name}
	err = os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS(filepath.Join(folder, "testdata")))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a package without testdata
	}
	if err == nil {
		err = os.MkdirAll(s.corpus, 0o755)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// run executes the seeds and the kept inputs of the target, or with extra that input alone, and returns what it reached.
func (s *stage) run(ctx context.Context, program, extra string) (blocks, error) {
	which := "^" + s.name + "$"
	if extra != "" {
		text, err := os.ReadFile(extra)
		if err != nil {
			return nil, err
		}
		staged := filepath.Join(s.corpus, filepath.Base(extra))
		if err := os.WriteFile(staged, text, 0o600); err != nil {
			return nil, err
		}
		defer os.Remove(staged)
		which += "/^" + filepath.Base(extra) + "$"
	}
	profile := filepath.Join(s.dir, "profile")
	cmd := exec.CommandContext(ctx, program, "-test.run="+which, "-test.coverprofile="+profile)
	cmd.Dir = s.dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("executing %s: %w\n%s", strconv.Quote(extra), err, said)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	return executed(text), nil
}

// executed reads a coverage profile: "file.go:1.2,3.4 statements count" a line, below a line with the mode.
func executed(profile []byte) blocks {
	all := blocks{}
	for line := range bytes.Lines(profile) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[2] != "0" {
			all[fields[0]] = true
		}
	}
	return all
}
