package container

import (
	"context"
	"errors"
	"fmt"
	"io"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/image/container/udif"
	"dmgbench/internal/system/hostio"
)

// copyBlock is how many bytes are read at once.
const copyBlock = 4 << 20

// Copy copies the content of src to the start of dst, which must be as large
// and read as zeros, and flushes dst. Zeros are not written, and ranges without
// a place in a sparse source are not read. No other call may write to src
// meanwhile. All processors decode the chunks of a UDIF image; into a raw image
// each writes what it has decoded, in any order. Memory is that of
// udif.StreamOptions, and 4 MiB for other sources. progress, if not nil, is
// called with the bytes of the device that are done, from one goroutine.
func Copy(ctx context.Context, dst, src blockdev.Device, progress func(done int64)) (err error) {
	if progress == nil {
		progress = func(int64) {}
	}
	if t, ok := src.(UDIFImage); ok {
		// Images that grow are written in order, so that their chunks are in order
		// in the file.
		_, isRaw := dst.(*raw)
		o := udif.StreamOptions{Progress: func(done, _ int64) { progress(done) }, AnyOrder: isRaw}
		err = t.UDIF().Stream(ctx, o, func(p udif.Piece) error { return files.WriteData(dst, p.Data, p.Offset) })
		if errors.Is(err, udif.ErrCorrupt) {
			err = fmt.Errorf("%w: %w", ErrData, err)
		}
	} else {
		err = copyDevice(ctx, dst, src, progress)
	}
	if err != nil {
		return err
	}
	progress(src.Size())
	return dst.Flush()
}

// copyDevice copies from any device block by block.
func copyDevice(ctx context.Context, dst, src blockdev.Device, progress func(int64)) error {
	buf, err := hostio.AlignedBuffer(copyBlock)
	if err != nil {
		return err
	}
	defer buf.Free()
	holes := MapOf(src)
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
		progress(off)
		if n, err := src.ReadAt(part, off); err != nil && (n < len(part) || !errors.Is(err, io.EOF)) {
			return fmt.Errorf("reading %d bytes at %d: %w", len(part), off, err)
		}
		if err := files.WriteData(dst, part, off); err != nil {
			return fmt.Errorf("writing %d bytes at %d: %w", len(part), off, err)
		}
	}
	return nil
}

// holeMapper is implemented by images that know of ranges without data. A
// sparse image of a few bytes may have a device of exabytes, which takes too
// long to read. No other call may write to the device while the map is in use.
type holeMapper interface{ holes() udif.Map }

// MapOf returns what is known of a device without reading it, or nil.
func MapOf(dev blockdev.Device) udif.Map {
	if d, ok := dev.(holeMapper); ok {
		return d.holes()
	}
	return nil
}
