package fleet

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// MaxArchive is the most bytes that the files of one archive may have together,
// so that a small archive cannot fill a disk.
const MaxArchive = 8 << 30

// runFiles are the files of a run folder that are fetched. The result and the
// report follow from them and are made anew: they would be most of an archive, and
// a machine could have put anything into them.
var runFiles = []string{".dmgbench-run", "plan.toml", "journal.jsonl"}

// Pack writes the files of a run folder as a compressed tar. What it lacks is
// left out; images and everything else in it stay on the machine.
func Pack(w io.Writer, dir string) (err error) {
	z, err := zstd.NewWriter(w)
	if err != nil {
		return fmt.Errorf("packing %q: %w", dir, err)
	}
	t := tar.NewWriter(z)
	for _, name := range runFiles {
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
// files, of MaxArchive bytes in all. On an error dir may be incomplete.
func Unpack(r io.Reader, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("unpacking into %q: %w", dir, err)
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(64<<20))
	if err == nil {
		defer z.Close()
		err = unpackFiles(tar.NewReader(z), dir)
	}
	if err != nil {
		return fmt.Errorf("unpacking into %q: %w", dir, err)
	}
	return nil
}

func unpackFiles(t *tar.Reader, dir string) error {
	for left := int64(MaxArchive); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !slices.Contains(runFiles, h.Name) {
			return fmt.Errorf("unexpected file %q", h.Name)
		}
		if left -= h.Size; h.Size < 0 || left < 0 {
			return fmt.Errorf("the files are larger than %d bytes", int64(MaxArchive))
		}
		f, err := os.OpenFile(filepath.Join(dir, h.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if _, err = io.CopyN(f, t, h.Size); err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
