package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container/udif"
	"dmgbench/internal/hostio"
)

// copyBlock is the unit of copying, copyZeros that of leaving zeros out; bytes.
const (
	copyBlock = 4 << 20
	copyZeros = 64 << 10
)

// CopyOptions says how Copy goes about it.
type CopyOptions struct {
	// Present, if set, says whether anything of a range of the source can be other than zero.
	Present func(off, n int64) bool
	// Progress, if set, is told of the bytes of the device that are done, from one goroutine.
	Progress func(done int64)
}

// Copy copies what is not zero from src to the start of dst, which has to be as large and to read as zeros, and flushes
// dst. Nothing may write to src meanwhile. The chunks of UDIF images are decoded by all processors; whoever has
// decoded one writes it, into plain images in any order. Of other sources 4 MiB are in memory at a time, of these what
// udif.StreamOptions says; where a sparse image holds nothing, nothing is read.
func Copy(ctx context.Context, dst, src blockdev.Device, o CopyOptions) error {
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	var err error
	if t, ok := src.(Tabled); ok {
		err = copyTabled(ctx, dst, t.UDIF(), o)
	} else {
		err = copyPlain(ctx, dst, src, o)
	}
	if err != nil {
		return err
	}
	o.Progress(src.Size())
	return dst.Flush()
}

// copyTabled copies a UDIF image. Images that grow get their bytes in order, which is the order that they will have there.
func copyTabled(ctx context.Context, dst blockdev.Device, im *udif.Image, o CopyOptions) error {
	zero := make([]byte, copyZeros)
	write := func(p udif.Piece) error {
		if p.Data == nil {
			return nil
		}
		return writeNonZero(dst, p.Data, p.Offset, zero)
	}
	options := udif.StreamOptions{Progress: func(done, _ int64) { o.Progress(done) }}
	pass := im.Stream
	if _, plain := dst.(*raw); plain {
		pass = im.Scatter
	}
	err := pass(ctx, options, write)
	if errors.Is(err, udif.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrData, err)
	}
	return err
}

func copyPlain(ctx context.Context, dst, src blockdev.Device, o CopyOptions) error {
	buf, err := hostio.AlignedBuffer(copyBlock)
	if err != nil {
		return err
	}
	defer buf.Free()
	zero := make([]byte, copyZeros)
	holes := mapOf(src)
	for off := int64(0); off < src.Size(); off += copyBlock {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if holes != nil {
			end, state := holes.Next(off)
			if end == src.Size() && state != udif.StateData {
				break
			}
			if end = end / copyBlock * copyBlock; end > off && state != udif.StateData {
				off = end
			}
		}
		part := buf.Bytes()[:min(copyBlock, src.Size()-off)]
		o.Progress(off)
		if o.Present != nil && !o.Present(off, int64(len(part))) {
			continue
		}
		if n, err := src.ReadAt(part, off); err != nil && (n < len(part) || !errors.Is(err, io.EOF)) {
			return fmt.Errorf("reading %d bytes at %d: %w", len(part), off, err)
		}
		if err := writeNonZero(dst, part, off, zero); err != nil {
			return err
		}
	}
	return nil
}

// writeNonZero writes runs of blocks that are not zero, each with one call.
func writeNonZero(dst blockdev.Device, part []byte, off int64, zero []byte) error {
	for at := 0; at < len(part); {
		end := at
		for end < len(part) {
			piece := part[end:min(end+len(zero), len(part))]
			if bytes.Equal(piece, zero[:len(piece)]) {
				break
			}
			end += len(piece)
		}
		if end > at {
			if _, err := dst.WriteAt(part[at:end], off+int64(at)); err != nil {
				return fmt.Errorf("writing %d bytes at %d: %w", end-at, off+int64(at), err)
			}
		}
		at = max(end, at+1)
		if end < len(part) {
			at = min(end+len(zero), len(part))
		}
	}
	return nil
}
