package inprocess_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/image/container"
)

// Read-only images come of conversions alone, are smaller where they compress, and
// give back the very device when they are converted to one that can be written to.
func TestSealed(t *testing.T) {
	dir, e := place(t), inprocess.New(nil)
	c, err := e.Create(t.Context(), dir, "img", engine.Spec{Format: "UDRW", Size: 8 << 20})
	require.NoError(t, err)
	a := attach(t, c)
	put(t, a.Volume(), "file", 3_000_000)
	detach(t, a)
	want, err := os.ReadFile(filepath.Join(dir.Path(), c.Name()))
	require.NoError(t, err)
	for _, format := range []string{"UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI", "UDTO"} {
		t.Run(format, func(t *testing.T) {
			s := engine.Spec{Format: format, Size: 8 << 20}
			require.ErrorAs(t, e.Supports(s), new(*engine.UnsupportedError))
			_, err := e.Create(t.Context(), dir, "empty", s)
			require.ErrorAs(t, err, new(*engine.UnsupportedError))
			fixed, err := c.Convert(t.Context(), dir, "fixed-"+format, s)
			require.NoError(t, err)
			size := allocated(t, fixed)
			switch format {
			case "UFBI":
				assert.InDelta(t, 8<<20, size, 1<<20, "the entire image")
			case "UDRO":
				assert.InDelta(t, 3_000_000, size, 1<<20, "free space is left out")
			case "UDTO":
				assert.Equal(t, ".cdr", filepath.Ext(fixed.Name()))
			default:
				assert.Less(t, size, int64(1<<20), "eight letters over and over")
			}
			again, err := e.Open(t.Context(), dir, "fixed-"+format, s)
			require.NoError(t, err, "as when a run is resumed")
			back, err := again.Convert(t.Context(), dir, "back-"+format, engine.Spec{Format: "UDRW"})
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(dir.Path(), back.Name()))
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, got), "the same device")
			require.NoError(t, back.Remove(t.Context()))
			harm(t, fixed, format)
			require.NoError(t, fixed.Remove(t.Context()))
		})
	}
}

// harm damages copies of an image whose checksums must tell.
func harm(t *testing.T, c engine.Container, format string) {
	dir := place(t)
	kinds := []string{"header", "truncated", "volume"}
	for _, kind := range []string{"table", "band-missing"} {
		if kind == "table" && format == "UDTO" {
			kinds = append(kinds, kind)
			continue
		}
		require.ErrorAs(t, c.Damage(t.Context(), engine.Damage{Kind: kind}), new(*engine.UnsupportedError), kind)
	}
	for _, kind := range kinds {
		twin, err := c.Transfer(t.Context(), dir, kind)
		require.NoError(t, err)
		require.NoError(t, twin.Damage(t.Context(), engine.Damage{Kind: kind}))
		rep, err := twin.Check(t.Context(), engine.CheckOptions{})
		assert.True(t, err != nil || len(rep.Findings) > 0, kind)
	}
	if format == "UDTO" { // which carries no checksum
		return
	}
	twin, err := c.Transfer(t.Context(), dir, "bit")
	require.NoError(t, err)
	require.NoError(t, twin.Damage(t.Context(), engine.Damage{Kind: "volume"}))
	_, err = twin.Attach(t.Context(), engine.AttachOptions{})
	require.True(t, errors.Is(err, container.ErrCorrupt), "%v", err)
}
