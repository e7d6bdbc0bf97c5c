package crypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"

	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// random is a reproducible source for Options.Random and for data.
func random(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

func fill(seed byte, n int) []byte {
	b := make([]byte, n)
	random(seed).Read(b)
	return b
}

// reference encrypts block by block with the standard library alone.
func reference(t *testing.T, k keys, src []byte, block int, first uint32) []byte {
	t.Helper()
	b, err := aes.NewCipher(k.aes)
	require.NoError(t, err)
	dst := make([]byte, len(src))
	for i := 0; i < len(src); i += block {
		mac := hmac.New(sha1.New, k.hmac)
		mac.Write(u32(first + uint32(i/block)))
		cipher.NewCBCEncrypter(b, mac.Sum(nil)[:16]).CryptBlocks(dst[i:i+block], src[i:i+block])
	}
	return dst
}

func TestNew(t *testing.T) {
	for _, bits := range []int{128, 256} {
		for _, block := range []int{512, 4096} {
			for _, wrap := range []Wrap{WrapAES192, Wrap3DES} {
				h, c, err := New(Options{KeyBits: bits, BlockSize: block, Wrap: wrap, Iterations: 1000,
					Passphrase: []byte("secret"), DataLength: 12345, Random: random(1)})
				require.NoError(t, err)
				content := h.Marshal()
				again := read(t, content)
				assert.Equal(t, h, again)
				assert.Equal(t, []any{bits, block, wrap, 1000, int64(12345), 1},
					[]any{again.KeyBits, again.BlockSize, again.Wrap, again.Iterations, again.DataLength, again.Passphrases})
				assert.EqualValues(t, map[int]int{512: 0x1DE00, 4096: 0x1E000}[block], again.DataOffset)

				src := fill(2, 20*block)
				stored := make([]byte, len(src))
				c.Encrypt(stored, src, 7)
				_, k, err := again.open([]byte("secret"))
				require.NoError(t, err)
				assert.Equal(t, reference(t, k, src, block, 7), stored)
				reader, err := again.Unlock([]byte("secret"))
				require.NoError(t, err)
				reader.Decrypt(stored, stored, 7)
				assert.Equal(t, src, stored)
				assert.Equal(t, block, reader.BlockSize())
			}
		}
	}
}

func TestNewDefaults(t *testing.T) {
	a, _, err := New(Options{KeyBits: 256, Passphrase: []byte("secret")})
	require.NoError(t, err)
	assert.Equal(t, []any{512, DefaultIterations, WrapAES192, int64(DataOffset)}, []any{a.BlockSize, a.Iterations, a.Wrap, a.DataOffset})
	b, _, err := New(Options{KeyBits: 256, Passphrase: []byte("secret"), Iterations: 1000})
	require.NoError(t, err)
	assert.NotEqual(t, a.UUID, b.UUID)
	_, k, err := a.open([]byte("secret"))
	require.NoError(t, err)
	_, l, err := b.open([]byte("secret"))
	require.NoError(t, err)
	assert.NotEqual(t, k, l)
}

func TestNewRefuses(t *testing.T) {
	good := Options{KeyBits: 128, Passphrase: []byte("x")}
	for _, change := range []func(*Options){
		func(o *Options) { o.KeyBits = 192 },
		func(o *Options) { o.BlockSize = 1000 },
		func(o *Options) { o.Iterations = 999 },
		func(o *Options) { o.Iterations = MaxIterations + 1 },
	} {
		o := good
		change(&o)
		_, _, err := New(o)
		require.ErrorIs(t, err, ErrUnsupported)
	}
	good.Passphrase = nil
	_, _, err := New(good)
	require.EqualError(t, err, "making an encryption header: the passphrase is empty")
	broken := errors.New("no entropy")
	for _, given := range []string{"", strings.Repeat("k", 16+20+16), strings.Repeat("k", 16+20+16+20)} {
		source := iotest.ErrReader(broken)
		_, _, err = New(Options{KeyBits: 128, Passphrase: []byte("x"), Random: &prefixed{strings.NewReader(given), source.Read}})
		require.ErrorIs(t, err, broken)
	}
}

// prefixed reads what is given, then from then.
type prefixed struct {
	given *strings.Reader
	then  func([]byte) (int, error)
}

func (p *prefixed) Read(b []byte) (int, error) {
	if p.given.Len() > 0 {
		return p.given.Read(b)
	}
	return p.then(b)
}

func TestChangePassphrase(t *testing.T) {
	for _, m := range images(t) {
		t.Run(m.Name, func(t *testing.T) {
			h, before := read(t, m.content), read(t, m.content).Marshal()
			require.ErrorIs(t, h.ChangePassphrase([]byte("not it"), []byte("next"), 0, nil), map[int]error{1: ErrUnsupported, 2: ErrPassphrase}[m.Version])
			assert.Equal(t, before, h.Marshal())
			if m.Version == 1 {
				return
			}
			require.ErrorIs(t, h.ChangePassphrase([]byte(m.Passphrase), nil, 0, nil), errEmpty)
			fewest := 2000
			if m.Name == "records" { // one image the long way, the others with fewer iterations
				fewest = DefaultIterations
				require.NoError(t, h.ChangePassphrase([]byte(m.Passphrase), []byte("next"), 0, nil))
			} else {
				require.NoError(t, h.ChangePassphrase([]byte(m.Passphrase), []byte("next"), fewest, random(9)))
			}

			changed := append(h.Marshal(), m.content[h.DataOffset:]...)
			again := read(t, changed)
			_, err := again.Unlock([]byte(m.Passphrase))
			require.ErrorIs(t, err, ErrPassphrase)
			for _, pass := range []string{"next", m.Also} {
				if pass == "" {
					continue
				}
				c, err := again.Unlock([]byte(pass))
				require.NoError(t, err)
				assert.Equal(t, m.SHA256, sum(plaintext(c, again, changed, m.Sparse)))
			}
			record := again.Records[len(again.Records)-1]
			p, err := decodeRecord(again.bytes(record))
			require.NoError(t, err)
			assert.EqualValues(t, max(fewest, m.Iterations), p.Iterations)
			assert.Equal(t, m.Wrap, wraps[p.WrapAlgorithm])
			clear(before[record.Offset:][:recordSize])
			after := again.Marshal()
			clear(after[record.Offset:][:recordSize])
			assert.Equal(t, before, after, "something outside the record changed")
		})
	}
}

// TestCipher compares with the standard library at random places, sizes and block numbers, over the edges of the kept
// IVs and of the counter.
func TestCipher(t *testing.T) {
	k := keys{fill(1, 32), fill(2, hmacKeySize)}
	rapid.Check(t, func(r *rapid.T) {
		block := rapid.SampledFrom([]int{512, 4096}).Draw(r, "block")
		c, err := newCipher(k, block)
		require.NoError(t, err)
		c.KeepIVs(rapid.SampledFrom([]uint32{0, 1, 300, keptBlocks, 1 << 31}).Draw(r, "kept"))
		around := rapid.SampledFrom([]uint32{0, 256, 300, keptBlocks, maxKept, 1 << 31}).Draw(r, "around")
		first := around + uint32(rapid.IntRange(-40, 40).Draw(r, "first"))
		src := fill(byte(first), block*rapid.IntRange(0, 600*512/block).Draw(r, "blocks"))
		want := reference(t, k, src, block, first)
		dst := make([]byte, len(src)+9)
		c.Encrypt(dst, src, first)
		require.True(t, bytes.Equal(want, dst[:len(src)]))
		require.Equal(t, make([]byte, 9), dst[len(src):])
		c.Decrypt(dst, dst[:len(src)], first)
		require.True(t, bytes.Equal(src, dst[:len(src)]))
	})
}

func TestDecryptSparse(t *testing.T) {
	c, err := newCipher(keys{fill(1, 16), fill(2, hmacKeySize)}, 512)
	require.NoError(t, err)
	src := fill(3, 64*512)
	stored := make([]byte, len(src))
	c.Encrypt(stored, src, 100)
	for _, hole := range []int{0, 1, 5, 6, 7, 40, 63} {
		clear(src[hole*512:][:512])
		clear(stored[hole*512:][:512])
	}
	copy(stored[20*512:], make([]byte, 511)) // all zeros but the last byte is data
	noise := make([]byte, 512)
	c.Decrypt(noise, stored[20*512:][:512], 120)
	copy(src[20*512:], noise)

	got := make([]byte, len(src))
	c.DecryptSparse(got, stored, 100)
	assert.True(t, bytes.Equal(src, got))
	c.DecryptSparse(stored, stored, 100)
	assert.True(t, bytes.Equal(src, stored))
	c.Decrypt(got, make([]byte, len(got)), 0)
	assert.False(t, isZero(got), "plain decryption takes zeros for ciphertext")
}

func TestMisuse(t *testing.T) {
	c, err := newCipher(keys{fill(1, 16), fill(2, hmacKeySize)}, 512)
	require.NoError(t, err)
	b := make([]byte, 2048)
	for _, op := range []func(dst, src []byte, first uint32){c.Encrypt, c.Decrypt, c.DecryptSparse} {
		assert.PanicsWithValue(t, "crypt: partial block", func() { op(b, b[:513], 0) })
		assert.PanicsWithValue(t, "crypt: output smaller than input", func() { op(b[:512], b, 0) })
		assert.NotPanics(t, func() { op(nil, nil, 0) })
	}
	assert.PanicsWithValue(t, "aescbc: input and output overlap", func() { c.Encrypt(b[16:], b[:1024], 0) })
}

func TestConcurrent(t *testing.T) {
	k := keys{fill(1, 32), fill(2, hmacKeySize)}
	c, err := newCipher(k, 512)
	require.NoError(t, err)
	c.KeepIVs(1000)
	src := fill(3, 2000*512)
	want := reference(t, k, src, 512, 0)
	got := make([]byte, len(src))
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker * 50; i < 2000; i += 400 {
				part := got[i*512 : (i+50)*512]
				c.Encrypt(part, src[i*512:(i+50)*512], uint32(i))
				plain := make([]byte, len(part))
				c.Decrypt(plain, part, uint32(i))
				assert.True(t, bytes.Equal(src[i*512:(i+50)*512], plain))
			}
		})
	}
	group.Wait()
	assert.True(t, bytes.Equal(want, got))
}

func TestWipe(t *testing.T) {
	pass := []byte("secret")
	h, c, err := New(Options{KeyBits: 256, Passphrase: pass, Iterations: 1000})
	require.NoError(t, err)
	assert.Equal(t, "secret", string(pass), "the passphrase belongs to the caller")
	data := make([]byte, 1024)
	c.Encrypt(data, data, 5)
	kept := c.kept[0].Load()
	require.False(t, isZero(kept[:]))
	c.Encrypt(data, data, 1<<30) // beyond the kept IVs
	c.Wipe()
	assert.Nil(t, c.scratch.Get(), "IVs of blocks that are not kept")
	assert.True(t, isZero(kept[:]))
	assert.Nil(t, c.kept[0].Load())
	assert.Panics(t, func() { c.Encrypt(data, data, 5) })
	assert.Panics(t, func() { c.Decrypt(data, data, 1<<30) })

	_, k, err := h.open(pass)
	require.NoError(t, err)
	require.False(t, isZero(k.aes))
	k.wipe()
	assert.Equal(t, keys{make([]byte, 32), make([]byte, hmacKeySize)}, k)
	_, err = h.Unlock(pass)
	require.NoError(t, err, "wiping a cipher leaves the header usable")
}
