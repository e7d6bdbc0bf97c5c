package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// copyBlock is how much Copy and Stream move at a time, in bytes.
const copyBlock = 4 << 20

// Source is bytes to copy or to compress: a file that the user brought, a file
// of a volume ([OpenSource]) or made data ([Generated]).
type Source interface {
	io.ReaderAt
	Size() int64
}

// Truncater is a [File] whose length can be set. Stream needs it, since the
// length of its output is not known before.
type Truncater interface{ Truncate(size int64) error }

// VolumeSource is an open file of a volume.
type VolumeSource struct {
	File
	size int64
}

// Size is the length of the file in bytes.
func (s *VolumeSource) Size() int64 { return s.size }

// OpenSource opens a file of the volume as a source and, if the options ask for
// direct or cold reading, evicts it. The caller closes it.
func OpenSource(vol Volume, name string, o Options) (*VolumeSource, error) {
	sizes, err := sizesOf(vol, []Item{{Name: name}})
	if err != nil {
		return nil, err
	}
	f, err := vol.Open(name, o.fileOptions(0))
	if err != nil {
		return nil, fmt.Errorf("opening file %q: %w", name, err)
	}
	if o.Cache == CacheDirect || o.Cache == CacheCold {
		_ = f.Evict() // advice; what is left is looked at
	}
	return &VolumeSource{File: f, size: sizes[path.Clean(name)]}, nil
}

// Generated is size bytes of the data that the named file would have.
func Generated(d *Data, name string, size int64) Source {
	return &generated{d: d, key: KeyOf(name), size: size}
}

type generated struct {
	d    *Data
	key  FileKey
	size int64
}

func (g *generated) Size() int64 { return g.size }

func (g *generated) ReadAt(p []byte, off int64) (int, error) {
	if off >= g.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), g.size-off))
	g.d.FillAt(p[:n], g.key, off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Copy copies src to a new file on the volume and flushes it by
// Options.Sync. The one sample covers reading, writing and the flush; open and close
// are outside. The folder of the file is made if it is missing.
func Copy(ctx context.Context, src Source, vol Volume, to string, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o, err := o.settle()
	if err != nil {
		return Outcome{}, err
	}
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
	done := timeOne(ctx, o, to, src.Size(), dst, func() error { return copyAll(ctx, src, dst, buf.Bytes()) })
	if err := errors.Join(done.err, dst.Close()); err != nil {
		return Outcome{}, fmt.Errorf("copying to file %q: %w", to, err)
	}
	if err := vol.Sync(); err != nil {
		return Outcome{}, fmt.Errorf("flushing the volume: %w", err)
	}
	return done.out, nil
}

func copyAll(ctx context.Context, src Source, dst File, buf []byte) error {
	size := src.Size()
	for off := int64(0); off < size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := buf[:min(int64(len(buf)), size-off)]
		if n, err := src.ReadAt(part, off); n < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("reading at %d: %w", off, err)
		}
		if err := put(dst, part, off); err != nil {
			return fmt.Errorf("writing at %d: %w", off, err)
		}
		off += int64(len(part))
	}
	return nil
}

type timedOne struct {
	out Outcome
	err error
}

// timeOne times one piece of work on an open file, its flush included, on the
// gate and with the collector off.
func timeOne(ctx context.Context, o Options, name string, size int64, dst File, work func() error) (t timedOne) {
	hostio.Warm(2) // one to read, one to write
	defer quiet()()
	if err := o.Gate.wait(ctx); err != nil {
		return timedOne{err: fmt.Errorf("waiting for the other steps: %w", err)}
	}
	found := tally{}
	start := int64(o.Clock.Now())
	err := work()
	if err == nil && o.Sync != hostio.SyncNone {
		var mode hostio.SyncMode
		if mode, err = dst.Sync(o.Sync); err == nil {
			found.flushed(mode)
		}
	}
	end := int64(o.Clock.Now())
	if err != nil {
		return timedOne{err: err}
	}
	t.out.Bytes = size
	t.out.Samples = []result.Sample{{File: name, Bytes: size, StartNS: start, DurationNS: end - start}}
	t.out.Span = &result.Span{GateNS: start, FirstDoneNS: end, LastDoneNS: end, Bytes: size, BusyNS: end - start, Waves: 1}
	t.out.Sync = &result.Achieved{Asked: string(o.Sync), Achieved: string(found.sync(o.Sync))}
	return t
}
