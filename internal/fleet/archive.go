package fleet

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"

	"dmgbench/internal/plan"
)

// MaxArchive is the most bytes that the files of one archive may have together,
// so that a small archive cannot fill a disk.
const MaxArchive = 8 << 30

// maxRatio is how many times the bytes of an archive its files may have, beyond the
// first ones. Those of real runs have 6 or 7 times as many.
const maxRatio, firstBytes = 100, 1 << 20

// runFiles are the files of a run folder that are fetched, with the most bytes of
// each. The result and the report follow from them and are made anew: they would be
// most of an archive, and a machine could have put anything into them.
var runFiles = map[string]int64{".dmgbench-run": 256, "plan.toml": plan.MaxSize, "journal.jsonl": MaxArchive}

// Pack writes the files of a run folder as a compressed tar. What it lacks is
// left out; images and everything else in it stay on the machine.
func Pack(w io.Writer, dir string) (err error) {
	z, err := zstd.NewWriter(w)
	if err != nil {
		return fmt.Errorf("packing %q: %w", dir, err)
	}
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(runFiles)) {
		if err = packFile(t, dir, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = nil
	}
	if err = errors.Join(err, t.Close(), z.Close()); err != nil {
		return fmt.Errorf("packing %q: %w", dir, err)
	}
	return nil
}

func packFile(t *tar.Writer, dir, name string) error {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is no regular file", name) // a link could lead to a file that must stay on the machine
	}
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = t.WriteHeader(&tar.Header{Name: name, Size: info.Size(), Mode: 0o644, ModTime: info.ModTime(),
		Format: tar.FormatPAX})
	if err == nil {
		_, err = io.CopyN(t, f, info.Size())
	}
	return err
}

// Unpack writes the files of an archive into dir, which must not exist. It trusts
// nothing in it: it accepts only the names that Pack writes, each once, as regular
// files, with no more bytes than the name and the size of the archive permit. On an
// error dir may be incomplete.
func Unpack(r io.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("unpacking into %q: %w", dir, err)
	}
	archive := &counter{Reader: r}
	z, err := zstd.NewReader(archive, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
	if err == nil {
		defer z.Close()
		err = unpackFiles(archive, z, dir)
	}
	if err != nil {
		return fmt.Errorf("unpacking into %q: %w", dir, err)
	}
	return nil
}

// counter counts what is read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// contents are the files of an archive, as long as they are not too large for it.
type contents struct {
	counter
	archive *counter
}

func (f *contents) Read(p []byte) (int, error) {
	n, err := f.counter.Read(p)
	if f.n > firstBytes+maxRatio*f.archive.n {
		return 0, fmt.Errorf("the files are larger than %d times the archive", maxRatio)
	}
	return n, err
}

func unpackFiles(archive *counter, content io.Reader, dir string) error {
	t := tar.NewReader(&contents{counter{Reader: content}, archive})
	left := maps.Clone(runFiles)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		limit, ok := left[h.Name]
		if h.Typeflag != tar.TypeReg || !ok {
			return fmt.Errorf("unexpected file %q", h.Name)
		}
		if h.Size < 0 || h.Size > limit {
			return fmt.Errorf("%q has %d bytes: want at most %d", h.Name, h.Size, limit)
		}
		delete(left, h.Name)
		if err := unpackFile(t, filepath.Join(dir, h.Name)); err != nil {
			return err
		}
	}
}

func unpackFile(t *tar.Reader, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, t); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
