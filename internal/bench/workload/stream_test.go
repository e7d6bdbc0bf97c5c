package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

func mixed(t testing.TB, share float64) *Data {
	d := NewData(1, 1, "stream", DataMixed, share)
	return d
}

// Compressed and decompressed again, every byte is back, for every codec and number
// of threads, and however the sizes fall.
func TestStreamRoundTrip(t *testing.T) {
	for _, codec := range []string{CodecZstd, CodecS2, CodecGzip} {
		for _, size := range []int64{0, 1, frameInput, frameInput + 12345} {
			for _, threads := range []int{1, 2} {
				switch long := os.Getenv("DMGBENCH_LONG") != ""; {
				case threads == 1 && size == frameInput:
					continue
				case !long && codec != CodecZstd && (threads == 1 || size == frameInput): // all codecs have the same frames
					continue
				}
				t.Run(fmt.Sprint(codec, "/", size, "/", threads), func(t *testing.T) { roundTrip(t, codec, size, threads) })
			}
		}
	}
}

func roundTrip(t *testing.T, codec string, size int64, threads int) {
	v, d := newFake(), mixed(t, 0.5)
	o := Options{Clock: v.clock, Data: d, Sync: hostio.SyncFsync}
	_, err := Copy(t.Context(), Generated(d, "source", size), v, "in/source", o)
	require.NoError(t, err)
	out, err := Stream(t.Context(), v, StreamSpec{From: "in/source", To: "packed", Codec: codec, Level: 1, Threads: threads}, o)
	require.NoError(t, err)
	packed := int64(len(v.files["packed"].data))
	assert.Equal(t, &result.Stream{Codec: codec, Level: 1, Threads: threads, In: size, Out: packed,
		Ratio: out.Stream.Ratio, Saving: out.Stream.Saving}, out.Stream)
	assert.Equal(t, size, out.Samples[0].Bytes)
	if size >= frameInput {
		assert.InDelta(t, 2, out.Stream.Ratio, 0.05, "half of each 4 KiB is zero")
		assert.InDelta(t, 0.5, out.Stream.Saving, 0.02)
	}
	back, err := Stream(t.Context(), v, StreamSpec{From: "packed", To: "back", Direction: Decompress, Codec: codec, Threads: threads}, o)
	require.NoError(t, err)
	assert.Equal(t, packed, back.Stream.In)
	assert.Equal(t, out.Stream.Ratio, back.Stream.Ratio)
	assert.Empty(t, back.Warnings)
	assert.Equal(t, threads, back.Stream.Threads)
	assert.True(t, bytes.Equal(v.files["in/source"].data, v.files["back"].data))
	assertAllClosed(t, v)
}

// The system's own tools read what we compress.
func TestStreamIsReadByOthers(t *testing.T) {
	v, d := newFake(), mixed(t, 0.3)
	o := Options{Clock: v.clock}
	_, err := Copy(t.Context(), Generated(d, "s", frameInput+99), v, "s", o)
	require.NoError(t, err)
	for codec, tool := range map[string]string{CodecGzip: "gzip", CodecZstd: "zstd"} {
		_, err := Stream(t.Context(), v, StreamSpec{From: "s", To: codec, Codec: codec, Threads: 2}, o)
		require.NoError(t, err)
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Logf("no %s here to read with", tool)
			continue
		}
		name := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(name, v.files[codec].data, 0o600))
		cmd := exec.CommandContext(t.Context(), path, "-dc")
		cmd.Stdin, err = os.Open(name)
		require.NoError(t, err)
		got, err := cmd.Output()
		require.NoError(t, err)
		assert.True(t, bytes.Equal(v.files["s"].data, got), tool)
	}
}

// What others have compressed in one piece is read by one thread, and it says so.
func TestStreamReadsForeignFiles(t *testing.T) {
	plain := make([]byte, copyBlock+99)
	mixed(t, 0.5).FillAt(plain, 1, 0)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for codec, packed := range map[string][]byte{CodecGzip: gz.Bytes(), CodecZstd: enc.EncodeAll(plain, nil)} {
		v := newFake()
		v.files["x"] = &fakeBody{packed}
		out, err := Stream(t.Context(), v, StreamSpec{From: "x", To: "y", Direction: Decompress, Codec: codec, Threads: 2}, Options{Clock: v.clock})
		require.NoError(t, err)
		assert.True(t, bytes.Equal(plain, v.files["y"].data))
		assert.Equal(t, 1, out.Stream.Threads)
		require.Len(t, out.Warnings, 1)
		assert.Equal(t, "stream", out.Warnings[0].Kind)
	}
}

