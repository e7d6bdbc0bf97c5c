package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// Directions of a stream.
const (
	Compress   = "compress"
	Decompress = "decompress"
)

// StreamSpec is one compression or decompression on a volume.
type StreamSpec struct {
	From, To  string // files of the volume; To must not exist
	Direction string // compress (also "") | decompress
	Codec     string
	Level     int // the codec's own, 0 its default
	Threads   int // compressing threads, 0 means 1; reading and writing have one each besides
}

// Stream reads From, compresses or decompresses it and writes To, both on the
// same volume, in bounded memory. The one sample covers reading, the codec,
// writing and the flush that Options.Sync names; its bytes are those of the
// input, so that bytes over time is the rate of methodology.md P-G.
func Stream(ctx context.Context, vol Volume, spec StreamSpec, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o, err := o.settle()
	if err != nil {
		return Outcome{}, err
	}
	if spec, err = spec.settle(); err != nil {
		return Outcome{}, fmt.Errorf("streaming file %q: %w", spec.From, err)
	}
	if err := makeFolders(vol, []Item{{Name: spec.To}}); err != nil {
		return Outcome{}, err
	}
	run := streamHere
	if spec.Codec == CodecLZFSE {
		run = streamTool
	}
	out, err := run(ctx, vol, spec, o)
	if err != nil {
		return out, fmt.Errorf("streaming file %q to %q: %w", spec.From, spec.To, err)
	}
	if o.QoS != QoSDefault && out.QoS == nil {
		out.QoS = &result.Achieved{Asked: o.QoS, Achieved: QoSDefault}
		out.warn("qos", "%s was asked for, and the threads of a codec have the default quality of service", o.QoS)
	}
	if err := vol.Sync(); err != nil {
		return out, fmt.Errorf("flushing the volume: %w", err)
	}
	return out, nil
}

func (s StreamSpec) settle() (StreamSpec, error) {
	s.Threads = max(s.Threads, 1)
	s.From, s.To = path.Clean(s.From), path.Clean(s.To)
	if s.Direction == "" {
		s.Direction = Compress
	}
	if s.Direction != Compress && s.Direction != Decompress {
		return s, fmt.Errorf("unknown direction %q", s.Direction)
	}
	if s.Codec == CodecLZFSE {
		return s, nil
	}
	_, err := newCodec(s.Codec, s.Level)
	return s, err
}

// streamHere runs one of our own codecs.
func streamHere(ctx context.Context, vol Volume, spec StreamSpec, o Options) (Outcome, error) {
	src, err := OpenSource(vol, spec.From, o)
	if err != nil {
		return Outcome{}, err
	}
	defer src.Close()
	expected := src.Size()
	if spec.Direction == Compress {
		expected += expected/64 + 4096 // what cannot be compressed grows a little
	}
	dst, err := vol.Create(spec.To, expected, o.fileOptions(0))
	if err != nil {
		return Outcome{}, fmt.Errorf("creating: %w", err)
	}
	p, err := newPipe(spec, src, dst)
	if err != nil {
		return Outcome{}, errors.Join(err, dst.Close())
	}
	defer p.free()
	found := cacheOf(src)
	done := timeOne(ctx, o, spec.To, src.Size(), dst, func() error {
		if err := p.run(ctx); err != nil {
			return err
		}
		return p.out.finish()
	})
	found = cacheAfter(found, src)
	if err := errors.Join(done.err, dst.Close()); err != nil {
		return Outcome{}, err
	}
	out := done.out
	out.Stream = streamed(spec, src.Size(), p.out.off)
	out.Cache = &result.Achieved{Asked: o.Cache, Achieved: found}
	if o.Virtual && found != FoundResident {
		out.Cache.Achieved = FoundUnknown
	}
	if p.serial {
		out.Stream.Threads = 1
		out.warn("stream", "the file was not made of independent frames: one thread decompressed it")
	}
	return out, nil
}

// streamed is what a stream made of its input.
func streamed(spec StreamSpec, in, out int64) *result.Stream {
	s := &result.Stream{Codec: spec.Codec, Level: spec.Level, Threads: spec.Threads, In: in, Out: out}
	original, packed := in, out
	if spec.Direction == Decompress {
		original, packed = out, in
	}
	if packed > 0 {
		s.Ratio = float64(original) / float64(packed)
	}
	if original > 0 {
		s.Saving = 1 - float64(packed)/float64(original)
	}
	return s
}

