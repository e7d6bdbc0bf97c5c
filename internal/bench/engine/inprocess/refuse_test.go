package inprocess

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
)

// A table without a partition is sound, and so is a partition without exFAT, but nothing can be done with the image.
func TestAnImageWithoutAVolumeIsRefused(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	for missing, change := range map[string]func(img container.Image, table *gpt.Table) error{
		"partition": func(img container.Image, table *gpt.Table) error {
			table.Partitions = nil
			return gpt.Write(img, table)
		},
		"boot regions": func(img container.Image, table *gpt.Table) error {
			_, err := img.WriteAt(make([]byte, 24*container.SectorSize), table.Partitions[0].Offset())
			return err
		},
	} {
		t.Run(missing, func(t *testing.T) { requireRefused(t, dir, missing, change) })
	}
}

func requireRefused(t *testing.T, dir *hostio.Dir, missing string, change func(img container.Image, table *gpt.Table) error) {
	for _, format := range []string{"UDRW", "UDSB"} {
		c, err := New(nil).Create(t.Context(), dir, "image", engine.Spec{Format: format, Size: 8 << 20, Cache: hostio.CacheBuffered})
		require.NoError(t, err)
		require.NoError(t, c.(*image).with(t.Context(), "changing", false, func(img container.Image) error {
			table, _, err := gpt.Read(img)
			require.NoError(t, err)
			return change(img, table)
		}))
		r, err := c.Check(t.Context(), engine.CheckOptions{What: "container"})
		require.NoError(t, err)
		assert.Empty(t, r.Findings)
		for name, do := range map[string]func() error{
			"attach": func() error { _, err := c.Attach(t.Context(), engine.AttachOptions{}); return err },
			"resize": func() error { _, err := c.Resize(t.Context(), 16<<20); return err },
		} {
			assert.Error(t, do(), "%s of %s", name, format)
		}
		r, err = c.Check(t.Context(), engine.CheckOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, r.Findings)
		assert.Equal(t, missing == "partition", c.Damage(t.Context(), engine.Damage{Kind: "volume"}) != nil, "only a partition can be damaged")
		if format == "UDSB" {
			_, err = c.Compact(t.Context(), engine.CompactOptions{})
			assert.Error(t, err)
		}
		require.NoError(t, c.Remove(t.Context()))
	}
}

// Whoever repairs a sound image writes no byte of it.
func TestRepairOfASoundImageWritesNothing(t *testing.T) {
	writes := &writeCount{}
	dir, err := hostio.OpenDir(t.TempDir(), hostio.WithHook(writes))
	require.NoError(t, err)
	defer dir.Close()
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		c, err := New(nil).Create(t.Context(), dir, "image", engine.Spec{Format: format, Size: 8 << 20, Cache: hostio.CacheBuffered})
		require.NoError(t, err)
		writes.n = 0
		r, err := c.Check(t.Context(), engine.CheckOptions{Repair: true})
		require.NoError(t, err)
		assert.Empty(t, append(r.Findings, r.Warnings...), format)
		assert.Zero(t, writes.n, format)
	}
}

// writeCount counts the writes on the host.
type writeCount struct{ n int }

func (w *writeCount) Before(op hostio.Op) error {
	if op.Kind == hostio.OpWrite {
		w.n++
	}
	return nil
}

func (*writeCount) After(hostio.Op, int, error) {}

// One codec needs a mounted volume and macOS; streams of the others are for every engine.
func TestStreamsOfEveryCodecButOneAreAllowed(t *testing.T) {
	spec := engine.Spec{Format: "UDRW", Size: 8 << 20}
	for codec, allowed := range map[string]bool{
		workload.CodecZstd: true, workload.CodecS2: true, workload.CodecGzip: true, workload.CodecLZFSE: false,
	} {
		err := New(nil).Allows(spec, engine.Action{Do: "stream", Kind: codec})
		assert.Equal(t, allowed, err == nil, "%s: %v", codec, err)
	}
}

// A spec may leave open what serves it, or name what this engine is.
func TestBackendsAndServersOfASpec(t *testing.T) {
	for _, c := range []struct {
		backend, servedBy string
		ok                bool
	}{
		{"", "", true}, {"auto", "auto", true}, {backend, "", true}, {"other", "", false}, {"", "other", false},
	} {
		err := New(nil).Supports(engine.Spec{Format: "UDRW", Size: 8 << 20, Backend: c.backend, ServedBy: c.servedBy})
		assert.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
	}
}

func TestUnknownFormatsAreRefused(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	_, err = New(nil).Open(t.Context(), dir, "image", engine.Spec{Format: "NONE"})
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	require.ErrorAs(t, New(nil).Allows(engine.Spec{Format: "NONE"}, engine.Action{Do: "check"}), new(*engine.UnsupportedError))
	to := func(format string) engine.Action {
		return engine.Action{Do: "convert", To: engine.Spec{Format: format}}
	}
	require.ErrorAs(t, New(nil).Allows(engine.Spec{Format: "UDRW"}, to("NONE")), new(*engine.UnsupportedError))
	require.NoError(t, New(nil).Allows(engine.Spec{Format: "UDRW"}, to("UDZO")))
}

func TestBandSizesAreThoseOfTheFormat(t *testing.T) {
	for _, c := range []struct {
		format string
		wanted int64
		bands  bool
	}{{"UDSB", 0, true}, {"UDSB", 1 << 20, true}, {"UDRW", 1 << 20, false}} {
		s, err := normalize(engine.Spec{Format: c.format, Size: 8 << 20, BandSize: c.wanted})
		require.NoError(t, err)
		assert.Equal(t, c.bands, s.BandSize > 0, "%+v", c)
		if c.bands && c.wanted > 0 {
			assert.Equal(t, c.wanted, s.BandSize)
		}
	}
}