// Time is reading, writing, the codec and the flush; what it costs to open and
// close is not.
func TestStreamTimesItsWork(t *testing.T) {
	v, d := newFake(), mixed(t, 0.5)
	o := Options{Clock: v.clock, Sync: hostio.SyncFull, Cache: CacheCold}
	_, err := Copy(t.Context(), Generated(d, "s", 10<<20), v, "s", o)
	require.NoError(t, err)
	v.cache, v.warm = hostio.CacheBuffered, 1
	v.openCost, v.createCost, v.closeCost, v.evictCost = time.Hour, time.Hour, time.Hour, time.Hour
	v.syncCost, v.writeCost = time.Second, time.Millisecond
	out, err := Stream(t.Context(), v, StreamSpec{From: "s", To: "t", Codec: CodecS2, Threads: 2}, o)
	require.NoError(t, err)
	assert.Equal(t, int64(time.Second+2*time.Millisecond), out.Samples[0].DurationNS, "two blocks of 4 MiB and the flush")
	assert.Equal(t, &result.Achieved{Asked: "full", Achieved: "full"}, out.Sync)
	assert.Equal(t, &result.Achieved{Asked: "cold", Achieved: FoundCold}, out.Cache)
}

func TestStreamFaults(t *testing.T) {
	v, d := newFake(), mixed(t, 0.5)
	o := Options{Clock: v.clock}
	_, err := Copy(t.Context(), Generated(d, "s", 20<<20), v, "s", o)
	require.NoError(t, err)
	for want, spec := range map[string]StreamSpec{
		`streaming file "s" to "t": unknown codec "rar"`:                   {From: "s", To: "t", Codec: "rar"},
		`streaming file "s" to "t": zstd has levels 1 to 22, not 23`:       {From: "s", To: "t", Codec: CodecZstd, Level: 23},
		`streaming file "s" to "t": gzip has levels 1 to 9, not -1`:        {From: "s", To: "t", Codec: CodecGzip, Level: -1},
		`streaming file "s" to "t": s2 has levels 1 to 3, not 4`:           {From: "s", To: "t", Codec: CodecS2, Level: 4},
		`streaming file "x" to "t": opening file "x": file does not exist`: {From: "x", To: "t", Codec: CodecS2},
		`streaming file "s" to "s": creating: file already exists`:         {From: "s", To: "s", Codec: CodecS2},
	} {
		_, err := Stream(t.Context(), v, spec, o)
		require.EqualError(t, err, want)
	}
	v.failWrite = func(_ string, off int64) error {
		if off >= 4<<20 {
			return syscall.ENOSPC
		}
		return nil
	}
	_, err = Stream(t.Context(), v, StreamSpec{From: "s", To: "t", Codec: CodecS2, Threads: 3}, o)
	require.EqualError(t, err, `streaming file "s" to "t": writing at 4194304: no space left on device`)
	v.failWrite = nil
	for _, codec := range []string{CodecZstd, CodecGzip, CodecS2} {
		v.files["junk"+codec] = &fakeBody{bytes.Repeat([]byte("no such thing "), 1000)}
		_, err = Stream(t.Context(), v, StreamSpec{From: "junk" + codec, To: "u" + codec, Direction: Decompress, Codec: codec}, o)
		require.ErrorContains(t, err, "decompressing with "+codec)
	}
	assertAllClosed(t, v)
}