// pipe is a reader, workers and a writer with a bounded number of pieces
// between them, which keep the order of the file.
type pipe struct {
	spec   StreamSpec
	src    *VolumeSource
	out    *sink
	codecs []codec // one for each worker
	pieces []*piece
	serial bool
}

// piece is one frame on its way; its buffers are used again and again.
type piece struct {
	in, out []byte
	err     error
	ready   chan struct{}
}

// newPipe makes what the stream needs and touches its memory before the clock starts.
func newPipe(spec StreamSpec, src *VolumeSource, dst File) (*pipe, error) {
	p := &pipe{spec: spec, src: src}
	for range spec.Threads {
		c, err := newCodec(spec.Codec, spec.Level)
		if err != nil {
			return nil, err
		}
		p.codecs = append(p.codecs, c)
	}
	size := int(min(frameInput, src.Size())) + 1<<10
	for range 2*spec.Threads + 2 {
		one := &piece{in: make([]byte, size), out: make([]byte, size+size/64)}
		clear(one.in)
		clear(one.out)
		p.pieces = append(p.pieces, one)
	}
	var err error
	p.out, err = newSink(dst)
	return p, err
}

func (p *pipe) free() { p.out.buf.Free() }

func (p *pipe) run(whole context.Context) error {
	ctx, cancel := context.WithCancelCause(whole)
	defer cancel(nil)
	in := bufio.NewReaderSize(io.NewSectionReader(p.src, 0, p.src.Size()), copyBlock)
	f := newFramer(p.spec.Codec, in)
	if p.spec.Direction == Compress {
		f.next = f.input
		f.empty = p.src.Size() == 0
	}
	n := len(p.pieces)
	idle, work, order := make(chan *piece, n), make(chan *piece, n), make(chan *piece, n)
	for _, one := range p.pieces {
		idle <- one
	}
	var wg sync.WaitGroup
	for _, c := range p.codecs {
		wg.Go(func() { p.worker(c, work) })
	}
	var readErr error
	wg.Go(func() {
		defer close(order)
		defer close(work)
		readErr = read(ctx, f, idle, work, order)
	})
	err := p.collect(order, idle)
	cancel(err)
	for range order { // let the reader end
	}
	wg.Wait()
	if errors.Is(readErr, errForeign) && err == nil && p.out.off == 0 && p.out.n == 0 {
		p.serial = true
		return p.decodeSerially(whole)
	}
	if err == nil {
		err = readErr
	}
	return err
}

// read hands pieces to the workers and, in the same order, to the writer.
func read(ctx context.Context, f *framer, idle <-chan *piece, work, order chan<- *piece) error {
	for {
		var p *piece
		select {
		case p = <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var err error
		if p.in, err = f.next(p.in[:0]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("reading: %w", err)
		}
		p.ready = make(chan struct{})
		work <- p
		order <- p
	}
}

// input gives the next frameInput bytes of a file that is to be compressed.
// An empty file makes one empty frame, since no tool reads none.
func (f *framer) input(dst []byte) ([]byte, error) {
	if f.empty {
		f.empty = false
		return dst, nil
	}
	n, err := io.ReadFull(f.in, dst[:min(frameInput, cap(dst))])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return dst[:n], err
}

func (p *pipe) worker(c codec, work <-chan *piece) {
	for one := range work {
		if p.spec.Direction == Compress {
			one.out, one.err = c.encode(one.out[:0], one.in)
		} else {
			one.out, one.err = c.decode(one.out[:0], one.in)
		}
		close(one.ready)
	}
}

// collect writes the pieces in their order.
func (p *pipe) collect(order <-chan *piece, idle chan<- *piece) error {
	for one := range order {
		<-one.ready
		if one.err != nil {
			return fmt.Errorf("%s with %s: %w", p.spec.Direction+"ing", p.spec.Codec, one.err)
		}
		if err := p.out.write(one.out); err != nil {
			return err
		}
		idle <- one
	}
	return nil
}

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
