package inprocess_test

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

// put writes a file of n bytes that are not zero, flushed.
func put(t *testing.T, v workload.Volume, name string, n int) {
	t.Helper()
	f, err := v.Create(name, int64(n), workload.FileOptions{})
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("dmgbench", n/8+1)[:n]), 0)
	require.NoError(t, err)
	_, err = f.Sync(hostio.SyncFull)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func allocated(t *testing.T, c engine.Container) int64 {
	t.Helper()
	u, err := c.Usage(t.Context())
	require.NoError(t, err)
	return u.Allocated
}

// TestFirstAttachDoesNotTrim: a new UDRW is allocated in full until it is attached for the second time, read-only and
// unmounted attachments trim nothing, and an image found again counts as attached before.
func TestFirstAttachDoesNotTrim(t *testing.T) {
	const size = 32 << 20
	dir, e := place(t), inprocess.New(nil)
	s := engine.Spec{Format: "UDRW", Size: size}
	c, err := e.Create(t.Context(), dir, "img", s)
	require.NoError(t, err)
	full := allocated(t, c)
	require.GreaterOrEqual(t, full, int64(size))
	unmounted, err := c.Attach(t.Context(), engine.AttachOptions{NoMount: true})
	require.NoError(t, err)
	detach(t, unmounted)
	detach(t, attach(t, c))
	assert.Equal(t, full, allocated(t, c), "the first mount leaves it alone")
	a, err := c.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
	require.NoError(t, err)
	detach(t, a)
	assert.Equal(t, full, allocated(t, c), "so does a read-only one")
	a = attach(t, c)
	trimmed := allocated(t, c)
	if trimmed == full {
		t.Skip("this host's file system makes no holes")
	}
	assert.Less(t, trimmed, int64(4<<20))
	put(t, a.Volume(), "f", 8<<20)
	detach(t, a)
	a = attach(t, c)
	assert.GreaterOrEqual(t, allocated(t, c), trimmed+(8<<20), "what is in use stays")
	require.NoError(t, a.Volume().Remove("f"))
	detach(t, a)
	again, err := e.Open(t.Context(), dir, "img", s)
	require.NoError(t, err)
	detach(t, attach(t, again))
	assert.Less(t, allocated(t, again), int64(4<<20))
}

// tree is the digest of every file of a container.
func tree(t *testing.T, root string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		all[rel] = sha256.Sum256(data)
		return err
	}))
	return all
}

// TestSameSpecSameBytes: what makes one image differ from another is its name and spec, and what is done to it.
func TestSameSpecSameBytes(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		var got []map[string][32]byte
		now := func() time.Time { return time.Date(2026, 3, 23, 1, 2, 3, 0, time.UTC) }
		for _, name := range []string{"img", "img", "other"} {
			dir := place(t)
			c, err := inprocess.New(now).Create(t.Context(), dir, name, engine.Spec{Format: format, Size: 6 << 20, BandSize: 1 << 20, VolumeName: "V"})
			require.NoError(t, err)
			for range 2 {
				a := attach(t, c)
				if err := a.Volume().Remove("one"); err != nil {
					require.ErrorIs(t, err, fs.ErrNotExist)
				}
				put(t, a.Volume(), "one", 1_000_001)
				detach(t, a)
			}
			got = append(got, tree(t, filepath.Join(dir.Path(), c.Name())))
		}
		assert.Equal(t, got[0], got[1], format)
		assert.NotEqual(t, got[0], got[2], "%s: another name, other identifiers", format)
	}
}

