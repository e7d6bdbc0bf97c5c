package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
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
	Threads   int // of the codec, 0 means 1; reading and writing have one more each
}

// Stream reads From, compresses or decompresses it and writes To, both on the
// same volume, in bounded memory. The one sample covers reading, the codec,
// writing and the flush that Options.Sync names; its bytes are those of the
// input, so that bytes over time is the rate of methodology.md P-G.
func Stream(ctx context.Context, vol Volume, spec StreamSpec, o Options) (Outcome, error) {
	defer o.Gate.Leave()
	o = o.withDefaults()
	spec.Threads = max(spec.Threads, 1)
	spec.From, spec.To = path.Clean(spec.From), path.Clean(spec.To)
	spec.Direction = cmp.Or(spec.Direction, Compress)
	if err := makeFolders(vol, []Item{{Name: spec.To}}); err != nil {
		return Outcome{}, err
	}
	run := streamCodec
	if spec.Codec == CodecLZFSE {
		run = streamTool
	}
	out, err := run(ctx, vol, spec, o)
	if err != nil {
		return out, fmt.Errorf("streaming file %q to %q: %w", spec.From, spec.To, err)
	}
	if o.QoS != QoSDefault && out.QoS == nil {
		out.QoS = &result.Achieved{Asked: o.QoS, Achieved: QoSDefault}
		out.warn("qos", "%s was requested, but the threads of a codec have the default quality of service", o.QoS)
	}
	return out, syncVolume(vol)
}

// streamCodec runs a codec of this program.
func streamCodec(ctx context.Context, vol Volume, spec StreamSpec, o Options) (Outcome, error) {
	if _, err := newCodec(spec.Codec, spec.Level); err != nil { // before a file is made
		return Outcome{}, err
	}
	src, err := OpenSource(vol, spec.From, o)
	if err != nil {
		return Outcome{}, err
	}
	defer src.Close()
	expected := src.Size()
	if spec.Direction == Compress {
		expected += expected/64 + 4096 // incompressible data grows a little
	}
	dst, err := vol.Create(spec.To, expected, o.fileOptions(0))
	if err != nil {
		return Outcome{}, fmt.Errorf("creating: %w", err)
	}
	p, err := newPipe(spec, src, dst)
	if err != nil {
		return Outcome{}, errors.Join(err, dst.Close())
	}
	defer p.out.buf.Free()
	found := cacheBefore(src)
	out, err := timeOne(ctx, o, spec.To, src.Size(), dst, func() error {
		if err := p.run(ctx); err != nil {
			return err
		}
		return p.out.finish()
	})
	if err != nil {
		return Outcome{}, err
	}
	found = cacheAfter(found, src)
	out.Stream = newStream(spec, src.Size(), p.out.off)
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

// newStream is the record of a stream of in bytes to out bytes.
func newStream(spec StreamSpec, in, out int64) *result.Stream {
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

// compressionTool is Apple's program with LZFSE and a number of threads. The
// flags are those of its manual page of January 2023: -A turns on block
// compression, which alone uses several threads; -b is the block.
const (
	compressionTool      = "/usr/bin/compression_tool"
	compressionToolBlock = "4m"
)

// compressionArgs is the argument list for one stream, without the program.
func compressionArgs(spec StreamSpec, from, to string) []string {
	verb := "-encode"
	if spec.Direction == Decompress {
		verb = "-decode"
	}
	return []string{verb, "-A", spec.Codec, "-b", compressionToolBlock, "-t", strconv.Itoa(spec.Threads),
		"-i", from, "-o", to}
}

// streamTool runs Apple's compression_tool, which only macOS has. The sample
// covers the whole run of the program and the flush of its output.
func streamTool(ctx context.Context, vol Volume, spec StreamSpec, o Options) (Outcome, error) {
	host, ok := vol.(HostPather)
	if !ok || runtime.GOOS != "darwin" {
		return Outcome{}, fmt.Errorf("codec %s needs %s of macOS and a mounted volume; use zstd, s2 or gzip: %w",
			spec.Codec, compressionTool, hostio.ErrUnsupported)
	}
	src, err := OpenSource(vol, spec.From, o)
	if err != nil {
		return Outcome{}, err
	}
	defer src.Close()
	// Making the file first fails if the name exists, which the tool would
	// overwrite.
	dst, err := vol.Create(spec.To, 0, o.fileOptions(0))
	if err != nil {
		return Outcome{}, fmt.Errorf("creating: %w", err)
	}
	var stderr bytes.Buffer
	line := withQoS(o.QoS, compressionTool, compressionArgs(spec, host.HostPath(spec.From), host.HostPath(spec.To)))
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stderr = &stderr
	found := cacheBefore(src)
	out, err := timeOne(ctx, o, spec.To, src.Size(), dst, func() error {
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("running %s: %w: %s", compressionTool, err, strings.TrimSpace(stderr.String()))
		}
		return nil
	})
	if err != nil {
		return Outcome{}, err
	}
	sizes, err := fileSizes(vol, []Item{{Name: spec.To}})
	if err != nil {
		return Outcome{}, err
	}
	out.Stream = newStream(spec, src.Size(), sizes[spec.To])
	out.Cache = &result.Achieved{Asked: o.Cache, Achieved: found}
	if o.QoS != QoSDefault {
		out.QoS = &result.Achieved{Asked: o.QoS, Achieved: "taskpolicy -c " + o.QoS}
	}
	out.warn("stream", "%s did the I/O: through the page cache, and its start is part of the time", compressionTool)
	return out, nil
}

// pipe is a reader, workers and a writer with a bounded number of pieces
// between them. The writer keeps the order of the file.
type pipe struct {
	spec   StreamSpec
	src    *VolumeSource
	out    *blockWriter
	codecs []codec // one for each worker
	pieces []*piece
	serial bool // the file was decompressed by one thread
}

// piece is one frame with its input and output. Its buffers are used for one
// frame after another.
type piece struct {
	in, out []byte
	err     error
	ready   chan struct{} // closed when out and err are set
}

// newPipe makes what the stream needs and touches its memory before the clock
// starts.
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
	p.out, err = newBlockWriter(dst)
	return p, err
}