func TestStreamCancels(t *testing.T) {
	v, d := newFake(), mixed(t, 0.5)
	o := Options{Clock: v.clock}
	_, err := Copy(t.Context(), Generated(d, "s", 20<<20), v, "s", o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	v.onCall = func(string) { cancel(errors.New("the user stopped")) }
	_, err = Stream(ctx, v, StreamSpec{From: "s", To: "t", Codec: CodecZstd, Threads: 2}, o)
	require.ErrorContains(t, err, "the user stopped")
	_, err = Copy(ctx, Generated(d, "s", 20<<20), v, "u", o)
	require.EqualError(t, err, `copying to file "u": the user stopped`)
	assertAllClosed(t, v)

	// One thread decompresses what others made in one piece, and stops as well.
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	require.NoError(t, err)
	_, err = z.Write(make([]byte, 12<<20))
	require.NoError(t, errors.Join(err, z.Close()))
	v.onCall = nil
	_, err = Copy(t.Context(), bytes.NewReader(packed.Bytes()), v, "s.gz", o)
	require.NoError(t, err)
	ctx, cancel = context.WithCancelCause(t.Context())
	v.onCall = func(name string) {
		if name == "w" {
			cancel(errors.New("the user stopped"))
		}
	}
	_, err = Stream(ctx, v, StreamSpec{From: "s.gz", To: "w", Codec: CodecGzip, Direction: Decompress}, o)
	require.EqualError(t, err, `streaming file "s.gz" to "w": decompressing with gzip: the user stopped`)
	assertAllClosed(t, v)
}

func TestLZFSENeedsApple(t *testing.T) {
	encode := []string{"/usr/bin/compression_tool", "-encode", "-A", "lzfse", "-b", "4m", "-t", "14", "-i", "/v/a", "-o", "/v/b"}
	spec := StreamSpec{Codec: CodecLZFSE, Threads: 14, Direction: Compress}
	assert.Equal(t, encode, compressionLine(spec, QoSDefault, "/v/a", "/v/b"))
	assert.Equal(t, append([]string{"/usr/sbin/taskpolicy", "-c", "background"}, encode...), compressionLine(spec, QoSBackground, "/v/a", "/v/b"))
	spec.Direction = Decompress
	assert.Equal(t, "-decode", compressionLine(spec, QoSDefault, "a", "b")[1])
	v := newFake() // reachable by no other program, on any system
	_, err := Stream(t.Context(), v, StreamSpec{From: "s", To: "t", Codec: CodecLZFSE}, Options{Clock: v.clock})
	require.ErrorIs(t, err, hostio.ErrUnsupported)
}

// Whatever is in a file, cutting and decompressing it ends with an answer and
// within the limit; what is cut is what was there.
func FuzzDecompress(f *testing.F) {
	names := []string{CodecZstd, CodecGzip, CodecS2}
	ready := make([]codec, len(names))
	for i, name := range names {
		c, err := newCodec(name, 1)
		require.NoError(f, err)
		ready[i] = c
		frame, err := c.encode(nil, []byte("some text, some text, some more text"))
		require.NoError(f, err)
		f.Add(byte(i), append(frame, frame...))
	}
	f.Fuzz(func(t *testing.T, which byte, packed []byte) {
		i := int(which) % len(names)
		cut := &framer{in: bufio.NewReader(bytes.NewReader(packed)), kind: codecs[names[i]]}
		var all, frame []byte
		for {
			var err error
			if frame, err = cut.next(frame[:0]); err != nil {
				break
			}
			require.NotEmpty(t, frame)
			all = append(all, frame...)
			if out, err := ready[i].decode(nil, frame); err == nil {
				require.LessOrEqual(t, len(out), 2*frameLimit)
			}
		}
		require.True(t, bytes.HasPrefix(packed, all))
	})
}

// Every level of a codec gives other bytes than the one below it, and all of them come back.
func TestLevelsOfS2Differ(t *testing.T) {
	text, last := textOf(t, 1, "a", 1<<18), 0
	for level := 3; level >= 1; level-- {
		c, err := newCodec(CodecS2, level)
		require.NoError(t, err)
		packed, err := c.encode(nil, text)
		require.NoError(t, err)
		assert.Greater(t, len(packed), last, "level %d", level)
		last = len(packed)
		back, err := c.decode(nil, packed)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(text, back), "level %d", level)
	}
}

// A frame may fill the limit, and no byte more.
func TestFramesEndAtTheLimit(t *testing.T) {
	room := make([]byte, 0, frameLimit+bytes.MinRead+1)
	all, err := appendAll(room, io.LimitReader(endless{}, frameLimit))
	require.NoError(t, err)
	assert.Len(t, all, frameLimit)
	_, err = appendAll(room, io.LimitReader(endless{}, frameLimit+1))
	require.ErrorContains(t, err, "a frame has more than 67108864 bytes")
	for name, kind := range codecs {
		for more, says := range map[int]string{0: "", 1: "a frame of 67108865 bytes"} {
			head := binary.LittleEndian.AppendUint32([]byte(kind.start), uint32(frameLimit-kind.outer+more))
			size, err := (&framer{in: bufio.NewReader(bytes.NewReader(head)), kind: kind}).frameSize()
			if says != "" {
				require.ErrorContains(t, err, says, name)
				continue
			}
			require.NoError(t, err, name)
			assert.Equal(t, frameLimit, size, name)
		}
	}
}

// endless reads as many bytes of anything as are asked for.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
