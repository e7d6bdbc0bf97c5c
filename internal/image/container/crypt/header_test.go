package crypt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func named(t testing.TB, name string) made {
	t.Helper()
	for _, m := range images(t) {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no image %q", name)
	return made{}
}

func TestNotEncrypted(t *testing.T) {
	for _, content := range []string{"", "e", "encrcds", "cdsaencr", "koly and more of it", string(make([]byte, 4096))} {
		_, err := ReadHeader(bytes.NewReader([]byte(content)), int64(len(content)))
		require.ErrorIs(t, err, ErrNotEncrypted, "%q", content)
	}
	_, err := ReadHeader(bytes.NewReader(nil), math.MaxInt64)
	require.ErrorIs(t, err, ErrDamaged)
}

// deaf fails every read.
type deaf struct{ err error }

func (d deaf) ReadAt([]byte, int64) (int, error) { return 0, d.err }

func TestReadErrors(t *testing.T) {
	broken := errors.New("broken disk")
	_, err := ReadHeader(deaf{broken}, 1<<20)
	require.ErrorIs(t, err, broken)

	content := named(t, "records").content
	_, err = ReadHeader(bytes.NewReader(content[:300]), int64(len(content)))
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "the file ends at byte 300, inside the header")

	_, err = ReadHeader(readers{bytes.NewReader(content[:fixedSize]), deaf{broken}}, int64(len(content)))
	require.ErrorIs(t, err, broken, "behind the fixed part")
}

// readers reads short pieces from the first and longer ones from the second.
type readers [2]io.ReaderAt

func (r readers) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= fixedSize {
		return r[0].ReadAt(p, off)
	}
	return r[1].ReadAt(p, off)
}

// A crash within or between the writes of Steps leaves a header that one of the two passphrases opens.
func TestStepsSurviveACrashAfterEverySector(t *testing.T) {
	for _, name := range []string{"aes128-512-aes192", "records"} {
		m := named(t, name)
		h := read(t, m.content)
		was := h.Marshal()
		steps, err := h.Steps(was)
		require.NoError(t, err)
		assert.Empty(t, steps, "nothing was changed")
		require.NoError(t, h.ChangePassphrase([]byte(m.Passphrase), []byte("next"), 1000, nil))
		steps, err = h.Steps(was)
		require.NoError(t, err)
		require.NotEmpty(t, steps)

		content := bytes.Clone(m.content)
		for i, s := range steps {
			for at := s.Off; at < s.Off+int64(len(s.Data)); {
				end := min((at/sectorSize+1)*sectorSize, s.Off+int64(len(s.Data)))
				copy(content[at:end], s.Data[at-s.Off:])
				at = end
				left := read(t, content)
				_, old := left.Unlock([]byte(m.Passphrase))
				_, next := left.Unlock([]byte("next"))
				require.True(t, old == nil || next == nil, "%s: step %d up to byte %d: %v, %v", name, i, end, old, next)
			}
		}
		assert.Equal(t, h.Marshal(), content[:h.DataOffset], "nothing else is left behind")

		_, err = h.Steps(was[:len(was)-1])
		require.ErrorIs(t, err, ErrUnsupported, "another header")
		full := bytes.Clone(m.content[:h.DataOffset])
		for i := fixedSize + entrySize*len(h.Records); i < len(full); i++ {
			if !slices.ContainsFunc(h.Records, Record{Offset: int64(i), Length: 1}.overlaps) {
				full[i] = 0xEE
			}
		}
		_, err = h.Steps(full)
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, "no unused space", name)
	}
}

