package container

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/image"
	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/hostio"
)

func tempDir(t testing.TB, opts ...hostio.Option) *hostio.Dir {
	t.Helper()
	d, err := hostio.OpenDir(t.TempDir(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(b)
	return b
}

// model is an image and what its device must hold.
type model struct {
	dir  *hostio.Dir
	img  Image
	opts OpenOptions
	want []byte
}

func (m *model) span(t *rapid.T, longest int64) (off, n int64) {
	size := int64(len(m.want))
	unit := rapid.SampledFrom([]int64{1, 512, 4096}).Draw(t, "unit")
	off = min(unit*rapid.Int64Range(0, size/unit).Draw(t, "off"), size)
	n = min(unit*rapid.Int64Range(0, longest/unit).Draw(t, "n"), size-off)
	return off, n
}

func (m *model) write(t *rapid.T) {
	off, n := m.span(t, 300<<10)
	p := pattern(int(n), rapid.Uint64Range(0, 9999).Draw(t, "seed"))
	k, err := m.img.WriteAt(p, off)
	require.NoError(t, err)
	require.EqualValues(t, n, k)
	copy(m.want[off:], p)
}

func (m *model) read(t *rapid.T) {
	off, n := m.span(t, int64(len(m.want)))
	p := bytes.Repeat([]byte{0xEE}, int(n))
	k, err := m.img.ReadAt(p, off)
	require.NoError(t, err)
	require.EqualValues(t, n, k)
	require.True(t, bytes.Equal(m.want[off:off+n], p), "content at %d, %d bytes", off, n)
}

func (m *model) readAcrossTheEnd(t *rapid.T) {
	k, err := m.img.ReadAt(make([]byte, 100), int64(len(m.want))-min(50, int64(len(m.want))))
	require.ErrorIs(t, err, io.EOF)
	require.EqualValues(t, min(50, len(m.want)), k)
	_, err = m.img.WriteAt(make([]byte, 2), int64(len(m.want))-1)
	require.ErrorIs(t, err, blockdev.ErrOutOfRange)
	require.ErrorIs(t, m.img.Discard(int64(len(m.want)), 512), blockdev.ErrOutOfRange)
}

func (m *model) discard(t *rapid.T) {
	off, n := m.span(t, int64(len(m.want)))
	err := m.img.Discard(off, n)
	if errors.Is(err, hostio.ErrUnsupported) {
		return // no holes here: the content stays
	}
	require.NoError(t, err)
	clear(m.want[off : off+n])
}

func (m *model) resize(t *rapid.T) {
	n := 512 * rapid.Int64Range(1, 3000).Draw(t, "sectors")
	require.NoError(t, m.img.Resize(n))
	if n > int64(len(m.want)) {
		m.want = append(m.want, make([]byte, n-int64(len(m.want)))...)
	}
	m.want = m.want[:n:n]
	require.EqualValues(t, n, m.img.Size())
}

func (m *model) flush(t *rapid.T) { require.NoError(t, m.img.Flush()) }

func (m *model) evict(t *rapid.T) {
	off, n := m.span(t, int64(len(m.want)))
	require.NoError(t, m.img.Evict(off, n))
}

func (m *model) compact(t *rapid.T) {
	var used func(off, n int64) bool
	if rapid.Bool().Draw(t, "by map") {
		used = func(off, n int64) bool { return !isZero(m.want[off : off+n]) }
	}
	_, err := m.img.Compact(used)
	if m.img.Format() == UDRW {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		return
	}
	require.NoError(t, err)
}

func isZero(p []byte) bool { return len(bytes.Trim(p, "\x00")) == 0 }

func (m *model) reopen(t *rapid.T) {
	require.NoError(t, m.img.Close())
	found, err := Verify(m.dir, "i", m.opts)
	require.NoError(t, err)
	require.Empty(t, found)
	m.img, err = Open(m.dir, "i", m.opts)
	require.NoError(t, err)
	require.EqualValues(t, len(m.want), m.img.Size())
}

// secret is an encryption that costs tests little.
func secret(block int) Encryption {
	return Encryption{Cipher: []string{AES128, AES256}[block/4096], Passphrase: []byte("secret"), Iterations: 1000, block: block}
}

// TestImageAgainstModel covers bands smaller than Create allows too: other
// tools made such bundles, and small ones cross more borders.
func TestImageAgainstModel(t *testing.T) {
	for _, c := range []struct {
		format   string
		bandSize int64
		block    int // of the encryption, 0 for none
	}{
		{UDRW, 0, 0}, {UDSB, 512 * 3, 0}, {UDSB, 64 << 10, 0}, {UDSB, 1<<20 - 512, 0}, {UDSB, image.MinBandSize, 0},
		{UDSP, 512, 0}, {UDSP, 512 * 3, 0}, {UDSP, 64 << 10, 0}, {UDSP, image.MinBandSize, 0}, {ASIF, 0, 0},
		{UDRW, 0, 512}, {UDRW, 0, 4096}, {UDSB, 512 * 3, 512}, {UDSB, 64 << 10, 4096}, {UDSB, 1<<20 - 512, 512},
		{UDSP, 512, 512}, {UDSP, 512 * 3, 4096}, {UDSP, 64 << 10, 4096}, {UDSP, image.MinBandSize, 512},
	} {
		for _, cache := range []hostio.CacheMode{hostio.CacheBuffered, hostio.CacheDirect} {
			if c.block > 0 && (c.block+int(c.bandSize))%1024 == 0 == (cache == hostio.CacheDirect) {
				continue // one of the two
			}
			t.Run(fmt.Sprint(c.format, c.bandSize, cache, c.block), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(rt *rapid.T) {
					d, err := hostio.OpenDir(t.TempDir())
					require.NoError(rt, err)
					defer d.Close()
					size := 512 * rapid.Int64Range(1, 3000).Draw(rt, "sectors")
					e, pass := Encryption{}, []byte(nil)
					if c.block > 0 {
						e, pass = secret(c.block), []byte("secret")
					}
					switch c.format {
					case UDSB:
						err = createBundle(d, "i", Spec{BandSize: c.bandSize, Size: size, Encryption: e})
					case UDSP:
						err = createUDSP(d, "i", Spec{BandSize: c.bandSize, Size: size, Encryption: e})
					default:
						err = Create(d, "i", Spec{Format: c.format, Size: size, Encryption: e})
					}
					require.NoError(rt, err)
					m := &model{dir: d, opts: OpenOptions{Cache: cache, Sync: hostio.SyncFsync, Passphrase: pass}, want: make([]byte, size)}
					m.img, err = Open(d, "i", m.opts)
					require.NoError(rt, err)
					defer func() { _ = m.img.Close() }()
					if b, ok := m.img.(*bundle); ok {
						b.open = &openBands{limit: 3}
					}
					rt.Repeat(map[string]func(*rapid.T){
						"write": m.write, "write2": m.write, "read": m.read, "discard": m.discard, "resize": m.resize,
						"flush": m.flush, "evict": m.evict, "compact": m.compact, "reopen": m.reopen,
						"end": m.readAcrossTheEnd,
					})
					got := make([]byte, len(m.want))
					_, err = m.img.ReadAt(got, 0)
					require.NoError(rt, err)
					require.True(rt, bytes.Equal(m.want, got), "device differs from the model")
				})
			})
		}
	}
}
