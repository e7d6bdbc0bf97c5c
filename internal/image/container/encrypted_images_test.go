package container

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

func TestApplesEncryptedImages(t *testing.T) {
	tried := 0
	for _, a := range applesImages(t) {
		if a.passphrase == "-" {
			continue
		}
		tried++
		t.Run(a.path, func(t *testing.T) {
			d, err := hostio.OpenDir(filepath.Join(appleImages, filepath.Dir(a.path)))
			require.NoError(t, err)
			defer d.Close()
			name := filepath.Base(a.path)
			pass := []byte(a.passphrase)
			img, err := Open(d, name, OpenOptions{ReadOnly: true, Passphrase: pass})
			require.NoError(t, err)
			assert.Equal(t, a.passphrase, string(pass), "the caller's is left as it was")
			assert.Contains(t, a.format, img.Format())
			requireSum(t, img, a.sum)
			requireUnchangeable(t, img)
			require.NoError(t, img.Evict(0, img.Size()))
			require.NoError(t, img.Close())
			found, err := Verify(d, name, OpenOptions{Passphrase: pass})
			require.NoError(t, err)
			assert.Empty(t, found)
			if tried == 1 || os.Getenv("DMGBENCH_LONG") != "" { // each guess takes all rounds of the key derivation
				requireLocked(t, d, name, pass)
			}
			u, err := UsageOf(d, name)
			require.NoError(t, err)
			assert.Positive(t, u.Apparent)
		})
	}
	require.Equal(t, 2, tried)
}

// requireLocked opens with a wrong passphrase and with none.
func requireLocked(t *testing.T, d *hostio.Dir, name string, pass []byte) {
	_, err := Open(d, name, OpenOptions{ReadOnly: true})
	require.ErrorIs(t, err, ErrPassphrase)
	require.ErrorContains(t, err, "no passphrase given")
	_, err = Open(d, name, OpenOptions{ReadOnly: true, Passphrase: append(bytes.Clone(pass), '\n')})
	require.ErrorIs(t, err, ErrPassphrase)
	require.ErrorContains(t, err, "wrong passphrase")
	h, err := EncryptionOf(d, name)
	require.NoError(t, err)
	assert.Equal(t, 2, h.Version)
	assert.Equal(t, 1, h.Passphrases)
}

func newCipher(t *testing.T, block int, length int64) (*crypt.Header, *crypt.Cipher) {
	h, c, err := crypt.New(crypt.Options{KeyBits: 256, BlockSize: block, Passphrase: []byte("secret"), Iterations: 1000, DataLength: length})
	require.NoError(t, err)
	return h, c
}

// TestEncryptedBundle reads a bundle laid out as docs say: the header in the token, block numbers from 0 in
// every band, bands that end early or are missing, and blocks of zeros that were never written.
func TestEncryptedBundle(t *testing.T) {
	for _, block := range []int{512, 4096} {
		d := tempDir(t)
		i := info{Version: 1, BandSize: 1 << 20, Size: 4<<20 + 4096}
		require.NoError(t, createBundle(d, "b", Spec{BandSize: i.BandSize, Size: i.Size}))
		h, c := newCipher(t, block, 0)
		require.NoError(t, d.WriteFileAtomic("b/token", h.Marshal(), 0o600))
		device := make([]byte, i.Size)
		for band, n := range map[int64]int{0: 1 << 20, 1: 64 << 10, 3: 512 << 10, 4: 4096} {
			plain := pattern(n, uint64(band))
			stored := make([]byte, n)
			c.Encrypt(stored, plain, 0)
			if band == 3 {
				clear(stored[8192:65536])
				clear(plain[8192:65536])
			}
			copy(device[band<<20:], plain)
			require.NoError(t, d.WriteFileAtomic("b/bands/"+files.BandName(band), stored, 0o600))
		}
		img, err := Open(d, "b", OpenOptions{ReadOnly: true, Passphrase: []byte("secret")})
		require.NoError(t, err)
		assert.Equal(t, UDSB, img.Format())
		sum := sha256.Sum256(device)
		requireSum(t, img, hex.EncodeToString(sum[:]))
		_, err = img.WriteAt([]byte{1}, 0)
		require.ErrorIs(t, err, ErrReadOnly)
		u, err := img.Usage()
		require.NoError(t, err)
		assert.Equal(t, 4, u.Bands)
		require.NoError(t, img.Close())
		requireLocked(t, d, "b", []byte("secret"))
		found, err := Verify(d, "b", OpenOptions{})
		require.NoError(t, err)
		assert.Empty(t, found)

		require.NoError(t, d.WriteFileAtomic("b/bands/1", []byte("cut"), 0o600))
		img, err = Open(d, "b", OpenOptions{ReadOnly: true, Passphrase: []byte("secret")})
		require.NoError(t, err)
		_, err = img.ReadAt(make([]byte, 512), 1<<20)
		require.ErrorIs(t, err, ErrCorrupt)
		require.NoError(t, img.Close())
	}
}

