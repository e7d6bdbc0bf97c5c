package container

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// overlay is a file of some length whose content is given at a few places.
type overlay struct {
	memStore
	size int64
	at   map[int64][]byte
}

func (o *overlay) Size() (int64, error) { return o.size, nil }

func (o *overlay) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	n := min(int64(len(p)), max(o.size-off, 0))
	for at, b := range o.at {
		if at < off+n && at+int64(len(b)) > off {
			if at >= off {
				copy(p[at-off:n], b)
			} else {
				copy(p[:n], b[off-at:])
			}
		}
	}
	if n < int64(len(p)) {
		return int(n), errShortOverlay
	}
	return int(n), nil
}

var errShortOverlay = corrupt("end of the overlay")

// explore opens a hostile image, reads parts of it, and changes it. Whatever
// it says, this must end soon, and only with errors that have a name.
func explore(t *testing.T, f store, format string) {
	begin := time.Now()
	defer func() { require.Less(t, time.Since(begin), 20*time.Second) }()
	img, err := openChunked(f, format, OpenOptions{ReadOnly: true})
	if err != nil {
		require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, errors.ErrUnsupported), "%v", err)
		return
	}
	p := make([]byte, 5000)
	for _, off := range []int64{0, img.Size() / 2, max(0, img.Size()-5000)} {
		_, _ = img.ReadAt(p, off)
	}
	_, err = img.Usage()
	require.NoError(t, err)
	if m, ok := f.(*memStore); ok {
		b := slices.Clone(m.b)
		exploreWriting(t, &memStore{b: b}, format)
	}
}

func exploreWriting(t *testing.T, f *memStore, format string) {
	img, err := openChunked(f, format, OpenOptions{})
	if err != nil {
		return // a compaction that cannot be finished
	}
	if img.chunk > 1<<20 || img.Size() < 512 {
		return
	}
	p := slices.Repeat([]byte{0xA5}, 512)
	at := (img.Size() / 2) &^ 511
	_, err = img.WriteAt(p, at)
	if err != nil {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		return
	}
	require.NoError(t, img.Close())
	img, err = openChunked(f, format, OpenOptions{})
	require.NoError(t, err)
	got := make([]byte, 512)
	_, err = img.ReadAt(got, at)
	require.NoError(t, err)
	require.Equal(t, p, got)
	if int64(len(img.chunks.list()))*img.chunk > 64<<20 {
		return
	}
	_, err = img.Compact(nil)
	require.NoError(t, err)
	_, err = img.ReadAt(got, at)
	require.NoError(t, err)
	require.Equal(t, p, got)
}

func FuzzUDSP(f *testing.F) {
	head := udspHead{band: 512, size: 100 * 512}
	f.Add(append(head.encode(0, []uint32{3, 1, 2}), make([]byte, 3*512)...))
	head.compacting = true
	f.Add(append(head.encode(0, []uint32{3, 0, 1, 3, 0, 7}), make([]byte, 6*512)...))
	long := udspHead{band: 512, size: 5000 * 512}
	b := append(long.encode(udspNode+2*512, []uint32{9, 8}), make([]byte, 2*512)...)
	f.Add(append(append(b, encodeUDSPNode(udspIndexFields{Magic: udspMagic, Used: 1}, []uint32{1, 2})...), make([]byte, 2*512)...))
	loop := udspHead{band: 512, size: 512}
	f.Add(loop.encode(0x100000, []uint32{1}))
	f.Fuzz(func(t *testing.T, b []byte) { explore(t, &memStore{b: slices.Clone(b)}, UDSP) })
}

// FuzzASIF varies header, directories and one table of an image whose chunks
// are short, and in a second way the header of one with real geometry.
func FuzzASIF(f *testing.F) {
	h := shortASIF(64<<20, 1<<30)
	entry := func(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
	table := slices.Concat(entry(asifWhole|5), entry(asifUnmapped), entry(asifPartial|6))
	whole := encodeFields(h.asifFields)
	f.Add(whole, entry(3), entry(4), table, uint64(7))
	f.Add(newASIFHeader(), entry(0), entry(1), entry(0), uint64(0))
	f.Fuzz(func(t *testing.T, head, first, second, table []byte, bitmap uint64) {
		if len(head) > asifHeader || len(first) > 1024 || len(second) > 1024 || len(table) > 8*2048 {
			return
		}
		b := make([]byte, 10*smallChunk)
		copy(b, head)
		copy(b[h.Dirs[0]:], first)
		copy(b[h.Dirs[1]:], second)
		binary.BigEndian.PutUint64(b[h.Dirs[0]+8:], 1)
		binary.BigEndian.PutUint64(b[h.Dirs[1]+8:], 1)
		copy(b[smallChunk:], table)
		binary.BigEndian.PutUint64(b[smallChunk+8*2048:], bitmap)
		explore(t, &memStore{b: b}, ASIF)
		explore(t, &overlay{size: 1 << 50, at: map[int64][]byte{0: b[:smallChunk], 1 << 20: table}}, ASIF)
	})
}

func newASIFHeader() []byte {
	h := newASIF(10<<30, [16]byte{})
	return encodeFields(h.asifFields)
}
