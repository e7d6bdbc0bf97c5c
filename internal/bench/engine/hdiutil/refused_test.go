package hdiutil

import (
	"context"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

// What has the name already is not overwritten, and no tool is asked.
func TestCreateOverAFile(t *testing.T) {
	r := newRig(t, rules())
	require.NoError(t, os.WriteFile(r.file("x.dmg"), []byte("precious"), 0o600))
	asked := len(r.tool.Calls())
	_, err := r.e.Create(t.Context(), r.dir, "x", spec("UDRW"))
	require.ErrorIs(t, err, fs.ErrExist)
	assert.Len(t, r.tool.Calls(), asked)
	text, err := os.ReadFile(r.file("x.dmg"))
	require.NoError(t, err)
	assert.Equal(t, "precious", string(text))
}

// A file that another process makes while the tool works is not deleted, although the tool failed.
func TestFileOfAnotherProcessStays(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "create", From: 1, Do: "fail", Half: true, Text: "hdiutil: create failed - File exists", Status: 1}))
	_, err := r.e.Create(t.Context(), r.dir, "x", spec("UDRW"))
	require.ErrorIs(t, err, fs.ErrExist)
	assert.FileExists(t, r.file("x.dmg"))
}

// An image that is gone, or another file by now, is an error of every action, and no tool is asked.
func TestImageThatIsGone(t *testing.T) {
	for name, do := range map[string]func(context.Context, *rig, *image) error{
		"usage": func(ctx context.Context, _ *rig, c *image) error { _, err := c.Usage(ctx); return err },
		"transfer": func(ctx context.Context, r *rig, c *image) error {
			_, err := c.Transfer(ctx, r.dir, "copy")
			return err
		},
		"attach": func(ctx context.Context, _ *rig, c *image) error {
			_, err := c.Attach(ctx, engine.AttachOptions{})
			return err
		},
		"convert": func(ctx context.Context, r *rig, c *image) error {
			_, err := c.Convert(ctx, r.dir, "other", spec("UDZO"))
			return err
		},
		"resize": func(ctx context.Context, _ *rig, c *image) error { _, err := c.Resize(ctx, 64<<20); return err },
		"compact": func(ctx context.Context, _ *rig, c *image) error {
			_, err := c.Compact(ctx, engine.CompactOptions{})
			return err
		},
		"damage": func(ctx context.Context, _ *rig, c *image) error {
			return c.Damage(ctx, engine.Damage{Kind: "header"})
		},
		"remove": func(ctx context.Context, _ *rig, c *image) error { return c.Remove(ctx) },
	} {
		r := newRig(t, rules())
		c := r.create("x", spec("UDSB"))
		asked := len(r.tool.Calls())
		require.NoError(t, os.Rename(r.file("x.sparsebundle"), r.file("away")))
		require.ErrorIs(t, do(t.Context(), r, c), engine.ErrGone, name)
		assert.Len(t, r.tool.Calls(), asked, name)
	}
}

// hdiutil that fails for another reason than "busy" is not asked again without force.
func TestDetachThatFailsForGoodIsNotRepeated(t *testing.T) {
	fails := func(verb string) FakeRule {
		return FakeRule{Verb: verb, From: 1, Do: "fail", Text: "hdiutil: detach failed - Operation not permitted", Status: 1}
	}
	r := newRig(t, rules(fails("detach"), fails("eject")))
	_, a := r.attachedImage(spec("UDRW"))
	_, err := a.Detach(t.Context(), false)
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.Len(t, r.verbs("detach"), 1)
	assert.Len(t, r.verbs("eject"), 1)
	assert.Zero(t, r.clock.Now(), "nothing was waited for")
}

// An interrupt ends a detach at once: the image stays attached, and may be detached again.
func TestInterruptOfADetach(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "detach", From: 1, To: 1, Do: "interrupt"}))
	_, a := r.attachedImage(spec("UDRW"))
	ctx, cancel := context.WithCancel(t.Context())
	r.tool.OnInterrupt = cancel
	_, err := a.Detach(ctx, false)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, Canceled, classOf(err))
	assert.Empty(t, r.verbs("eject"))
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	r.clean()
}
