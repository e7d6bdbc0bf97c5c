package inprocess_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/system/hostio"
)

func TestXattr(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		c, err := inprocess.New(nil).Create(t.Context(), dir, "image", engine.Spec{Format: format, Size: 8 << 20, Cache: hostio.CacheBuffered})
		require.NoError(t, err)
		const name = "com.apple.diskimages.recentcksum"
		kept := name
		if runtime.GOOS == "linux" {
			kept = "user." + name
		}
		_, err = c.Xattr(t.Context(), "set", name, "stale")
		if _, no := errors.AsType[*engine.UnsupportedError](err); no {
			t.Skip(err)
		}
		require.NoError(t, err)
		r, err := c.Xattr(t.Context(), "list", "", "")
		require.NoError(t, err)
		assert.Equal(t, "stale", r.Reported[kept])
		_, err = c.Xattr(t.Context(), "remove", name, "")
		require.NoError(t, err)
		_, err = c.Xattr(t.Context(), "remove", name, "")
		require.ErrorContains(t, err, name)
		r, err = c.Xattr(t.Context(), "list", "", "")
		require.NoError(t, err)
		assert.NotContains(t, r.Reported, kept)
	}
}
