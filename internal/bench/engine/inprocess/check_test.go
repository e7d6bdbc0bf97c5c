package inprocess

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/container"
	"dmgbench/internal/system/hostio"
)

// As fsck on the device of an image that is attached without mounting.
func TestAttachedImagesAreCheckedAndRepairedUnlessMounted(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		c, err := New(nil).Create(t.Context(), dir, "image", engine.Spec{Format: format, Size: 8 << 20, Cache: hostio.CacheBuffered})
		require.NoError(t, err)
		require.NoError(t, c.Damage(t.Context(), engine.Damage{Kind: "volume"}))
		_, err = c.Attach(t.Context(), engine.AttachOptions{})
		require.Error(t, err)

		a, err := c.Attach(t.Context(), engine.AttachOptions{NoMount: true})
		require.NoError(t, err)
		r, err := c.Check(t.Context(), engine.CheckOptions{What: "volume"})
		require.NoError(t, err)
		assert.NotEmpty(t, r.Findings)
		r, err = c.Check(t.Context(), engine.CheckOptions{What: "volume", Repair: true})
		require.NoError(t, err)
		assert.Empty(t, r.Findings)
		assert.NotEmpty(t, r.Warnings, "what was repaired")
		_, err = a.Detach(t.Context(), false)
		require.NoError(t, err)

		a, err = c.Attach(t.Context(), engine.AttachOptions{})
		require.NoError(t, err)
		_, err = c.Check(t.Context(), engine.CheckOptions{})
		require.ErrorIs(t, err, container.ErrInUse)
		_, err = a.Detach(t.Context(), false)
		require.NoError(t, err)
		r, err = c.Check(t.Context(), engine.CheckOptions{})
		require.NoError(t, err)
		assert.Empty(t, r.Findings)
	}
}
