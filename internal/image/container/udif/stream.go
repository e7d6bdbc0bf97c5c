package udif

import (
	"context"
	"fmt"

	"dmgbench/internal/system/pipeline"
)

// pieceSize is the largest part of a raw run that is handled at once, in bytes: the
// length of Apple's chunks.
const pieceSize = 1 << 20

// Piece is a stretch of the device as Stream delivers it.
type Piece struct {
	Offset, Length int64  // bytes of the device
	Data           []byte // Length bytes, valid until deliver returns; nil if all of them are zero
	Unallocated    bool   // Data is nil because no file uses the content
}

// StreamOptions bounds a pass over the whole image.
type StreamOptions struct {
	// Memory bounds the buffers of chunks and their payloads, in bytes; 0 takes
	// 64 MiB. One chunk at a time (MaxChunk and its payload at worst) is always
	// possible.
	Memory int64
	// Progress, if set, is called from one goroutine with the bytes of the
	// device that are done, and all.
	Progress func(done, total int64)
	// AnyOrder makes each worker of Stream deliver what it has decoded at once,
	// while the bytes are in its processor's cache. The callback then runs on
	// all of them at the same time.
	AnyOrder bool
}

// defaultMemory is the usual bound of buffers of one pass, in bytes.
const defaultMemory = 64 << 20

// slot is a piece of work with its buffers, which are used again for later
// pieces.
type slot struct {
	Piece
	run    *run
	crc    uint32
	err    error
	data   []byte
	stored []byte
}

// slots is the number of buffers of this size that fit into memory and that so
// many workers can use.
func slots(memory, size int64, workers int) int {
	if memory <= 0 {
		memory = defaultMemory
	}
	return int(max(1, min(memory/max(size, 1), int64(4*workers))))
}

// Stream decodes the whole device with all workers, and delivers it without
// gaps and in the order of the options. It does not use the cache. It stops at
// the first error, its own, that of deliver, or the end of ctx.
func (im *Image) Stream(ctx context.Context, o StreamOptions, deliver func(Piece) error) error {
	err := im.pass(ctx, o, func(s *slot) error {
		err := im.loadSlot(s)
		if err == nil && o.AnyOrder {
			err = deliver(s.Piece)
		}
		return err
	}, func(s *slot) error {
		if o.AnyOrder {
			return nil
		}
		return deliver(s.Piece)
	})
	if err != nil {
		return fmt.Errorf("decoding the image: %w", err)
	}
	return nil
}

// pass cuts the device into pieces, calls work for each on all workers and
// deliver in order: a compressed run is one piece, raw runs are cut, holes are
// one piece without data.
func (im *Image) pass(ctx context.Context, o StreamOptions, work, deliver func(*slot) error) error {
	count := slots(o.Memory, max(im.chunk+im.payload, pieceSize), im.options.Workers)
	return pipeline.Run(ctx, im.options.Workers, make([]slot, count), im.cut, work, func(s *slot) error {
		err := deliver(s)
		if err == nil && o.Progress != nil {
			o.Progress(s.Offset+s.Length, im.Size())
		}
		return err
	})
}

// cut submits the pieces of the device in order.
func (im *Image) cut(submit func(fill func(*slot)) bool) {
	for i := range im.runs {
		r := &im.runs[i]
		step := r.pieceLength()
		for at := int64(0); at < r.bytes(); at += step {
			if !submit(func(s *slot) {
				s.Piece = Piece{Offset: r.deviceOffset() + at, Length: min(step, r.bytes()-at),
					Unallocated: r.kind == KindIgnore}
				s.run, s.crc, s.err = r, 0, nil
			}) {
				return
			}
		}
	}
}

// loadSlot fills in the data of the slot's piece.
func (im *Image) loadSlot(s *slot) error {
	if s.run.kind.hole() {
		return nil
	}
	if int64(cap(s.data)) < s.Length {
		s.data = make([]byte, max(s.Length, min(im.chunk, pieceSize)))
	}
	s.Data = s.data[:s.Length]
	inside := s.Offset - s.run.deviceOffset()
	if s.run.kind.Compressed() {
		if err := im.decode(s.run, s.Data, &s.stored); err != nil {
			return err
		}
	} else if err := readFull(im.src, s.Data, int64(s.run.offset)+inside); err != nil {
		return fmt.Errorf("reading sector %d: %w", s.Offset/SectorSize, err)
	}
	im.keepSum(s.run, inside, s.Data)
	return nil
}
