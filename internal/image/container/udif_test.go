package container

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// appleImage is a line of the README of the images made by Apple's tools.
type appleImage struct{ path, format, passphrase, sum string }

const appleImages = "../../../../shared/images"

func applesImages(t testing.TB) (list []appleImage) {
	page, err := os.ReadFile(filepath.Join(appleImages, "README.md"))
	if err != nil {
		t.Skipf("no images made by Apple's tools: %v", err)
	}
	for line := range strings.Lines(string(page)) {
		c := strings.Split(line, "|")
		if len(c) < 7 || !strings.Contains(c[5], "`") || strings.Contains(c[1], "`") || strings.Contains(c[1], "file") {
			continue
		}
		list = append(list, appleImage{strings.TrimSpace(c[1]), strings.TrimSpace(c[2]), strings.TrimSpace(c[3]), strings.Trim(c[5], " `")})
	}
	require.GreaterOrEqual(t, len(list), 9, "the README was not understood")
	return list
}

// requireSum reads the whole image, and then pieces of every size from anywhere.
func requireSum(t *testing.T, img Image, want string) {
	device := make([]byte, img.Size())
	_, err := img.ReadAt(device, 0)
	require.NoError(t, err)
	got := sha256.Sum256(device)
	require.Equal(t, want, hex.EncodeToString(got[:]))
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		off := r.Int64N(img.Size())
		p := make([]byte, 1+r.IntN(1<<(1+r.IntN(20))))
		n, err := img.ReadAt(p, off)
		if int64(n) < int64(len(p)) {
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, img.Size(), off+int64(n))
		} else {
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(device[off:][:n], p[:n]), "%d bytes at %d", n, off)
	}
}

func requireUnchangeable(t *testing.T, img Image) {
	_, err := img.WriteAt([]byte{1}, 0)
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, img.Discard(0, 512), ErrReadOnly)
	require.ErrorIs(t, img.Resize(1<<20), ErrReadOnly)
	_, err = img.Compact(nil)
	require.Error(t, err)
	require.NoError(t, img.Flush())
}

func TestApplesUDIFImages(t *testing.T) {
	for _, a := range applesImages(t) {
		if a.passphrase != "-" || !strings.HasSuffix(a.path, ".dmg") {
			continue
		}
		t.Run(a.path, func(t *testing.T) {
			d, err := hostio.OpenDir(filepath.Join(appleImages, filepath.Dir(a.path)))
			require.NoError(t, err)
			defer d.Close()
			name := filepath.Base(a.path)
			_, err = Open(d, name, OpenOptions{})
			require.ErrorIs(t, err, errors.ErrUnsupported)
			require.ErrorContains(t, err, "opening for writing")
			img, err := Open(d, name, OpenOptions{ReadOnly: true})
			require.NoError(t, err)
			assert.Equal(t, a.format, img.Format())
			requireSum(t, img, a.sum)
			requireUnchangeable(t, img)
			require.NoError(t, img.Evict(0, img.Size()))
			u, err := img.Usage()
			require.NoError(t, err)
			require.NoError(t, img.Close())
			_, err = img.ReadAt(make([]byte, 1), 0)
			require.ErrorIs(t, err, fs.ErrClosed)
			again, err := UsageOf(d, name)
			require.NoError(t, err)
			assert.Equal(t, u, again)
			assert.Positive(t, u.Apparent)
			found, err := Verify(d, name, OpenOptions{})
			require.NoError(t, err)
			assert.Empty(t, found)
		})
	}
}

func TestVerifyFindsDamageInUDIF(t *testing.T) {
	for _, a := range applesImages(t) {
		if a.format != "UDZO" {
			continue
		}
		file, err := os.ReadFile(filepath.Join(appleImages, a.path))
		require.NoError(t, err)
		d := tempDir(t)
		file[len(file)/3] ^= 1
		require.NoError(t, d.WriteFileAtomic("a.dmg", file, 0o600))
		found, err := Verify(d, "a.dmg", OpenOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, found, a.path)
		assert.True(t, found[0].Fatal)
	}
}
