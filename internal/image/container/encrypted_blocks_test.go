package container

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limitedFile is a file in memory whose transfers fail at a byte.
type limitedFile struct {
	b                     []byte
	readLimit, writeLimit int64
}

func (f *limitedFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p[:max(0, min(int64(len(p)), f.readLimit-off))], f.b[off:])
	if n < len(p) {
		return n, errBroken
	}
	return n, nil
}

func (f *limitedFile) WriteAt(p []byte, off int64) (int, error) {
	n := copy(f.b[off:], p[:max(0, min(int64(len(p)), f.writeLimit-off))])
	if n < len(p) {
		return n, errBroken
	}
	return n, nil
}

// A failed transfer of encrypted blocks reports the bytes that were moved: of a write whole blocks, up to the first that was
// not, and of a read whole regions.
func TestFailedEncryptedTransfersCountBytes(t *testing.T) {
	const size, far = 5 << 20, 1 << 40
	_, cipher := newCipher(t, 512, size)
	e := newEncrypter(cipher)
	f := &limitedFile{b: make([]byte, size), readLimit: far, writeLimit: far}
	file := cipherFile{f: f, end: size}
	content := pattern(size, 1)
	_, err := e.write(file, content, 0, 0)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		off         int64
		n, pad      int
		read, write int64 // limits of the file
		want        int
	}{
		"write of whole blocks":               {0, 8192, 0, far, 4096, 4096},
		"a block that is written in part":     {0, 8192, 0, far, 4096 + 511, 4096},
		"the first block":                     {512, 1024, 0, far, 1023, 0},
		"after the start of a block":          {100, 8000, 0, far, 1024, 924},
		"in the first block":                  {100, 8000, 0, far, 511, 0},
		"in the padding":                      {0, 1000, 3000, far, 2048, 1000},
		"the second region":                   {100, 3 << 20, 0, far, 1<<20 + 1024, 1<<20 + 924},
		"the end of a region":                 {0, 3 << 20, 0, far, 1 << 20, 1 << 20},
		"reading the first edge of a write":   {100, 8000, 0, 0, far, 0},
		"reading the last edge of a write":    {0, 8000, 0, 7680, far, 0},
		"read of whole blocks":                {0, 8192, 0, 4096, 0, 0},
		"the last block of a read":            {0, 8000, 0, 7680, 0, 0},
		"the last block after a partial one":  {100, 8000, 0, 7680, 0, 0},
		"the first block of a read":           {100, 8000, 0, 511, 0, 0},
		"the third region of a read":          {100, 4 << 20, 0, 2<<20 + 5, 0, 2<<20 - 100},
		"the whole of the regions before one": {0, 4 << 20, 0, 3 << 20, 0, 3 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			f.readLimit, f.writeLimit = c.read, c.write
			p := pattern(c.n, 2)
			var n int
			var err error
			if c.write > 0 {
				n, err = e.write(file, p, c.off, c.pad)
			} else {
				n, err = e.read(file, p, c.off)
			}
			require.ErrorIs(t, err, errBroken)
			assert.Equal(t, c.want, n)
			f.readLimit, f.writeLimit = far, far
			got := make([]byte, n)
			_, err = e.read(file, got, c.off)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(p[:n], got), "the bytes that count as moved are moved")
			_, err = e.write(file, content, 0, 0)
			require.NoError(t, err)
		})
	}
}
