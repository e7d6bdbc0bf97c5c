package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"

	"dmgbench/internal/system/hostio"
)

// Sizes of the copy. Aligned blocks of copyBlock keep direct reads possible;
// smaller holes cost more than they save.
const (
	copyBlock = 4 << 20  // bytes read at once
	holeBlock = 64 << 10 // bytes of zeros that become a hole
)

// ErrTaken is returned when a file with the name of the copy exists; it was not
// changed.
var ErrTaken = fmt.Errorf("the name of the copy is taken: %w", fs.ErrExist)

// Copy copies the container's files byte for byte and flushes the copy. A file
// with holes becomes a file with holes, in blocks of 64 KiB. A copy that failed
// is deleted.
func Copy(ctx context.Context, from *hostio.Dir, name string, to *hostio.Dir, copied string) (err error) {
	if _, err := to.Lstat(copied); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copying to %q: %w", copied, errors.Join(err, ErrTaken))
	}
	buf, err := hostio.AlignedBuffer(copyBlock)
	if err != nil {
		return err
	}
	defer buf.Free()
	defer func() {
		if err != nil {
			err = errors.Join(err, to.RemoveAll(copied))
		}
	}()
	var folders []string
	err = Walk(ctx, from, name, func(inside string, fi fs.FileInfo) error {
		if fi.IsDir() {
			folders = append(folders, path.Join(copied, inside))
			return to.Mkdir(path.Join(copied, inside))
		}
		return copyFile(ctx, from, path.Join(name, inside), to, path.Join(copied, inside), buf.Bytes())
	})
	if err != nil {
		return err
	}
	for _, name := range folders {
		f, err := to.Sub(name)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			return err
		}
	}
	return to.Sync()
}

// copyFile copies one file and flushes the copy.
func copyFile(ctx context.Context, from *hostio.Dir, name string, to *hostio.Dir, copied string,
	buf []byte) (err error) {
	src, err := from.Open(name, hostio.OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	st, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := to.Open(copied, hostio.OpenOptions{Write: true, Create: true, Exclusive: true, Perm: st.Mode.Perm()})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, dst.Close()) }()
	holes := st.Allocated < st.Size
	for off := int64(0); off < st.Size; off += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(copyBlock, st.Size-off)]
		if _, err := src.ReadAt(part, off); err != nil {
			return err
		}
		if holes {
			err = WriteData(dst, part, off)
		} else {
			_, err = dst.WriteAt(part, off)
		}
		if err != nil {
			return err
		}
	}
	if err := dst.Truncate(st.Size); err != nil { // a hole at the end
		return err
	}
	_, err = dst.Sync(hostio.SyncFull)
	return err
}

// WriteData writes the runs of p at an offset that are not zeros, each with one
// call.
func WriteData(dst io.WriterAt, p []byte, off int64) error {
	for run, zero := range ZeroRuns(p) {
		if zero {
			continue
		}
		if _, err := dst.WriteAt(p[run.From:run.To], off+int64(run.From)); err != nil {
			return err
		}
	}
	return nil
}

// Span is a range of a buffer.
type Span struct{ From, To int }

// zeros is compared with blocks; it is never changed.
var zeros [holeBlock]byte

// ZeroRuns yields the runs of p that are zeros and those that are not, in
// blocks of 64 KiB, and whether a run is zeros. Smaller holes in files cost
// more than they save.
func ZeroRuns(p []byte) iter.Seq2[Span, bool] {
	isZeroAt := func(from int) bool {
		block := p[from:min(from+holeBlock, len(p))]
		return bytes.Equal(block, zeros[:len(block)])
	}
	return func(yield func(Span, bool) bool) {
		for from := 0; from < len(p); {
			zero, to := isZeroAt(from), min(from+holeBlock, len(p))
			for to < len(p) && isZeroAt(to) == zero {
				to = min(to+holeBlock, len(p))
			}
			if !yield(Span{from, to}, zero) {
				return
			}
			from = to
		}
	}
}
