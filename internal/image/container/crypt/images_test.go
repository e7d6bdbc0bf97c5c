package crypt

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made is an image that testdata/make.py made from the description of the formats, without any code of this package.
type made struct {
	Name, Passphrase, Also string
	Version, Bits, Block   int
	Wrap                   Wrap
	Iterations, Records    int
	Length                 int64
	SHA256                 string
	Sparse                 bool
	content                []byte
}

func images(t testing.TB) []made {
	t.Helper()
	all, err := unzipped()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	all = slices.Clone(all)
	for i := range all {
		all[i].content = bytes.Clone(all[i].content)
	}
	return all
}

// unzipped are the images; they are read once.
var unzipped = sync.OnceValues(func() (all []made, err error) {
	text, err := os.ReadFile("testdata/manifest.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	for i := 0; i < len(all) && err == nil; i++ {
		all[i].content, err = unzip(filepath.Join("testdata", all[i].Name+".gz"))
	}
	return all, err
})

func unzip(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// read reads the header of content.
func read(t testing.TB, content []byte) *Header {
	t.Helper()
	h, err := ReadHeader(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	return h
}

// plaintext decrypts all data of the image, filling a short last block up as the documentation of DataLength says.
func plaintext(c *Cipher, h *Header, content []byte, sparse bool) []byte {
	data := make([]byte, h.CipherLength(h.DataLength))
	copy(data, content[h.DataOffset:])
	if sparse {
		c.DecryptSparse(data, data, 0)
	} else {
		c.Decrypt(data, data, 0)
	}
	return data[:h.DataLength]
}

func sum(b []byte) string {
	digest := sha256.Sum256(b)
	return hex.EncodeToString(digest[:])
}

func TestImagesMadeByOthers(t *testing.T) {
	for _, m := range images(t) {
		t.Run(m.Name, func(t *testing.T) {
			h := read(t, m.content)
			assert.Equal(t, m.Version, h.Version)
			assert.Equal(t, m.Bits, h.KeyBits)
			assert.Equal(t, m.Block, h.BlockSize)
			assert.Equal(t, m.Length, h.DataLength)
			assert.Len(t, h.Records, m.Records)
			if m.Also == "" {
				assert.Equal(t, m.Iterations, h.Iterations)
				assert.Equal(t, m.Wrap, h.Wrap)
				assert.Equal(t, 1, h.Passphrases)
			}
			require.NoError(t, h.Fits(int64(len(m.content))))
			require.ErrorIs(t, h.Fits(int64(len(m.content))-1), ErrDamaged)
			for _, pass := range []string{m.Passphrase, m.Also} {
				if pass == "" {
					continue
				}
				c, err := h.Unlock([]byte(pass))
				require.NoError(t, err)
				assert.Equal(t, m.SHA256, sum(plaintext(c, h, m.content, m.Sparse)))
			}
			if m.Version == 2 {
				assert.Equal(t, m.content[:h.DataOffset], h.Marshal())
			} else {
				assert.Equal(t, m.content[m.Length:], h.Marshal())
			}
		})
	}
}

func TestWrongPassphrase(t *testing.T) {
	for _, m := range images(t) {
		h := read(t, m.content)
		tries := 3
		if m.Version == 2 { // one round is enough to be wrong, and leaves time to meet a padding that fits: one in 256 does
			tries = 1000
			for _, record := range h.Records {
				if record.Kind == passphrase {
					copy(h.bytes(record)[8:], u32(1))
				}
			}
		}
		for i := range tries {
			c, err := h.Unlock(fmt.Appendf(nil, "%s%d", m.Passphrase, i))
			require.ErrorIs(t, err, ErrPassphrase)
			require.EqualError(t, err, "unlocking the image: wrong passphrase")
			require.Nil(t, c)
		}
		_, err := h.Unlock(nil)
		require.ErrorIs(t, err, ErrPassphrase)
	}
}

func TestTokenOfVersionOne(t *testing.T) {
	for _, m := range images(t) {
		if m.Version != 1 {
			continue
		}
		h := read(t, m.content[len(m.content)-TrailerSize:])
		assert.Zero(t, h.DataLength)
		_, err := h.Unlock([]byte(m.Passphrase))
		require.NoError(t, err)
	}
}

// TestImagesOfApple reads what hdiutil wrote.
func TestImagesOfApple(t *testing.T) {
	for _, test := range []struct {
		name, pass string
		bits       int
		wrap       Wrap
		iterations int
		check      func(t *testing.T, plain []byte)
	}{
		{"dmgwiz/input_aes256.dmg", "test123", 256, Wrap3DES, 232558, func(t *testing.T, plain []byte) {
			assert.Equal(t, "koly", string(plain[len(plain)-512:][:4])) // a compressed image lies inside
		}},
		{"fstool/encrcdsa_aes128_fat12_hunter2.dmg", "hunter2", 128, WrapAES192, 625000, func(t *testing.T, plain []byte) {
			assert.Equal(t, "cee60f919a4532418d3790a65f00683fd36bbf0634d414502de81a677aded42b", sum(plain))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("../../../../../shared/images", test.name))
			if err != nil {
				t.Skipf("no image of Apple's: %v", err)
			}
			h := read(t, content)
			assert.Equal(t, test.bits, h.KeyBits)
			assert.Equal(t, test.wrap, h.Wrap)
			assert.Equal(t, test.iterations, h.Iterations)
			assert.Equal(t, 512, h.BlockSize)
			assert.Equal(t, content[:h.DataOffset], h.Marshal())
			require.NoError(t, h.Fits(int64(len(content))))
			c, err := h.Unlock([]byte(test.pass))
			require.NoError(t, err)
			test.check(t, plaintext(c, h, content, false))
			_, err = h.Unlock([]byte(test.pass + "\n"))
			require.ErrorIs(t, err, ErrPassphrase)
		})
	}
}

// drawn is the function stream of testdata/make.py: n bytes for a label.
func drawn(label string, n int) []byte {
	var b []byte
	for i := 0; len(b) < n; i++ {
		digest := sha256.Sum256(fmt.Appendf(nil, "%s %d", label, i))
		b = append(b, digest[:]...)
	}
	return b[:n]
}

// TestWritesWhatOthersWrite makes the images of testdata anew, from the same random bytes: header and data come out as
// the other program wrote them, but for the version in the UUID and the filler behind the last byte.
func TestWritesWhatOthersWrite(t *testing.T) {
	for _, m := range images(t) {
		if m.Version != 2 || m.Records != 1 || m.Sparse {
			continue
		}
		var source bytes.Buffer
		for _, part := range []struct {
			name string
			n    int
		}{{" aes", m.Bits / 8}, {" mac", hmacKeySize}, {" uuid", 16}, {" salt", saltSize}, {" iv", wrapIVSize}} {
			source.Write(drawn(m.Name+part.name, part.n))
		}
		h, c, err := New(Options{KeyBits: m.Bits, BlockSize: m.Block, Passphrase: []byte(m.Passphrase), Iterations: m.Iterations,
			Wrap: m.Wrap, DataLength: m.Length, Random: &source})
		require.NoError(t, err)
		assert.Zero(t, source.Len(), "random bytes left over")
		data := bytes.Repeat([]byte{0x5a}, int(h.CipherLength(m.Length)))
		copy(data, drawn(m.Name+" data", int(m.Length)))
		c.Encrypt(data, data, 0)
		written, expected := append(h.Marshal(), data...), bytes.Clone(m.content)
		for _, b := range [][]byte{written, expected} {
			b[0x24+6] &= 0x0f
			b[0x24+8] &= 0x3f
		}
		assert.True(t, bytes.Equal(expected, written), m.Name)
	}
}
