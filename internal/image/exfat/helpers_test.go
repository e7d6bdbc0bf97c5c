package exfat

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/blockdev/blockdevtest"
)

var epoch = time.Date(2026, 3, 23, 12, 34, 57, 890_000_000, time.UTC)

func fixedNow() time.Time { return epoch }

type tester interface {
	require.TestingT
	Helper()
}

func mount(t tester, dev blockdev.Device) *Volume {
	t.Helper()
	v, err := Mount(dev, MountOptions{Now: fixedNow})
	require.NoError(t, err)
	return v
}

func newVolume(t tester, size int64, o FormatOptions) (*blockdevtest.MemDevice, *Volume) {
	t.Helper()
	dev := blockdevtest.NewMem(size)
	require.NoError(t, Format(dev, o))
	return dev, mount(t, dev)
}

// noise is n bytes that depend on the seed alone.
func noise(seed uint64, n int) []byte {
	key := [16]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}
	c, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err)
	}
	b := make([]byte, n)
	cipher.NewCTR(c, make([]byte, aes.BlockSize)).XORKeyStream(b, b)
	return b
}

func writeFile(t tester, v *Volume, path string, data []byte) {
	t.Helper()
	f, err := v.Create(path, int64(len(data)))
	require.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func readFile(t tester, v *Volume, path string) []byte {
	t.Helper()
	f, err := v.Open(path)
	require.NoError(t, err)
	b := make([]byte, f.Size())
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

func requireSame(t tester, want, got []byte, what string) {
	t.Helper()
	if !bytes.Equal(want, got) {
		at := 0
		for at < min(len(want), len(got)) && want[at] == got[at] {
			at++
		}
		require.Failf(t, "different bytes", "%s: lengths %d and %d, first difference at %d", what, len(want), len(got), at)
	}
}

// checkMounted verifies a mounted volume as it is on the device, after a Sync. That it is marked dirty is no finding.
func checkMounted(v *Volume) (*Report, error) {
	if err := v.quiesce(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	r, err := Check(v.dev, CheckOptions{})
	if err == nil {
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Kind == DirtyFlag && !v.state.Dirty })
	}
	return r, err
}