func TestSpareSpaceSharesNoSectorWithALongTable(t *testing.T) {
	h := &Header{Records: make([]Record, 30)} // the table reaches into the second sector
	was := make([]byte, 4*sectorSize)
	assert.EqualValues(t, 3*sectorSize, h.findSpare(was, sectorSize), "the last one")
	for at := 2 * sectorSize; at < len(was); at++ {
		was[at] = 1
	}
	assert.EqualValues(t, -1, h.findSpare(was, sectorSize))
	clear(was[2*sectorSize : 3*sectorSize])
	assert.EqualValues(t, 2*sectorSize, h.findSpare(was, sectorSize), "the first behind the table")
}

// TestHostileHeaders puts one wrong value at a time into sound headers.
func TestHostileHeaders(t *testing.T) {
	const entry, record = fixedSize, 0x60
	tests := []struct {
		name   string
		off    int
		value  []byte
		kind   error // of reading
		unlock error // of unlocking, where reading does well
	}{
		{"version", 0x08, u32(3), ErrUnsupported, nil},
		{"IV size", 0x0C, u32(8), ErrUnsupported, nil},
		{"mode", 0x10, u32(6), ErrUnsupported, nil},
		{"algorithm", 0x14, u32(17), ErrUnsupported, nil},
		{"AES-192", 0x18, u32(192), ErrUnsupported, nil},
		{"other key length", 0x18, u32(256), nil, ErrPassphrase},
		{"IV algorithm", 0x1C, u32(0), ErrUnsupported, nil},
		{"IV key", 0x20, u32(math.MaxUint32), ErrUnsupported, nil},
		{"no block", 0x34, u32(0), ErrUnsupported, nil},
		{"small block", 0x34, u32(16), ErrUnsupported, nil},
		{"odd block", 0x34, u32(513), ErrUnsupported, nil},
		{"huge block", 0x34, u32(1 << 31), ErrUnsupported, nil},
		{"huge length", 0x38, u64(math.MaxUint64), ErrDamaged, nil},
		{"length that rounds over", 0x38, u64(math.MaxInt64), ErrDamaged, nil},
		{"data in the header", 0x40, u64(0x5F), ErrDamaged, nil},
		{"data at nothing", 0x40, u64(0), ErrDamaged, nil},
		{"data beyond the end", 0x40, u64(1 << 40), ErrDamaged, nil},
		{"data at a huge place", 0x40, u64(math.MaxUint64), ErrDamaged, nil},
		{"many records", 0x48, u32(math.MaxUint32), ErrUnsupported, nil},
		{"records from zeros", 0x48, u32(3), ErrDamaged, nil},
		{"no record", 0x48, u32(0), nil, ErrUnsupported},
		{"another kind", entry, u32(9), nil, ErrUnsupported},
		{"record in the table", entry + 4, u64(0x5F), ErrDamaged, nil},
		{"record outside", entry + 4, u64(DataOffset - 1), ErrDamaged, nil},
		{"record around", entry + 4, u64(math.MaxUint64 - 5), ErrDamaged, nil},
		{"record too long", entry + 12, u64(math.MaxUint64), ErrDamaged, nil},
		{"record too short", entry + 12, u64(recordSize - 1), nil, ErrDamaged},
		{"derivation", record, u32(102), nil, ErrUnsupported},
		{"function", record + 4, u32(1), nil, ErrUnsupported},
		{"no iterations", record + 8, u32(0), nil, ErrDamaged},
		{"many iterations", record + 8, u32(MaxIterations + 1), nil, ErrUnsupported},
		{"salt", record + 0x0C, u32(33), nil, ErrDamaged},
		{"huge salt", record + 0x0C, u32(math.MaxUint32), nil, ErrDamaged},
		{"IV length", record + 0x30, u32(16), nil, ErrUnsupported},
		{"wrap bits", record + 0x54, u32(128), nil, ErrUnsupported},
		{"wrap", record + 0x58, u32(18), nil, ErrUnsupported},
		{"other wrap", record + 0x58, u32(17), nil, ErrPassphrase},
		{"padding", record + 0x5C, u32(1), nil, ErrUnsupported},
		{"wrap mode", record + 0x60, u32(5), nil, ErrUnsupported},
		{"no blob", record + 0x64, u32(0), nil, ErrDamaged},
		{"odd blob", record + 0x64, u32(47), nil, ErrDamaged},
		{"long blob", record + 0x64, u32(512), nil, ErrPassphrase},
		{"huge blob", record + 0x64, u32(math.MaxUint32), nil, ErrDamaged},
		{"end of the blob", record + 0x68 + 44, []byte{0, 0, 0, 0}, nil, ErrPassphrase},
	}
	m := named(t, "aes128-512-aes192")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			content := bytes.Clone(m.content)
			copy(content[test.off:], test.value)
			h, err := ReadHeader(bytes.NewReader(content), int64(len(content)))
			if test.kind != nil {
				require.ErrorIs(t, err, test.kind)
				return
			}
			require.NoError(t, err)
			before := h.Marshal()
			_, err = h.Unlock([]byte(m.Passphrase))
			require.ErrorIs(t, err, test.unlock)
			require.ErrorIs(t, h.ChangePassphrase([]byte(m.Passphrase), []byte("next"), 0, nil), test.unlock)
			assert.Equal(t, before, h.Marshal())
		})
	}
}

