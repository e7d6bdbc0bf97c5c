package codec

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// roundTrip encodes and decodes; nothing is to be said of what does not compress.
func roundTrip(t require.TestingT, id ID, src []byte, level int) []byte {
	payload, err := Encode(id, []byte("before"), src, level)
	require.Equal(t, "before", string(payload[:6]))
	if err != nil {
		require.ErrorIs(t, err, ErrIncompressible)
		require.Len(t, payload, 6)
		return nil
	}
	payload = payload[6:]
	require.Less(t, len(payload), len(src))
	got := make([]byte, len(src))
	n, err := Decode(id, got, payload)
	require.NoError(t, err)
	require.Equal(t, len(src), n)
	require.True(t, bytes.Equal(src, got))
	return payload
}

func TestRoundTrip(t *testing.T) {
	for _, id := range IDs {
		t.Run(id.String(), func(t *testing.T) {
			for _, n := range []int{512, 4096, 100000} {
				short := id == LZFSE && n < lzfseShortest
				assert.Equal(t, short, roundTrip(t, id, Records(n), 0) == nil)
				assert.Equal(t, short, roundTrip(t, id, make([]byte, n), 0) == nil)
				assert.Nil(t, roundTrip(t, id, Noise(n, 1), 0))
			}
			assert.Nil(t, roundTrip(t, id, nil, 0))
			assert.Nil(t, roundTrip(t, id, []byte{1}, 0))
		})
	}
}

func TestRoundTripRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom(IDs).Draw(t, "id")
		roundTrip(t, id, Draw(t, 8000), rapid.IntRange(0, 9).Draw(t, "level"))
	})
}

func TestZlibLevels(t *testing.T) {
	src := Text(100000)
	assert.Equal(t, "\x78\x01", string(roundTrip(t, Zlib, src, 0)[:2]))
	size := len(src)
	for level := 1; level <= 9; level++ {
		payload := roundTrip(t, Zlib, src, level)
		r, err := zlib.NewReader(bytes.NewReader(payload))
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(src, got))
		if level == 1 || level == 9 {
			assert.Less(t, len(payload), size)
			size = len(payload)
		}
	}
	for _, level := range []int{-1, 10} {
		_, err := Encode(Zlib, nil, src, level)
		assert.Error(t, err)
	}
}

// TestZlibSizes holds the sizes of chunks as images have them against those of zlib's level of the same number: the
// default is held against level 6.
func TestZlibSizes(t *testing.T) {
	chunkSize := times(1 << 20)
	for name, data := range plainKinds(t, chunkSize+chunkSize/2) {
		for _, c := range []struct {
			zlibs int
			ours  []int
		}{{1, []int{1}}, {2, []int{2}}, {5, []int{5}}, {6, []int{0, 6}}, {9, []int{9}}} {
			ours, theirs := make([]int, len(c.ours)), 0
			for chunk := range slices.Chunk(data, chunkSize) {
				var reference bytes.Buffer
				w, err := zlib.NewWriterLevel(&reference, c.zlibs)
				require.NoError(t, err)
				_, err = w.Write(chunk)
				require.NoError(t, errors.Join(err, w.Close()))
				theirs += min(reference.Len(), len(chunk))
				for i, level := range c.ours {
					payload := roundTrip(t, Zlib, chunk, level)
					if payload == nil { // it is stored as it is
						payload = chunk
					}
					ours[i] += len(payload)
				}
			}
			for i, level := range c.ours {
				assert.LessOrEqual(t, float64(ours[i]), 1.03*float64(theirs), "%s, level %d: %d bytes, zlib %d", name, level, ours[i], theirs)
			}
		}
	}
}

// plainKinds are n bytes of each of the kinds of data that images mostly hold.
func plainKinds(t *testing.T, n int) map[string][]byte {
	noise := Noise(n, 5)
	kinds := map[string][]byte{"text": Text(n), "records": Records(n), "random": noise,
		"base64": []byte(base64.StdEncoding.EncodeToString(noise))[:n], "executable": Program(n)}
	var lines []byte // as in mail
	for line := range slices.Chunk(kinds["base64"], 76) {
		lines = append(append(lines, line...), '\n')
	}
	kinds["base64 in lines"] = lines
	require.NotEmpty(t, kinds["executable"])
	return kinds
}