// TestEncryptedSparseImage puts an image with bands never written under the encryption.
func TestEncryptedSparseImage(t *testing.T) {
	d := tempDir(t)
	require.NoError(t, Create(d, "plain", Spec{Format: UDSP, Size: 8 << 20}))
	img, err := Open(d, "plain", OpenOptions{})
	require.NoError(t, err)
	device := make([]byte, 8<<20)
	copy(device[5<<20:], pattern(1<<20, 3))
	_, err = img.WriteAt(device[5<<20:][:1<<20], 5<<20)
	require.NoError(t, err)
	require.NoError(t, img.Close())
	inner, err := d.ReadFile("plain", 16<<20)
	require.NoError(t, err)
	h, c := newCipher(t, 512, int64(len(inner)))
	encrypt := func(plain []byte, sparse bool) []byte {
		out := make([]byte, len(plain))
		c.Encrypt(out, plain, 0)
		for at := 0; sparse && at < len(plain); at += 512 {
			if isZero(plain[at:][:512]) {
				clear(out[at:][:512])
			}
		}
		return append(h.Marshal(), out...)
	}
	require.NoError(t, d.WriteFileAtomic("e", encrypt(inner, true), 0o600))
	img, err = Open(d, "e", OpenOptions{ReadOnly: true, Passphrase: []byte("secret"), Cache: hostio.CacheDirect})
	require.NoError(t, err)
	assert.Equal(t, UDSP, img.Format())
	sum := sha256.Sum256(device)
	requireSum(t, img, hex.EncodeToString(sum[:]))
	require.NoError(t, img.Close())
	requireLocked(t, d, "e", []byte("secret"))

	// The header may say nothing, as the token of a bundle does: the image says how long it is.
	h.DataLength = 0
	for _, readOnly := range []bool{true, false, true} { // writing brings the header up to date
		if readOnly {
			require.NoError(t, d.WriteFileAtomic("e", encrypt(inner, true), 0o600))
		}
		img, err = Open(d, "e", OpenOptions{ReadOnly: readOnly, Passphrase: []byte("secret")})
		require.NoError(t, err)
		requireSum(t, img, hex.EncodeToString(sum[:]))
		require.NoError(t, img.Flush())
		require.NoError(t, img.Close())
		now, err := EncryptionOf(d, "e")
		require.NoError(t, err)
		assert.Equal(t, map[bool]int64{true: 0, false: int64(len(inner))}[readOnly], now.DataLength)
	}
	require.NoError(t, d.WriteFileAtomic("nothing", encrypt(device[:len(inner)], false), 0o600))
	_, err = Open(d, "nothing", OpenOptions{ReadOnly: true, Passphrase: []byte("secret")})
	require.ErrorContains(t, err, "file of 0 bytes")
	h.DataLength = int64(len(inner))

	// What is inside is probed by its content: another header there is not an image, and a raw device has to be whole.
	cut := encrypt(device[:len(inner)], false)
	require.NoError(t, d.WriteFileAtomic("cut", cut[:len(cut)-512], 0o600))
	_, err = Open(d, "cut", OpenOptions{ReadOnly: true, Passphrase: []byte("secret")})
	require.ErrorIs(t, err, ErrCorrupt)
	copy(device, "shdw")
	require.NoError(t, d.WriteFileAtomic("asif", encrypt(device[:len(inner)], false), 0o600))
	_, err = Open(d, "asif", OpenOptions{ReadOnly: true, Passphrase: []byte("secret")})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestOldEncryption reads an image of version 1, whose data may end inside a block.
func TestOldEncryption(t *testing.T) {
	made, err := os.ReadFile("crypt/testdata/manifest.json")
	require.NoError(t, err)
	tried := 0
	for _, m := range oldImages(t, made) {
		d := tempDir(t)
		require.NoError(t, d.WriteFileAtomic("old.dmg", m.content, 0o600))
		img, err := Open(d, "old.dmg", OpenOptions{ReadOnly: true, Passphrase: []byte(m.Passphrase)})
		if e, ok := errors.AsType[*UnsupportedError](err); ok {
			require.Contains(t, e.Found, "no multiple", m.Name)
			continue
		}
		require.NoError(t, err, m.Name)
		tried++
		requireSum(t, img, m.SHA256)
		require.NoError(t, img.Close())
	}
	require.Positive(t, tried)
}

// TestOldEncryptedBundle lays an image of version 1 out as a bundle: its trailer is the token, its data the first band.
func TestOldEncryptedBundle(t *testing.T) {
	const trailer, block = 1276, 4096
	made, err := os.ReadFile("crypt/testdata/manifest.json")
	require.NoError(t, err)
	tried := 0
	for _, m := range oldImages(t, made) {
		data := m.content[:len(m.content)-trailer]
		if len(data)%block != 0 {
			continue
		}
		tried++
		d := tempDir(t)
		require.NoError(t, createBundle(d, "b", Spec{BandSize: 8 << 20, Size: int64(len(data))}))
		require.NoError(t, d.WriteFileAtomic("b/token", m.content[len(data):], 0o600))
		require.NoError(t, d.WriteFileAtomic("b/bands/0", data, 0o600))
		img, err := Open(d, "b", OpenOptions{ReadOnly: true, Passphrase: []byte(m.Passphrase)})
		require.NoError(t, err, m.Name)
		requireSum(t, img, m.SHA256)
		require.NoError(t, img.Close())
		_, err = Open(d, "b", OpenOptions{Passphrase: []byte(m.Passphrase)})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		_, err = Open(d, "b", OpenOptions{ReadOnly: true, Passphrase: []byte("another")})
		require.ErrorIs(t, err, ErrPassphrase)
	}
	require.Positive(t, tried)
}

type oldImage struct {
	Name, Passphrase, SHA256 string
	Version                  int
	content                  []byte
}

func oldImages(t *testing.T, manifest []byte) (list []oldImage) {
	var all []oldImage
	require.NoError(t, json.Unmarshal(manifest, &all))
	for _, m := range all {
		if m.Version != 1 {
			continue
		}
		f, err := os.Open("crypt/testdata/" + m.Name + ".gz")
		require.NoError(t, err)
		defer f.Close()
		unzipped, err := gzip.NewReader(f)
		require.NoError(t, err)
		m.content, err = io.ReadAll(unzipped)
		require.NoError(t, err)
		list = append(list, m)
	}
	require.NotEmpty(t, list)
	return list
}

// TestEncryptedGrowsAsFarAsItCounts: a file whose blocks are counted in 32 bits cannot hold more, however it came to its size.
func TestEncryptedGrowsAsFarAsItCounts(t *testing.T) {
	const size = 3 << 40
	for _, format := range []string{UDSP, UDRW} { // an UDRW that did not refuse would be filled with zeros up to there
		d := tempDir(t)
		spec := Spec{Format: format, Size: 1 << 20, Encryption: Encryption{Cipher: AES128, Passphrase: []byte("secret"), Iterations: 1000}}
		require.NoError(t, Create(d, "x", spec))
		img, err := Open(d, "x", OpenOptions{Passphrase: spec.Encryption.Passphrase})
		require.NoError(t, err)
		require.ErrorIs(t, img.Resize(size), errBadSize, format)
		require.NoError(t, img.Resize(2<<20), "nothing has happened")
		require.NoError(t, img.Close())
	}
}
