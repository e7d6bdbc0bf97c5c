package container

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

func openSecret(t testing.TB, d *hostio.Dir, o OpenOptions) Image {
	t.Helper()
	o.Passphrase = []byte("secret")
	img, err := Open(d, "i", o)
	require.NoError(t, err)
	return img
}

// TestEncryptedContainers makes one of each format and looks at what is on the host.
func TestEncryptedContainers(t *testing.T) {
	for _, format := range []string{UDRW, UDSB, UDSP} {
		for _, cipher := range []string{AES128, AES256} {
			d := tempDir(t)
			e := secret(512)
			e.Cipher = cipher
			require.NoError(t, Create(d, "i", Spec{Format: format, Size: 6 << 20, Encryption: e}))
			h, err := EncryptionOf(d, "i")
			require.NoError(t, err)
			assert.Equal(t, cipher, fmt.Sprint("AES-", h.KeyBits))
			assert.EqualValues(t, crypt.DataOffset, h.DataOffset)
			assert.Equal(t, crypt.WrapAES192, h.Wrap)
			img := openSecret(t, d, OpenOptions{})
			assert.Equal(t, format, img.Format())
			data := bytes.Repeat([]byte("in the clear"), 200_000)
			kept := bytes.Clone(data)
			_, err = img.WriteAt(data, 1<<20-300)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(kept, data), "the caller's memory")
			require.NoError(t, img.Close())
			requireUnreadable(t, d)
			img = openSecret(t, d, OpenOptions{ReadOnly: true})
			got := make([]byte, 6<<20)
			_, err = img.ReadAt(got, 0)
			require.NoError(t, err)
			assert.True(t, isZero(got[:1<<20-300]))
			assert.True(t, bytes.Equal(data, got[1<<20-300:][:len(data)]))
			assert.True(t, isZero(got[1<<20-300+len(data):]))
			require.NoError(t, img.Close())
			_, err = Open(d, "i", OpenOptions{})
			require.ErrorIs(t, err, ErrPassphrase)
			_, err = Open(d, "i", OpenOptions{Passphrase: []byte("Secret")})
			require.ErrorIs(t, err, ErrPassphrase)
			require.NoError(t, Remove(d, "i"))
		}
	}
}

// requireUnreadable looks for the content and for permissions of others.
func requireUnreadable(t *testing.T, d *hostio.Dir) {
	files := 0
	require.NoError(t, filepath.WalkDir(d.Path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		fi, err := e.Info()
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, fi.Mode().Perm(), path)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.NotContains(t, string(b), "in the clear")
		return nil
	}))
	assert.Positive(t, files)
}

func TestEncryptionRefusals(t *testing.T) {
	d := tempDir(t)
	err := Create(d, "i", Spec{Format: ASIF, Size: 1 << 20, Encryption: secret(512)})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "encrypted ASIF")
	for _, e := range []Encryption{{Cipher: AES256}, {Cipher: "AES-192", Passphrase: []byte("p")}} {
		require.Error(t, Create(d, "i", Spec{Format: UDSB, Size: 1 << 20, Encryption: e}))
	}
	require.ErrorIs(t, Create(d, "i", Spec{Format: UDRW, Size: 4 << 40, Encryption: secret(512)}), errBadSize)
	list, err := d.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, list)
}

