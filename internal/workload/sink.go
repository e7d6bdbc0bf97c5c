package workload

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"dmgbench/internal/hostio"
)

// decodeSerially decompresses what others have written in one piece.
func (p *pipe) decodeSerially(ctx context.Context) error {
	in := bufio.NewReaderSize(io.NewSectionReader(p.src, 0, p.src.Size()), copyBlock)
	var r io.Reader
	switch p.spec.Codec {
	case CodecZstd:
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer d.Close()
		r = d
	case CodecGzip:
		d, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("decompressing with gzip: %w", err)
		}
		r = d
	default:
		r = s2.NewReader(in)
	}
	if _, err := io.Copy(&stoppable{ctx, p.out}, r); err != nil {
		return fmt.Errorf("decompressing with %s: %w", p.spec.Codec, err)
	}
	return nil
}

// stoppable is a writer that ends with its context.
type stoppable struct {
	ctx context.Context
	io.Writer
}

func (s *stoppable) Write(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Writer.Write(p)
}

// sink gathers output in aligned blocks, so that direct transfers stay direct,
// and sets the length of the file at the end.
type sink struct {
	f   File
	cut Truncater
	buf *hostio.Buffer
	n   int   // bytes in buf
	off int64 // bytes in the file, after finish its length
}

func newSink(f File) (*sink, error) {
	cut, ok := f.(Truncater)
	if !ok {
		return nil, fmt.Errorf("setting the length of a file: %w", hostio.ErrUnsupported)
	}
	buf, err := hostio.AlignedBuffer(copyBlock)
	return &sink{f: f, cut: cut, buf: buf}, err
}

// Write is write, for io.Copy.
func (s *sink) Write(p []byte) (int, error) { return len(p), s.write(p) }

func (s *sink) write(p []byte) error {
	for len(p) > 0 {
		k := copy(s.buf.Bytes()[s.n:], p)
		s.n += k
		p = p[k:]
		if s.n == copyBlock {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sink) flush() error {
	if err := put(s.f, s.buf.Bytes()[:s.n], s.off); err != nil {
		return fmt.Errorf("writing at %d: %w", s.off, err)
	}
	s.off += int64(s.n)
	s.n = 0
	return nil
}

func (s *sink) finish() error {
	if s.n > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if err := s.cut.Truncate(s.off); err != nil {
		return fmt.Errorf("setting the length to %d: %w", s.off, err)
	}
	return nil
}
