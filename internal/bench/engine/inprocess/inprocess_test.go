package inprocess_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

func place(t *testing.T) *hostio.Dir {
	d, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func attach(t *testing.T, c engine.Container) engine.Attachment {
	a, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.NoError(t, err)
	return a
}

func detach(t *testing.T, a engine.Attachment) {
	_, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
}

func clean(t *testing.T, c engine.Container) {
	r, err := c.Check(t.Context(), engine.CheckOptions{})
	require.NoError(t, err)
	assert.Empty(t, r.Findings)
}

func verify(t *testing.T, c engine.Container, list []workload.Item, o workload.Options) {
	a := attach(t, c)
	defer detach(t, a)
	found, err := workload.Verify(t.Context(), a.Volume(), list, o)
	require.NoError(t, err)
	assert.Empty(t, found.Findings)
}

func TestLifeOfAnImage(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		t.Run(format, func(t *testing.T) {
			dir, e, ctx := place(t), inprocess.New(nil), t.Context()
			s := engine.Spec{Format: format, Size: 48 << 20, BandSize: 1 << 20, VolumeName: "a longer name"}
			c, err := e.Create(ctx, dir, "img", s)
			require.NoError(t, err)
			d := workload.NewData(3, 1, "case", workload.DataRandom, 0)
			o := workload.Options{Clock: clock.NewReal(), Data: d, Sync: hostio.SyncFsync, Memory: 1 << 30, Workers: 2}
			var list []workload.Item
			for i, n := range []int64{0, 1, 4097, 2_000_000, 9 << 20} {
				list = append(list, workload.Item{Name: fmt.Sprintf("%s/f%d", workload.BatchFolder(1), i), Size: n, Batch: 1, Set: 1, Index: i})
			}
			a := attach(t, c)
			_, err = workload.Write(ctx, a.Volume(), list, o)
			require.NoError(t, err)
			read, err := workload.Read(ctx, a.Volume(), list, o)
			require.NoError(t, err)
			assert.Equal(t, workload.Total(list), read.Bytes)
			detach(t, a)
			verify(t, c, list, o)
			clean(t, c)

			twin, err := c.Transfer(ctx, dir, "twin")
			require.NoError(t, err)
			verify(t, twin, list, o)
			other := map[string]string{"UDRW": "UDSB", "UDSB": "UDRW", "UDSP": "ASIF", "ASIF": "UDSP"}[format]
			conv, err := c.Convert(ctx, dir, "other", engine.Spec{Format: other, BandSize: 1 << 20})
			require.NoError(t, err)
			verify(t, conv, list, o)
			clean(t, conv)

			for _, size := range []int64{96 << 20, 40 << 20} {
				_, err = twin.Resize(ctx, size)
				require.NoError(t, err)
				assert.Equal(t, size, twin.Made().Size)
				clean(t, twin)
			}
			verify(t, twin, list, o)

			a = attach(t, c)
			require.NoError(t, a.Volume().Remove(list[4].Name))
			detach(t, a)
			before, err := c.Usage(ctx)
			require.NoError(t, err)
			r, err := c.Compact(ctx, engine.CompactOptions{})
			if format == "UDRW" {
				require.ErrorAs(t, err, new(*engine.UnsupportedError))
				detach(t, attach(t, c)) // trims
			} else {
				require.NoError(t, err)
				assert.GreaterOrEqual(t, r.Freed, int64(7<<20))
			}
			after, err := c.Usage(ctx)
			require.NoError(t, err)
			assert.Less(t, after.Allocated, before.Allocated-(7<<20))
			verify(t, c, list[:4], o)
			clean(t, c)
			fsck(t, dir, c, conv)

			require.NoError(t, c.Damage(ctx, engine.Damage{Kind: "volume"}))
			r, err = c.Check(ctx, engine.CheckOptions{What: "volume"})
			require.NoError(t, err)
			assert.NotEmpty(t, r.Findings)
			_, err = c.Check(ctx, engine.CheckOptions{Repair: true})
			require.NoError(t, err)
			clean(t, c)
			require.NoError(t, c.Evict(ctx))
			require.NoError(t, c.Remove(ctx))
			_, err = c.Attach(ctx, engine.AttachOptions{})
			require.ErrorIs(t, err, engine.ErrGone)
		})
	}
}

// fsck lets exfatprogs look at the partition of whichever is raw.
func fsck(t *testing.T, dir *hostio.Dir, list ...engine.Container) {
	tool, err := exec.LookPath("fsck.exfat")
	if err != nil {
		t.Log("no fsck.exfat here: the foreign check is left out")
		return
	}
	for _, c := range list {
		if filepath.Ext(c.Name()) != ".dmg" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir.Path(), c.Name()))
		require.NoError(t, err)
		part := filepath.Join(t.TempDir(), "part")
		require.NoError(t, os.WriteFile(part, data[1<<20:], 0o644))
		out, err := exec.Command(tool, "-n", part).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

func TestRefusalsAndProbe(t *testing.T) {
	e, dir := inprocess.New(nil), place(t)
	for _, s := range []engine.Spec{{Format: "UDZO"}, {Format: "ASIF", Encryption: "AES-256"}, {Format: "UDRW", Encryption: "AES-512"}, {Format: "UDRW", Filesystems: []string{"APFS"}}} {
		require.ErrorAs(t, e.Supports(s), new(*engine.UnsupportedError))
	}
	require.NoError(t, e.Supports(engine.Spec{Format: "UDRW", Encryption: "AES-256"}))
	_, err := e.Create(t.Context(), dir, "img", engine.Spec{Format: "UDRW", Encryption: "AES-256", Size: 4 << 20})
	require.ErrorContains(t, err, "without a passphrase")
	for _, format := range []string{"UDSP", "ASIF"} {
		require.NoError(t, e.Supports(engine.Spec{Format: format}))
	}
	require.NoError(t, e.Supports(engine.Spec{Format: "RAW", Filesystems: []string{"APFS", "exFAT"}}))
	require.NoError(t, engine.Probe(t.Context(), e, dir))
	left, err := dir.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left)
}