// input reads the source from its start.
func (p *pipe) input() *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(p.src, 0, p.src.Size()), copyBlock)
}

// run streams the whole file.
func (p *pipe) run(whole context.Context) error {
	ctx, cancel := context.WithCancelCause(whole)
	defer cancel(nil)
	f := &framer{in: p.input(), next: codecs[p.spec.Codec].next}
	if p.spec.Direction == Compress {
		f.next, f.empty = (*framer).input, p.src.Size() == 0
	}
	// No channel ever blocks its sender: there are at most n pieces in all.
	n := len(p.pieces)
	idle, work, order := make(chan *piece, n), make(chan *piece, n), make(chan *piece, n)
	for _, one := range p.pieces {
		idle <- one
	}
	var wg sync.WaitGroup
	for _, c := range p.codecs {
		wg.Go(func() { p.work(c, work) })
	}
	var readErr error
	wg.Go(func() {
		defer close(order)
		defer close(work)
		readErr = f.readAll(ctx, idle, work, order)
	})
	err := p.writeInOrder(order, idle)
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

// readAll hands pieces to the workers and, in the same order, to the writer.
func (f *framer) readAll(ctx context.Context, idle <-chan *piece, work, order chan<- *piece) error {
	for {
		var p *piece
		select {
		case p = <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var err error
		if p.in, err = f.next(f, p.in[:0]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		p.ready = make(chan struct{})
		work <- p
		order <- p
	}
}

// work compresses or decompresses pieces until the channel is closed.
func (p *pipe) work(c codec, pieces <-chan *piece) {
	transform := c.decode
	if p.spec.Direction == Compress {
		transform = c.encode
	}
	for one := range pieces {
		one.out, one.err = transform(one.out[:0], one.in)
		close(one.ready)
	}
}

// writeInOrder writes the pieces in the order of the file.
func (p *pipe) writeInOrder(order <-chan *piece, idle chan<- *piece) error {
	for one := range order {
		<-one.ready
		if one.err != nil {
			return fmt.Errorf("%sing with %s: %w", p.spec.Direction, p.spec.Codec, one.err)
		}
		if _, err := p.out.Write(one.out); err != nil {
			return err
		}
		idle <- one
	}
	return nil
}

// decodeSerially decompresses a file that other programs wrote as one stream.
func (p *pipe) decodeSerially(ctx context.Context) error {
	r, err := codecs[p.spec.Codec].newReader(p.input())
	if err == nil {
		if c, ok := r.(io.Closer); ok {
			defer c.Close()
		}
		_, err = io.Copy(&cancelWriter{ctx, p.out}, r)
	}
	if err != nil {
		return fmt.Errorf("decompressing with %s: %w", p.spec.Codec, err)
	}
	return nil
}

// cancelWriter is a writer that fails when its context ends.
type cancelWriter struct {
	ctx context.Context
	io.Writer
}

func (w *cancelWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.Writer.Write(p)
}

// blockWriter gathers output in aligned blocks, so that direct transfers stay
// direct, and sets the length of the file at the end.
type blockWriter struct {
	f   File
	buf *hostio.Buffer
	n   int   // bytes in buf
	off int64 // bytes in the file, after finish its length
}

// newBlockWriter fails for a file with a fixed length.
func newBlockWriter(f File) (*blockWriter, error) {
	if _, ok := f.(Truncater); !ok {
		return nil, fmt.Errorf("setting the length of a file: %w", hostio.ErrUnsupported)
	}
	buf, err := hostio.AlignedBuffer(copyBlock)
	return &blockWriter{f: f, buf: buf}, err
}

// Write writes full blocks and keeps the rest.
func (w *blockWriter) Write(p []byte) (int, error) {
	size := len(p)
	for len(p) > 0 {
		k := copy(w.buf.Bytes()[w.n:], p)
		w.n += k
		p = p[k:]
		if w.n == copyBlock {
			if err := w.flush(); err != nil {
				return size - len(p), err
			}
		}
	}
	return size, nil
}

// flush writes the buffered bytes.
func (w *blockWriter) flush() error {
	n, err := w.f.WriteAt(w.buf.Bytes()[:w.n], w.off)
	if err = checkWrite(n, int64(w.n), err); err != nil {
		return fmt.Errorf("writing at %d: %w", w.off, err)
	}
	w.off += int64(w.n)
	w.n = 0
	return nil
}

// finish writes the rest and sets the length of the file.
func (w *blockWriter) finish() error {
	if w.n > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if err := w.f.(Truncater).Truncate(w.off); err != nil {
		return fmt.Errorf("setting the length to %d: %w", w.off, err)
	}
	return nil
}