// TestEncryptedConcurrently lets workers share blocks of the encryption at their borders: none may undo another's change.
func TestEncryptedConcurrently(t *testing.T) {
	const workers, region = 8, 40*700 + 137
	for _, format := range []string{UDRW, UDSB, UDSP} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := tempDir(t)
			size := int64(workers*region/512+1) * 512
			switch format {
			case UDSB:
				require.NoError(t, createBundle(d, "i", Spec{BandSize: 12 << 10, Size: size, Encryption: secret(4096)}))
			case UDSP:
				require.NoError(t, createUDSP(d, "i", Spec{Size: size, BandSize: 512 * 3, Encryption: secret(4096)}))
			default:
				require.NoError(t, Create(d, "i", Spec{Format: format, Size: size, Encryption: secret(4096)}))
			}
			img := openSecret(t, d, OpenOptions{Sync: hostio.SyncFsync})
			var all sync.WaitGroup
			want := make([][]byte, workers)
			for w := range workers {
				want[w] = make([]byte, region)
				all.Go(func() { assert.NoError(t, worker(img, int64(w)*region, want[w], uint64(w))) })
			}
			all.Wait()
			require.NoError(t, img.Close())
			img = openSecret(t, d, OpenOptions{ReadOnly: true})
			for w := range workers {
				got := make([]byte, region)
				_, err := img.ReadAt(got, int64(w)*region)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want[w], got), "region %d", w)
			}
			require.NoError(t, img.Close())
		})
	}
}

// TestLongEncryptedTransfers cross regions of the file and bands, with padding at both kinds of ends, and allocate nothing that
// grows with them.
func TestLongEncryptedTransfers(t *testing.T) {
	for _, format := range []string{UDRW, UDSB, UDSP} {
		d := tempDir(t)
		require.NoError(t, Create(d, "i", Spec{Format: format, Size: 20 << 20, Encryption: secret(512)}))
		img := openSecret(t, d, OpenOptions{Cache: hostio.CacheDirect})
		data := pattern(9<<20-700, 1)
		for _, off := range []int64{0, 511, 1<<20 + 200, 3<<20 + 512*7} {
			for _, n := range []int{len(data), 5 << 20, 1<<20 - 512*7, 700} {
				padder := img.(interface {
					WritePadded(p []byte, off int64, pad int) (int, error)
				})
				k, err := padder.WritePadded(data[:n], off, 3000)
				if errors.Is(err, errors.ErrUnsupported) { // data and padding in two bands
					k, err = img.WriteAt(append(bytes.Clone(data[:n]), make([]byte, 3000)...), off)
					k -= 3000
				}
				require.NoError(t, err)
				require.Equal(t, n, k)
				got := make([]byte, n+3000)
				_, err = img.ReadAt(got, off)
				require.NoError(t, err)
				require.True(t, bytes.Equal(data[:n], got[:n]), "%s %d at %d", format, n, off)
				require.True(t, isZero(got[n:]))
			}
		}
		small := data[:64<<10]
		assert.LessOrEqual(t, testing.AllocsPerRun(50, func() {
			_, _ = img.WriteAt(small, 1<<20)
			_, _ = img.ReadAt(small, 1<<20)
		}), 2.0, format)
		require.NoError(t, img.Close())
	}
}

// TestDiskFullWhileEncrypting tells how many bytes of the caller's are there.
func TestDiskFullWhileEncrypting(t *testing.T) {
	for _, format := range []string{UDSB, UDSP} {
		faults := &hostiotest.Faults{}
		d := tempDir(t, hostio.WithHook(faults))
		require.NoError(t, Create(d, "i", Spec{Format: format, Size: 8 << 20, BandSize: 1 << 20, Encryption: secret(512)}))
		img := openSecret(t, d, OpenOptions{})
		faults.NoSpaceAfter(1<<20 + 1000)
		data := pattern(3<<20, 2)
		n, err := img.WriteAt(data, 100)
		require.ErrorIs(t, err, syscall.ENOSPC)
		assert.LessOrEqual(t, n, 1<<20+1000)
		faults.NoSpaceAfter(-1)
		got := make([]byte, n)
		_, err = img.ReadAt(got, 100)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data[:n], got))
		_, err = img.WriteAt(data, 100)
		require.NoError(t, err)
		require.NoError(t, img.Close())
	}
	faults := &hostiotest.Faults{}
	d := tempDir(t, hostio.WithHook(faults))
	faults.NoSpaceAfter(1 << 20)
	require.ErrorIs(t, Create(d, "i", Spec{Format: UDRW, Size: 4 << 20, Encryption: secret(512)}), syscall.ENOSPC)
	list, err := d.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, list, "what was made is deleted")
}
