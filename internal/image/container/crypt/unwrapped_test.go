package crypt

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKeysOpenTheImageTheyAreOf goes the way over a pipe.
func TestKeysOpenTheImageTheyAreOf(t *testing.T) {
	for _, bits := range []int{128, 256} {
		made := func(seed byte) (*Header, *Cipher) {
			h, c, err := New(Options{KeyBits: bits, BlockSize: 512, Iterations: 1000, Passphrase: []byte("secret"), Random: random(seed)})
			require.NoError(t, err)
			return h, c
		}
		h, c := made(1)
		k, err := h.Unwrap([]byte("secret"))
		require.NoError(t, err)
		_, err = h.Unwrap([]byte("Secret"))
		require.ErrorIs(t, err, ErrPassphrase)
		wire := bytes.Clone(k)
		k.Wipe()
		assert.Zero(t, bytes.Trim(k, "\x00"), "wiped")
		k = wire
		again := read(t, h.Marshal())
		again.DataLength = 1 << 20 // an image that has grown is the same
		opened, err := again.UnlockWith(k)
		require.NoError(t, err)
		src := fill(2, 4096)
		want, got := make([]byte, len(src)), make([]byte, len(src))
		c.Encrypt(want, src, 7)
		opened.Encrypt(got, src, 7)
		assert.Equal(t, want, got)

		for _, n := range []int{0, 32, len(k) - 1, len(k) + 1} {
			_, err = again.UnlockWith(append(bytes.Clone(k), 0)[:n])
			require.ErrorIs(t, err, ErrPassphrase, n)
		}
		other, _ := made(9)
		_, err = other.UnlockWith(k)
		require.ErrorIs(t, err, ErrPassphrase, "another image")
		require.NoError(t, again.ChangePassphrase([]byte("secret"), []byte("next"), 1000, random(3)))
		_, err = again.UnlockWith(k)
		require.ErrorIs(t, err, ErrPassphrase, "another passphrase")
	}
}
