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

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/pipeline"
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
	var f File
	size, err := vol.Size(name)
	if err == nil {
		f, err = vol.Open(name, o.fileOptions(0))
	}
	if err != nil {
		return nil, fmt.Errorf("opening file %q: %w", name, err)
	}
	if o.Cache == CacheDirect || o.Cache == CacheCold {
		_ = f.Evict() // advice: cacheBefore looks at the pages that are left
	}
	return &VolumeSource{File: f, size: size}, nil
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
func Copy(ctx context.Context, src Source, vol Volume, to string, o Options) (out Outcome, err error) {
	defer o.Gate.Leave()
	o = o.withDefaults()
	to = path.Clean(to)
	out, err = timeOne(ctx, vol, to, src.Size(), src.Size(), o, func(dst File, mem []byte) error {
		in, w := io.NewSectionReader(src, 0, src.Size()), &cancelWriter{ctx, io.NewOffsetWriter(dst, 0)}
		n, err := io.CopyBuffer(w, in, mem)
		if err == nil && n < src.Size() {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	if err == nil {
		err = syncVolume(vol)
	}
	if err != nil {
		err = fmt.Errorf("copying to file %q: %w", to, err)
	}
	return out, err
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

// timeOne makes one file, with its folder, for expected bytes, and times one
// piece of work that writes it through a block of memory, with its flush, on the
// gate and with the collector off. It closes the file after the clock has
// stopped. size is the number of bytes of the sample.
func timeOne(ctx context.Context, vol Volume, name string, expected, size int64, o Options,
	work func(dst File, mem []byte) error) (out Outcome, err error) {
	if err := makeFolders(vol, []Item{{Name: name}}); err != nil {
		return out, err
	}
	buf, err := hostio.AlignedBuffer(copyBlock)
	if err != nil {
		return out, err
	}
	defer buf.Free()
	dst, err := vol.Create(name, expected, o.fileOptions(0))
	if err != nil {
		return out, fmt.Errorf("creating: %w", err)
	}
	defer func() {
		if err = errors.Join(err, dst.Close()); err != nil {
			out = Outcome{}
		}
	}()
	defer pauseGC(2)() // one thread to read, one to write
	if err := o.Gate.wait(ctx); err != nil {
		return out, fmt.Errorf("waiting for the other steps: %w", err)
	}
	mode := hostio.SyncNone
	// From here to the second reading of the clock, only the work and its flush
	// run.
	start := int64(o.Clock.Now())
	err = work(dst, buf.Bytes())
	if err == nil && o.Sync != hostio.SyncNone {
		mode, err = dst.Sync(o.Sync)
	}
	end := int64(o.Clock.Now())
	out.Bytes = size
	out.Samples = []result.Sample{{File: name, Bytes: size, StartNS: start, DurationNS: end - start}}
	out.Span = &result.Span{GateNS: start, FirstDoneNS: end, LastDoneNS: end, Bytes: size, BusyNS: end - start,
		Waves: 1}
	out.Sync = &result.Achieved{Asked: string(o.Sync), Achieved: string(mode)}
	return out, err
}

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
// input, so that bytes over time is the rate of the codec and its files.
func Stream(ctx context.Context, vol Volume, spec StreamSpec, o Options) (out Outcome, err error) {
	defer o.Gate.Leave()
	o = o.withDefaults()
	spec.Threads = max(spec.Threads, 1)
	spec.From, spec.To = path.Clean(spec.From), path.Clean(spec.To)
	spec.Direction = cmp.Or(spec.Direction, Compress)
	out, err = runStream(ctx, vol, spec, o)
	if err != nil {
		return Outcome{}, fmt.Errorf("streaming file %q to %q: %w", spec.From, spec.To, err)
	}
	if o.QoS != QoSDefault && out.QoS == nil {
		out.QoS = &result.Achieved{Asked: o.QoS, Achieved: QoSDefault}
		out.warn("qos", "%s was requested, but the threads of a codec have the default quality of service", o.QoS)
	}
	return out, syncVolume(vol)
}

// runStream opens both files and times a codec of this program or Apple's tool.
func runStream(ctx context.Context, vol Volume, spec StreamSpec, o Options) (out Outcome, err error) {
	s, err := newStream(vol, spec, o.QoS)
	if err != nil {
		return out, err
	}
	src, err := OpenSource(vol, spec.From, o)
	if err != nil {
		return out, err
	}
	defer src.Close()
	s.src = src
	var expected int64 // of Apple's tool, which sets the length itself
	if s.tool == nil {
		expected = src.Size() + src.Size()/64 + 4096 // incompressible data grows a little
		s.makePieces()
	}
	found := cacheBefore(src)
	// This fails if the name exists, which a tool would overwrite.
	out, err = timeOne(ctx, vol, spec.To, expected, src.Size(), o, func(dst File, mem []byte) error {
		s.out.f, s.out.buf = dst, mem
		return s.run(ctx)
	})
	if err != nil {
		return out, err
	}
	if found = cacheAfter(found, src); o.Virtual && found != FoundResident {
		found = FoundUnknown
	}
	out.Cache = &result.Achieved{Asked: o.Cache, Achieved: found}
	out.Stream = &result.Stream{Codec: spec.Codec, Level: spec.Level, Threads: spec.Threads, In: src.Size(),
		Out: s.out.off}
	err = s.record(vol, o.QoS, &out)
	original, packed := float64(out.Stream.In), float64(out.Stream.Out)
	if spec.Direction == Decompress {
		original, packed = packed, original
	}
	if packed > 0 {
		out.Stream.Ratio = original / packed
	}
	if original > 0 {
		out.Stream.Saving = 1 - packed/original
	}
	return out, err
}

// stream is a reader, workers and a writer that keeps the order of the file, or
// a run of Apple's compression_tool.
type stream struct {
	spec   StreamSpec
	src    *VolumeSource
	out    blockWriter
	codecs chan codec // those that no worker uses
	pieces []piece
	serial bool     // the file was decompressed by one thread
	tool   []string // the command line of Apple's tool, which does all of the work
}

// piece is one frame with its input and output. Its buffers are used for one
// frame after another.
type piece struct {
	in, out []byte
	err     error // of reading in
}

// newStream refuses what this system or the codec cannot do, before a file is
// made.
func newStream(vol Volume, spec StreamSpec, qos string) (*stream, error) {
	s := &stream{spec: spec, codecs: make(chan codec, spec.Threads)}
	if spec.Codec == CodecLZFSE {
		host, ok := vol.(HostPather)
		if !ok || runtime.GOOS != "darwin" {
			return nil, fmt.Errorf("codec %s needs %s of macOS and a mounted volume; use zstd, s2 or gzip: %w",
				spec.Codec, compressionTool, hostio.ErrUnsupported)
		}
		s.tool = compressionLine(spec, qos, host.HostPath(spec.From), host.HostPath(spec.To))
		return s, nil
	}
	for range spec.Threads {
		c, err := newCodec(spec.Codec, spec.Level)
		if err != nil {
			return nil, err
		}
		s.codecs <- c
	}
	return s, nil
}

// compressionTool is Apple's program with LZFSE and a number of threads. The
// flags are those of its manual page of January 2023: -A turns on block
// compression, which alone uses several threads; -b is the block.
const (
	compressionTool      = "/usr/bin/compression_tool"
	compressionToolBlock = "4m"
)

// taskpolicy is the tool of macOS that starts a program with a quality of
// service.
const taskpolicy = "/usr/sbin/taskpolicy"

// compressionLine is the command line for one stream, with at most that quality
// of service.
func compressionLine(spec StreamSpec, qos, from, to string) []string {
	verb := map[string]string{Compress: "-encode", Decompress: "-decode"}[spec.Direction]
	line := []string{compressionTool, verb, "-A", spec.Codec, "-b", compressionToolBlock, "-t",
		strconv.Itoa(spec.Threads), "-i", from, "-o", to}
	if qos == QoSDefault {
		return line
	}
	return append([]string{taskpolicy, "-c", qos}, line...)
}

// makePieces makes the pieces and touches their memory before the clock starts.
func (s *stream) makePieces() {
	size, count := int(min(frameInput, s.src.Size()))+1<<10, 2*s.spec.Threads+2
	if s.spec.Direction == Compress { // one piece for each frame and for the end of the file
		count = min(count, int(s.src.Size()/frameInput)+2)
	}
	s.pieces = make([]piece, count)
	for i := range s.pieces {
		s.pieces[i] = piece{in: make([]byte, size), out: make([]byte, size+size/64)}
		clear(s.pieces[i].in)
		clear(s.pieces[i].out)
	}
}

// run streams the whole file.
func (s *stream) run(ctx context.Context) (err error) {
	if s.tool != nil {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, s.tool[0], s.tool[1:]...)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("running %s: %w: %s", compressionTool, err, strings.TrimSpace(stderr.String()))
		}
		return nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(s.src, 0, s.src.Size()), copyBlock)
	f := &framer{in: in, kind: codecs[s.spec.Codec], compress: s.spec.Direction == Compress, empty: s.src.Size() == 0}
	_, err = f.frameSize()
	// Files of other programs cannot be divided.
	if s.serial = !f.compress && errors.Is(err, errNoFrame); s.serial {
		var r io.Reader
		if r, err = f.kind.newReader(in); err == nil {
			_, err = io.Copy(&cancelWriter{ctx, &s.out}, r)
		}
		err = s.wrapErr(err)
	} else {
		err = s.runWorkers(ctx, f)
	}
	if err == nil {
		err = s.out.flush()
	}
	if err != nil {
		return err
	}
	// The file had an expected length before.
	t, ok := s.out.f.(Truncater)
	if !ok {
		return fmt.Errorf("setting the length of a file: %w", hostio.ErrUnsupported)
	}
	return t.Truncate(s.out.off)
}

// wrapErr adds what was being done; nil stays nil.
func (s *stream) wrapErr(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%sing with %s: %w", s.spec.Direction, s.spec.Codec, err)
}

// runWorkers hands pieces of the file to the workers and writes what they make.
func (s *stream) runWorkers(ctx context.Context, f *framer) error {
	read := func(submit func(fill func(*piece)) bool) {
		for more := true; more && submit(func(p *piece) {
			p.in, p.err = f.next(p.in[:0])
			more = p.err == nil
		}); {
		}
	}
	transform := func(p *piece) (err error) {
		p.out = p.out[:0]
		switch {
		case errors.Is(p.err, io.EOF):
			return nil // this piece is the end
		case p.err != nil:
			return fmt.Errorf("reading: %w", p.err)
		}
		c := <-s.codecs // there is one for each worker
		if f.compress {
			p.out, err = c.encode(p.out, p.in)
		} else {
			p.out, err = c.decode(p.out, p.in)
		}
		s.codecs <- c
		return s.wrapErr(err)
	}
	return pipeline.Run(ctx, s.spec.Threads, s.pieces, read, transform, func(p *piece) error {
		_, err := s.out.Write(p.out)
		return err
	})
}

// record adds to the outcome what is known after run.
func (s *stream) record(vol Volume, qos string, out *Outcome) (err error) {
	if s.serial {
		out.Stream.Threads = 1
		out.warn("stream", "the file was not made of independent frames: one thread decompressed it")
	}
	if s.tool == nil {
		return nil
	}
	if qos != QoSDefault {
		out.QoS = &result.Achieved{Asked: qos, Achieved: "taskpolicy -c " + qos}
	}
	out.warn("stream", "%s did the I/O: through the page cache, and its start is part of the time", compressionTool)
	out.Stream.Out, err = vol.Size(s.spec.To)
	return err
}

// blockWriter gathers output in aligned blocks, so that direct transfers stay
// direct.
type blockWriter struct {
	f   File
	buf []byte // a block
	n   int    // bytes in buf
	off int64  // bytes in the file
}

// Write writes full blocks and keeps the rest.
func (w *blockWriter) Write(p []byte) (int, error) {
	size := len(p)
	for len(p) > 0 {
		k := copy(w.buf[w.n:], p)
		w.n += k
		p = p[k:]
		if w.n == len(w.buf) {
			if err := w.flush(); err != nil {
				return size - len(p), err
			}
		}
	}
	return size, nil
}

// flush writes the buffered bytes.
func (w *blockWriter) flush() error {
	if w.n == 0 {
		return nil
	}
	if _, err := w.f.WriteAt(w.buf[:w.n], w.off); err != nil {
		return fmt.Errorf("writing at %d: %w", w.off, err)
	}
	w.off += int64(w.n)
	w.n = 0
	return nil
}
