package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// copyBlock is how many bytes Copy and Stream transfer at a time.
const copyBlock = 4 << 20

// Source is bytes to copy or to compress: a file of the user, a file of a
// volume ([OpenSource]) or generated data ([Generated]).
type Source interface {
	io.ReaderAt
	Size() int64
}

// Truncater is a [File] with a length that can be set. Stream needs it, since
// the length of its output is not known before.
type Truncater interface{ Truncate(size int64) error }

// VolumeSource is an open file of a volume.
type VolumeSource struct {
	File
	size int64
}

// Size is the length of the file in bytes.
func (s *VolumeSource) Size() int64 { return s.size }

// OpenSource opens a file of the volume as a source and, if the options request
// direct or cold reading, evicts it. The caller closes it.
func OpenSource(vol Volume, name string, o Options) (*VolumeSource, error) {
	sizes, err := fileSizes(vol, []Item{{Name: name}})
	if err != nil {
		return nil, err
	}
	f, err := vol.Open(name, o.fileOptions(0))
	if err != nil {
		return nil, fmt.Errorf("opening file %q: %w", name, err)
	}
	if o.Cache == CacheDirect || o.Cache == CacheCold {
		_ = f.Evict() // advice: cacheBefore looks at the pages that are left
	}
	return &VolumeSource{File: f, size: sizes[path.Clean(name)]}, nil
}

// Generated is size bytes of the data that the named file would contain.
func Generated(d *Data, name string, size int64) Source {
	return io.NewSectionReader(generated{d, KeyOf(name)}, 0, size)
}

// generated is the endless data of one file.
type generated struct {
	d   *Data
	key FileKey
}

// ReadAt never fails.
func (g generated) ReadAt(p []byte, off int64) (int, error) {
	g.d.FillAt(p, g.key, off)
	return len(p), nil
}

// Copy copies src to a new file on the volume and flushes it by Options.Sync.
// The one sample covers reading, writing and the flush; open and close are
// outside. It makes the folder of the file if that is missing.
func Copy(ctx context.Context, src Source, vol Volume, to string, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o = o.withDefaults()
	to = path.Clean(to)
	if err := makeFolders(vol, []Item{{Name: to}}); err != nil {
		return Outcome{}, err
	}
	buf, err := hostio.AlignedBuffer(copyBlock)
	if err != nil {
		return Outcome{}, fmt.Errorf("copying to file %q: %w", to, err)
	}
	defer buf.Free()
	dst, err := vol.Create(to, src.Size(), o.fileOptions(0))
	if err != nil {
		return Outcome{}, fmt.Errorf("copying to file %q: creating: %w", to, err)
	}
	out, err := timeOne(ctx, o, to, src.Size(), dst, func() error { return copyAll(ctx, src, dst, buf.Bytes()) })
	if err != nil {
		return Outcome{}, fmt.Errorf("copying to file %q: %w", to, err)
	}
	return out, syncVolume(vol)
}

// copyAll copies src to dst in blocks of the size of buf.
func copyAll(ctx context.Context, src Source, dst File, buf []byte) error {
	size := src.Size()
	for off := int64(0); off < size; off += int64(len(buf)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := buf[:min(int64(len(buf)), size-off)]
		n, err := src.ReadAt(part, off)
		if err = checkRead(n, int64(len(part)), err); err != nil {
			return fmt.Errorf("reading at %d: %w", off, err)
		}
		n, err = dst.WriteAt(part, off)
		if err = checkWrite(n, int64(len(part)), err); err != nil {
			return fmt.Errorf("writing at %d: %w", off, err)
		}
	}
	return nil
}

// timeOne times one piece of work that writes dst, with its flush, on the gate
// and with the collector off. It closes dst after the clock has stopped. size
// is the number of bytes of the sample.
func timeOne(
	ctx context.Context, o Options, name string, size int64, dst File, work func() error,
) (out Outcome, err error) {
	defer func() {
		if err = errors.Join(err, dst.Close()); err != nil {
			out = Outcome{}
		}
	}()
	hostio.Warm(2) // threads: one to read, one to write
	defer pauseGC()()
	if err := o.Gate.wait(ctx); err != nil {
		return out, fmt.Errorf("waiting for the other steps: %w", err)
	}
	var found achieved
	// From here to the second reading of the clock, only the work and its flush
	// run.
	start := int64(o.Clock.Now())
	err = work()
	if err == nil && o.Sync != hostio.SyncNone {
		var mode hostio.SyncMode
		mode, err = dst.Sync(o.Sync)
		found.addSync(mode)
	}
	end := int64(o.Clock.Now())
	out.Bytes = size
	out.Samples = []result.Sample{{File: name, Bytes: size, StartNS: start, DurationNS: end - start}}
	out.Span = &result.Span{GateNS: start, FirstDoneNS: end, LastDoneNS: end, Bytes: size, BusyNS: end - start,
		Waves: 1}
	out.Sync = found.sync(o.Sync)
	return out, err
}
