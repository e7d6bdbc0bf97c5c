package inprocess_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

// swaps are what somebody else may do with a container; each leaves something at path that is not ours, or nothing.
var swaps = map[string]func(t *testing.T, path, foreign string){
	"deleted": func(t *testing.T, path, foreign string) { require.NoError(t, os.RemoveAll(path)) },
	"renamed": func(t *testing.T, path, foreign string) { require.NoError(t, os.Rename(path, path+".away")) },
	"another": func(t *testing.T, path, foreign string) {
		require.NoError(t, os.Rename(path, path+".away"))
		require.NoError(t, os.Rename(foreign, path))
	},
	"link": func(t *testing.T, path, foreign string) {
		require.NoError(t, os.Rename(path, path+".away"))
		require.NoError(t, os.Symlink(foreign, path))
	},
	"link to itself": func(t *testing.T, path, foreign string) {
		require.NoError(t, os.Rename(path, path+".away"))
		require.NoError(t, os.Symlink(path+".away", path))
	},
}

func eachSwap(t *testing.T, do func(t *testing.T, c engine.Container, swap func())) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		for name, swap := range swaps {
			t.Run(format+" "+name, func(t *testing.T) {
				dir, e := fast(t), inprocess.New(nil)
				s := engine.Spec{Format: format, Size: 5 << 20, BandSize: 1 << 20}
				c, err := e.Create(t.Context(), dir, "img", s)
				require.NoError(t, err)
				other, err := e.Create(t.Context(), dir, "foreign", s)
				require.NoError(t, err)
				path, foreign := filepath.Join(dir.Path(), c.Name()), filepath.Join(dir.Path(), other.Name())
				was := tree(t, foreign)
				do(t, c, func() { swap(t, path, foreign) })
				if name == "another" {
					foreign = path
				}
				assert.Equal(t, was, tree(t, foreign), "what is not ours is untouched")
				if name != "deleted" {
					_, err = os.Stat(path + ".away")
					require.NoError(t, err, "what was taken away is not deleted")
				}
			})
		}
	}
}

func TestSwappedWhileDetached(t *testing.T) {
	eachSwap(t, func(t *testing.T, c engine.Container, swap func()) {
		ctx, elsewhere := t.Context(), fast(t)
		swap()
		for name, do := range map[string]func() error{
			"attach":   func() error { _, err := c.Attach(ctx, engine.AttachOptions{}); return err },
			"usage":    func() error { _, err := c.Usage(ctx); return err },
			"resize":   func() error { _, err := c.Resize(ctx, 16<<20); return err },
			"check":    func() error { _, err := c.Check(ctx, engine.CheckOptions{Repair: true}); return err },
			"damage":   func() error { return c.Damage(ctx, engine.Damage{Kind: "header"}) },
			"truncate": func() error { return c.Damage(ctx, engine.Damage{Kind: "truncated"}) },
			"xattr":    func() error { _, err := c.Xattr(ctx, "set", "user.x", "y"); return err },
			"evict":    func() error { return c.Evict(ctx) },
			"transfer": func() error { _, err := c.Transfer(ctx, elsewhere, "copy"); return err },
			"convert":  func() error { _, err := c.Convert(ctx, elsewhere, "other", engine.Spec{Format: "UDSB"}); return err },
			"remove":   func() error { return c.Remove(ctx) },
		} {
			assert.ErrorIs(t, do(), engine.ErrGone, name)
		}
		list, err := elsewhere.ReadDir(".")
		require.NoError(t, err)
		assert.Empty(t, list, "no half copies")
	})
}

func TestSwappedWhileAttached(t *testing.T) {
	eachSwap(t, func(t *testing.T, c engine.Container, swap func()) {
		a := attach(t, c)
		put(t, a.Volume(), "before", 2_000_000)
		f, err := a.Volume().Create("f", 100_000, workload.FileOptions{})
		require.NoError(t, err)
		swap()
		_, err = f.WriteAt(make([]byte, 100_000), 0)
		if err == nil { // into the open file: nobody could know
			_, err = f.Sync(hostio.SyncFull)
		}
		require.ErrorIs(t, err, engine.ErrGone)
		_, err = a.Trim(t.Context())
		require.ErrorIs(t, err, engine.ErrGone)
		_, err = c.Usage(t.Context())
		require.ErrorIs(t, err, engine.ErrGone)
		_, err = a.Detach(t.Context(), false)
		require.Error(t, err)
		_, err = a.Detach(t.Context(), true)
		require.ErrorIs(t, err, engine.ErrGone)
		_, err = a.Detach(t.Context(), true)
		require.NoError(t, err, "it is over")
		assert.Nil(t, a.Volume())
		require.ErrorIs(t, c.Remove(t.Context()), engine.ErrGone)
	})
}