func TestErrors(t *testing.T) {
	src := Text(5000)
	for _, id := range IDs {
		payload := roundTrip(t, id, src, 0)
		for name, wrong := range map[string]struct {
			size    int
			payload []byte
		}{"short": {4999, payload}, "long": {5001, payload}, "cut": {5000, payload[:len(payload)/2]}, "empty": {5000, nil}} {
			_, err := Decode(id, make([]byte, wrong.size), wrong.payload)
			if id == ADC && name == "short" {
				continue // its last code may end there
			}
			assert.ErrorIs(t, err, ErrCorrupt, "%v %s", id, name)
		}
	}
	_, err := Decode(1, make([]byte, 1), []byte{1})
	assert.ErrorIs(t, err, ErrUnknown)
	assert.Equal(t, "decoding with codec 0x00000001: unknown codec", err.Error())
	_, err = Encode(1, nil, src, 0)
	assert.ErrorIs(t, err, ErrUnknown)
}

// What a decoder says of a damaged payload reaches the error, and an empty chunk is no excuse for one.
func TestErrorsNameTheCause(t *testing.T) {
	src := Text(3000)
	middle := func(id ID) []byte {
		payload, err := Encode(id, nil, src, 0)
		require.NoError(t, err)
		payload[len(payload)/2] ^= 0xff
		return payload
	}
	for cause, c := range map[string]struct {
		id      ID
		payload []byte
		size    int
	}{
		"distance out of range":             {LZMA, middle(LZMA), len(src)},
		"invalid properties code":           {LZMA, append([]byte{0xff}, make([]byte, 12)...), 0},
		"ends too early":                    {LZMA, make([]byte, 12), 0},
		"block checksum mismatch":           {Bzip2, middle(Bzip2), len(src)},
		"it decodes to 3000 bytes of 3001":  {Bzip2, roundTrip(t, Bzip2, src, 0), len(src) + 1},
		"more bytes than wanted":            {Bzip2, roundTrip(t, Bzip2, src, 0), len(src) - 1},
		"header with another length than w": {LZMA, make([]byte, 13), 1},
	} {
		_, err := Decode(c.id, make([]byte, c.size), c.payload)
		require.ErrorIs(t, err, ErrCorrupt, cause)
		assert.ErrorContains(t, err, cause)
	}
}

func TestConcurrent(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range times(8) {
				for _, id := range IDs {
					roundTrip(t, id, Text(2000 * (i + 1))[n*7:], 0)
				}
			}
		})
	}
	group.Wait()
}

func FuzzDecode(f *testing.F) {
	for i, id := range IDs {
		payload, err := Encode(id, nil, Text(5000), 0)
		require.NoError(f, err)
		f.Add(uint8(i), payload, uint16(5000))
	}
	f.Fuzz(func(t *testing.T, which uint8, payload []byte, size uint16) {
		dst := make([]byte, int(size)+1)
		n, err := Decode(IDs[int(which)%len(IDs)], dst[:size], payload)
		require.Zero(t, dst[size])
		if err == nil {
			require.Equal(t, int(size), n)
		} else {
			require.ErrorIs(t, err, ErrCorrupt)
			require.LessOrEqual(t, n, int(size))
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(uint8(3), []byte("some text, some text"), uint16(5), uint16(5000))
	f.Fuzz(func(t *testing.T, which uint8, src []byte, distance, more uint16) {
		for d := int(distance); d > 0 && d <= len(src) && more > 0; more-- {
			src = append(src, src[len(src)-d])
		}
		roundTrip(t, IDs[int(which)%len(IDs)], src, 0)
	})
}

func BenchmarkDecode(b *testing.B) {
	src := Bench()["text"]
	for _, id := range IDs {
		payload, err := Encode(id, nil, src, 0)
		require.NoError(b, err)
		dst := make([]byte, len(src))
		b.Run(id.String(), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := Decode(id, dst, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	src := Bench()["text"]
	for _, id := range IDs {
		out := make([]byte, 0, len(src)+1<<18)
		b.Run(id.String(), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if _, err := Encode(id, out, src, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
