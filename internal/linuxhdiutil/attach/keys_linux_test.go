package attach

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/system/hostio"
)

// TestKeysReachTheServer attaches an encrypted image by keys that were derived before.
func TestKeysReachTheServer(t *testing.T) {
	privileged(t)
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	const name = "image.sparsebundle"
	pass := []byte("a passphrase to look for")
	spec := container.Spec{Format: container.UDSB, Size: 64 << 20, Encryption: container.Encryption{Cipher: container.AES256, Passphrase: pass, Iterations: 1000}}
	require.NoError(t, container.Create(dir, name, spec))
	keys, err := container.UnwrapKeys(dir, name, pass)
	require.NoError(t, err)
	_, err = container.UnwrapKeys(dir, name, []byte("another"))
	require.ErrorIs(t, err, container.ErrPassphrase)
	_, err = container.UnwrapKeys(dir, name, nil)
	require.ErrorIs(t, err, container.ErrPassphrase)
	img, err := container.Open(dir, name, container.OpenOptions{Keys: keys})
	require.NoError(t, err)
	require.NoError(t, exfat.Format(img, exfat.FormatOptions{Label: "Test"}))
	require.NoError(t, img.Close())
	path, data := filepath.Join(dir.Path(), name), noise(1<<20)
	for i := range 2 {
		a, err := attachRequest(t.Context(), Request{Image: path, Keys: keys})
		require.NoError(t, err)
		assert.True(t, a.Encrypted)
		file := filepath.Join(a.MountPoint, "file")
		if i == 0 {
			put(t, file, data)
		}
		requireFile(t, file, data)
		for _, of := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(a.HelperPID), of))
			require.NoError(t, err)
			assert.NotContains(t, string(text), string(pass), of)
		}
		limits, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(a.HelperPID), "limits"))
		require.NoError(t, err)
		assert.Regexp(t, `Max core file size +0 +0 `, string(limits), "no dump has the keys")
		detach(t, a)
	}
	keys.Wipe()
	_, err = attachRequest(t.Context(), Request{Image: path, Keys: keys})
	require.Error(t, err)
}