func TestHostileTrailers(t *testing.T) {
	m := named(t, "v1-aes128")
	for _, test := range []struct {
		name   string
		off    int
		value  []byte
		kind   error
		unlock error
	}{
		{"version", 0x4F0, u32(2), ErrUnsupported, nil},
		{"wrap", 0x14, u32(18), ErrUnsupported, nil},
		{"block", 0x10, u32(0), ErrUnsupported, nil},
		{"key", slotAES + 4, u32(64), ErrUnsupported, nil},
		{"IV key", slotHMAC + 4, u32(0), ErrUnsupported, nil},
		{"no iterations", 0x30, u32(0), ErrDamaged, nil},
		{"many iterations", 0x30, u32(math.MaxUint32), ErrUnsupported, nil},
		{"salt", 0x34, u32(33), ErrDamaged, nil},
		{"place", 0x4E8, u64(math.MaxUint64), ErrDamaged, nil},
		{"no key", slotAES + 40, u32(0), nil, ErrDamaged},
		{"long key", slotAES + 40, u32(264), nil, ErrDamaged},
		{"odd key", slotHMAC + 40, u32(41), nil, ErrDamaged},
		{"short key", slotHMAC + 40, u32(8), nil, ErrPassphrase},
		{"other key", slotHMAC + 44, u32(8), nil, ErrPassphrase},
	} {
		t.Run(test.name, func(t *testing.T) {
			content := bytes.Clone(m.content)
			copy(content[len(content)-TrailerSize+test.off:], test.value)
			h, err := ReadHeader(bytes.NewReader(content), int64(len(content)))
			if test.kind != nil {
				require.ErrorIs(t, err, test.kind)
				return
			}
			require.NoError(t, err)
			_, err = h.Unlock([]byte(m.Passphrase))
			require.ErrorIs(t, err, test.unlock)
		})
	}
}

func TestOverlapAndSum(t *testing.T) {
	m := named(t, "records")
	content := bytes.Clone(m.content)
	copy(content[fixedSize+entrySize+4:], content[fixedSize+4:][:8]) // the second record where the first is
	_, err := ReadHeader(bytes.NewReader(content), int64(len(content)))
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "key records 0 and 1 overlap")

	content = bytes.Clone(m.content)
	for _, record := range read(t, content).Records[2:] {
		copy(content[record.Offset+8:], u32(MaxIterations*2/3))
	}
	_, err = ReadHeader(bytes.NewReader(content), int64(len(content)))
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "in all records")
}

