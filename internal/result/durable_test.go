package result

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What file systems of a Mac answer when they are asked for more than fsync(2).
func TestFlushedAsFarAsTheFileSystemCan(t *testing.T) {
	for name, c := range map[string]struct {
		full, plain, want error
		asked             bool
	}{
		"APFS":             {nil, nil, nil, false},
		"exFAT":            {syscall.ENOTTY, nil, nil, true},
		"SMB":              {syscall.ENOTSUP, nil, nil, true},
		"FUSE":             {syscall.EINVAL, nil, nil, true},
		"exFAT, full disk": {syscall.ENOTTY, syscall.ENOSPC, syscall.ENOSPC, true},
		"a failing disk":   {syscall.EIO, nil, syscall.EIO, false},
	} {
		asked := false
		full := c.full
		if full != nil {
			full = &fs.PathError{Op: "sync", Path: "journal.jsonl", Err: full}
		}
		err := flushFully(func() error { return full }, func() error { asked = true; return c.plain })
		assert.ErrorIs(t, err, c.want, name)
		assert.Equal(t, c.asked, asked, name)
	}
}

func TestPlainSync(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	require.NoError(t, plainSync(f))
	require.NoError(t, durable{f}.Sync())
	require.NoError(t, f.Close())
	assert.Error(t, plainSync(f))
	assert.ErrorIs(t, durable{f}.Sync(), os.ErrClosed)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	assert.Error(t, durable{write}.Sync(), "a pipe has no disk")
}
