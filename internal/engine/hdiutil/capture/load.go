package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"dmgbench/internal/hostio"
)

// maxOutput bounds what is read of one file, in bytes.
const maxOutput = 16 << 20

// Load reads a capture.
func Load(dir string) (*Capture, error) {
	text, err := read(dir, File)
	if err != nil {
		return nil, err
	}
	c := &Capture{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("reading the capture in %q: %w", dir, err)
	}
	if c.Schema != 1 {
		return nil, fmt.Errorf("reading the capture in %q: schema %d, want 1", dir, c.Schema)
	}
	c.dir = dir
	return c, nil
}

// Output is what a command printed, as it was kept.
func (c *Capture) Output(a Answer) (stdout, stderr []byte, err error) {
	var e1, e2 error
	if a.Stdout != "" {
		stdout, e1 = read(c.dir, a.Stdout)
	}
	if a.Stderr != "" {
		stderr, e2 = read(c.dir, a.Stderr)
	}
	return stdout, stderr, errors.Join(e1, e2)
}

func read(dir, name string) ([]byte, error) {
	if filepath.Base(name) != name {
		return nil, fmt.Errorf("reading the capture in %q: %q is no name of a file in it", dir, name)
	}
	d, err := hostio.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadFile(name, maxOutput)
}

// All loads the captures in the folders below dir; a missing dir has none.
func All(dir string) ([]*Capture, error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading captures: %w", err)
	}
	var all []*Capture
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		c, err := Load(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