// A file can end with the fixed part of its header: such an image has no records and no data.
func TestSmallestHeader(t *testing.T) {
	least := bytes.Clone(named(t, "aes128-512-aes192").content[:fixedSize])
	copy(least[0x38:], u64(0))
	copy(least[0x40:], u64(fixedSize))
	copy(least[0x48:], u32(0))
	assert.Equal(t, least, read(t, least).Marshal())
	_, err := ReadHeader(bytes.NewReader(least[:fixedSize-1]), fixedSize-1)
	require.Error(t, err)
}

func TestLargeHeader(t *testing.T) {
	content := named(t, "aes128-512-aes192").content
	large := append(bytes.Clone(content[:DataOffset]), make([]byte, 4<<20)...)
	copy(large[0x40:], u64(MaxHeader))
	assert.Len(t, read(t, large).Marshal(), MaxHeader)
	copy(large[0x40:], u64(MaxHeader+1))
	_, err := ReadHeader(bytes.NewReader(large), int64(len(large)))
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestGrowingImage(t *testing.T) {
	h := read(t, named(t, "aes128-512-aes192").content)
	h.DataLength = 1 << 33
	off, field := h.LengthField()
	assert.Equal(t, field, h.Marshal()[off:][:len(field)])
	again := read(t, h.Marshal())
	assert.EqualValues(t, 1<<33, again.DataLength)
	assert.EqualValues(t, 1<<33, again.CipherLength(1<<33-511))
	require.ErrorIs(t, again.Fits(DataOffset), ErrDamaged)
}

// FuzzHeader reads anything as an image and as a token. What is read gives back its own bytes, and unlocks or not
// without a panic; iterations are cut down first, so that the target tests parsing and not the patience of the reader.
func FuzzHeader(f *testing.F) {
	for _, m := range images(f) {
		if m.Version == 2 {
			f.Add(m.content[:0x1000])
		} else {
			f.Add(m.content[len(m.content)-TrailerSize-64:])
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if bytes.HasPrefix(content, markV2) && len(content) >= fixedSize && len(content) < DataOffset {
			content = append(content, make([]byte, DataOffset-len(content))...) // so that the seeds stay short
		}
		h, err := ReadHeader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			if !errors.Is(err, ErrNotEncrypted) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		raw := h.Marshal()
		if h.Version == 2 && !bytes.Equal(raw, content[:h.DataOffset]) || h.Version == 1 && !bytes.HasSuffix(content, raw) {
			t.Fatal("the header is not what was read")
		}
		again, err := ReadHeader(bytes.NewReader(raw), int64(len(raw)))
		if err != nil || again.KeyBits != h.KeyBits || again.Passphrases != h.Passphrases {
			t.Fatalf("reading the header again: %+v, %v", again, err)
		}
		if h.DataLength < 0 || h.CipherLength(h.DataLength) < h.DataLength || h.Fits(math.MaxInt64) != nil {
			t.Fatalf("a length of %d bytes", h.DataLength)
		}
		if h.Passphrases > 4 || h.Iterations > 5000 {
			return
		}
		for _, record := range h.Records {
			if p, err := decodeRecord(h.bytes(record)); record.Kind == passphrase && err == nil && p.Iterations > 5000 {
				return
			}
		}
		if c, err := h.Unlock([]byte("fuzz")); err == nil {
			c.Wipe()
		}
	})
}

// FuzzRecord decodes anything as a passphrase record; what is accepted is written back as it was, bytes nobody reads
// excepted.
func FuzzRecord(f *testing.F) {
	for _, m := range images(f) {
		for _, record := range read(f, m.content).Records {
			f.Add(m.content[record.Offset:][:record.Length])
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := decodeRecord(content)
		if err != nil {
			return
		}
		b := make([]byte, recordSize)
		encodeFields(b, p)
		again, err := decodeRecord(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, again) {
			t.Fatalf("wrote %+v, read %+v", p, again)
		}
		if p.Iterations <= 20 {
			if _, err = p.unwrap([]byte("fuzz"), 16); err == nil {
				t.Fatal("anything opens the record")
			}
		}
	})
}