// TestResident: after writing through the cache the pages are there, after an eviction they are not.
func TestResident(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		dir := place(t)
		if _, _, kind, err := dir.FreeSpace(); err == nil && kind == "tmpfs" {
			t.Skip("tmpfs is the cache")
		}
		c, err := inprocess.New(nil).Create(t.Context(), dir, "img",
			engine.Spec{Format: format, Size: 32 << 20, BandSize: 1 << 20, Cache: hostio.CacheBuffered})
		require.NoError(t, err)
		a := attach(t, c)
		put(t, a.Volume(), "f", 5_000_000)
		f, err := a.Volume().Open("f", workload.FileOptions{})
		require.NoError(t, err)
		share, err := f.Resident()
		if errors.Is(err, workload.ErrUnknown) {
			t.Skip("this host does not tell")
		}
		require.NoError(t, err)
		assert.Greater(t, share, 0.9, format)
		require.NoError(t, f.Evict())
		cold, err := f.Resident()
		require.NoError(t, err)
		assert.Less(t, cold, 0.1, format)
		empty, err := a.Volume().Create("empty", 0, workload.FileOptions{})
		require.NoError(t, err)
		share, err = empty.Resident()
		require.NoError(t, err)
		assert.Zero(t, share)
		never, err := a.Volume().Create("never written", 4<<20, workload.FileOptions{})
		require.NoError(t, err)
		_, err = never.Resident()
		require.NoError(t, err, "bands that do not exist have no pages")
		for _, f := range []workload.File{f, empty, never} {
			require.NoError(t, f.Close())
		}
		detach(t, a)
	}
}

// TestKindsOfDamage: each kind shows in an attach that fails, a warning, a check, or in the bytes.
func TestKindsOfDamage(t *testing.T) {
	for _, c := range []struct {
		format, kind         string
		refused, told, found bool
	}{
		{"UDRW", "header", false, true, true}, {"UDSB", "header", false, true, true},
		{"UDRW", "table", true, false, true}, {"UDSB", "table", true, false, true},
		{"UDRW", "volume", false, true, true}, {"UDSB", "volume", false, true, true},
		{"UDRW", "truncated", true, false, true}, {"UDSB", "truncated", false, false, false},
		{"UDSB", "band-missing", false, false, false},
	} {
		t.Run(c.format+" "+c.kind, func(t *testing.T) {
			con, err := inprocess.New(nil).Create(t.Context(), fast(t), "img", engine.Spec{Format: c.format, Size: 16 << 20, BandSize: 1 << 20})
			require.NoError(t, err)
			a := attach(t, con)
			put(t, a.Volume(), "f", 6<<20)
			detach(t, a)
			dir := fast(t)
			hurt, err := con.Transfer(t.Context(), dir, "hurt")
			require.NoError(t, err)
			require.NoError(t, hurt.Damage(t.Context(), engine.Damage{Kind: c.kind}))
			r, err := hurt.Check(t.Context(), engine.CheckOptions{})
			require.NoError(t, err)
			assert.Equal(t, c.found, len(r.Findings) > 0, "%v", r.Findings)
			a, err = hurt.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
			if assert.Equal(t, c.refused, err != nil, "%v", err); err == nil {
				f, err := a.Volume().Open("f", workload.FileOptions{})
				require.NoError(t, err)
				got := make([]byte, 6<<20)
				_, err = f.ReadAt(got, 0)
				require.NoError(t, err)
				require.NoError(t, f.Close())
				whole := string(got) == strings.Repeat("dmgbench", 6<<20/8)
				assert.Equal(t, c.told || c.found, whole, "the bytes are what shows it, or they are whole")
				r, err := a.Detach(t.Context(), false)
				require.NoError(t, err)
				assert.Equal(t, c.told, len(r.Warnings) > 0, "%v", r.Warnings)
			}
			clean(t, con) // the original is what it was
			if c.kind == "volume" {
				_, err = hurt.Attach(t.Context(), engine.AttachOptions{})
				require.Error(t, err, "not for writing")
			}
			if c.kind == "volume" || c.kind == "header" {
				r, err := hurt.Check(t.Context(), engine.CheckOptions{Repair: true})
				require.NoError(t, err)
				assert.NotEmpty(t, r.Warnings, "what was repaired")
				clean(t, hurt)
			}
		})
	}
	c, err := inprocess.New(nil).Create(t.Context(), fast(t), "img", engine.Spec{Format: "UDRW", Size: 16 << 20})
	require.NoError(t, err)
	for _, kind := range []string{"band-missing", "nonsense", ""} {
		require.ErrorAs(t, c.Damage(t.Context(), engine.Damage{Kind: kind}), new(*engine.UnsupportedError))
	}
	clean(t, c)
}
