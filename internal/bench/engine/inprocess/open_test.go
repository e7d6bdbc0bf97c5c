package inprocess_test

import (
	"context"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// An image is opened as the format that it has. Chunks do not show which of the compressed formats was asked for.
func TestOpenRefusesAnotherFormat(t *testing.T) {
	dir, e := fast(t), inprocess.New(nil)
	raw, err := e.Create(t.Context(), dir, "UDRW", engine.Spec{Format: "UDRW", Size: 5 << 20})
	require.NoError(t, err)
	_, err = raw.Convert(t.Context(), dir, "UDZO", engine.Spec{Format: "UDZO"})
	require.NoError(t, err)
	for _, c := range []struct {
		made, asked string
		ok          bool
	}{
		{"UDRW", "UDRW", true}, {"UDZO", "UDZO", true}, {"UDZO", "ULFO", true},
		{"UDRW", "UDZO", false}, {"UDZO", "UDRW", false},
	} {
		_, err = e.Open(t.Context(), dir, c.made, engine.Spec{Format: c.asked})
		assert.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
	}
}

// What was made is whole sectors, and is read back from the container.
func TestMadeIsReadFromTheContainer(t *testing.T) {
	dir, e := fast(t), inprocess.New(nil)
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		s := engine.Spec{Format: format, Size: 5<<20 + 1, BandSize: 1 << 20}
		c, err := e.Create(t.Context(), dir, "img", s)
		require.NoError(t, err)
		assert.EqualValues(t, 5<<20+512, c.Made().Size, format)
		again, err := e.Open(t.Context(), dir, "img", engine.Spec{Format: format})
		require.NoError(t, err)
		assert.Equal(t, c.Made(), again.Made(), format)
		_, err = again.Resize(t.Context(), 6<<20+1)
		require.NoError(t, err)
		assert.EqualValues(t, 6<<20+512, again.Made().Size, format)
		_, err = again.Resize(t.Context(), 100<<30)
		require.Error(t, err, "the volume cannot grow so far")
		assert.EqualValues(t, 6<<20+512, again.Made().Size, format)
		clean(t, again)
		_, err = e.Create(t.Context(), dir, "img", s)
		require.ErrorIs(t, err, fs.ErrExist)
		require.NoError(t, again.Remove(t.Context()))
	}
}

// An image that could not be made leaves no file that Open would take for one.
func TestAFailedCreationLeavesNothing(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		for _, kind := range []hostio.Kind{hostio.OpWrite, hostio.OpSync, hostio.OpRead} {
			for _, k := range []int{1, 3} {
				faults := &hostiotest.Faults{}
				dir := fast(t, hostio.WithHook(faults))
				faults.FailNth(kind, "", k, syscall.EIO)
				_, err := inprocess.New(nil).Create(t.Context(), dir, "img", engine.Spec{Format: format, Size: 5 << 20})
				if err == nil {
					continue // fewer calls than that
				}
				what := fmt.Sprintf("%s: %s %d", format, kind, k)
				require.ErrorIs(t, err, syscall.EIO, what)
				left, err := dir.ReadDir(".")
				require.NoError(t, err)
				assert.Empty(t, left, what)
			}
		}
	}
}

// A sealed image is attached read-only, its checksums are computed unless that is refused, and nothing changes it.
func TestSealedImagesAreAttachedReadOnly(t *testing.T) {
	dir, e := fast(t), inprocess.New(nil)
	c, err := e.Create(t.Context(), dir, "img", engine.Spec{Format: "UDRW", Size: 5 << 20})
	require.NoError(t, err)
	sealed, err := c.Convert(t.Context(), dir, "sealed", engine.Spec{Format: "UDZO"})
	require.NoError(t, err)
	a := attach(t, sealed)
	require.ErrorIs(t, a.Volume().Mkdir("x"), syscall.EROFS)
	detach(t, a)
	_, err = sealed.Check(t.Context(), engine.CheckOptions{Repair: true})
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	_, err = sealed.Resize(t.Context(), 6<<20)
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	require.NoError(t, sealed.Damage(t.Context(), engine.Damage{Kind: "volume"}))
	for _, noVerify := range []bool{false, true} {
		a, err := sealed.Attach(t.Context(), engine.AttachOptions{NoVerify: noVerify, NoMount: true})
		assert.Equal(t, noVerify, err == nil, "%v", err)
		if err == nil {
			detach(t, a)
		}
	}
}

// A conversion that fails is an error, whatever it was to.
func TestAConversionToANameThatIsTakenFails(t *testing.T) {
	dir, e := fast(t), inprocess.New(nil)
	c, err := e.Create(t.Context(), dir, "img", engine.Spec{Format: "UDRW", Size: 5 << 20})
	require.NoError(t, err)
	for _, format := range []string{"UDRW", "UDSB", "UDZO"} {
		_, err = c.Convert(t.Context(), dir, "other", engine.Spec{Format: format})
		require.NoError(t, err)
		_, err = c.Convert(t.Context(), dir, "other", engine.Spec{Format: format})
		require.ErrorIs(t, err, fs.ErrExist, format)
		other, err := e.Open(t.Context(), dir, "other", engine.Spec{Format: format})
		require.NoError(t, err)
		clean(t, other)
		require.NoError(t, other.Remove(t.Context()))
	}
}

// onRead is a hook that does something before each read.
type onRead func()

func (do onRead) Before(op hostio.Op) error {
	if op.Kind == hostio.OpRead {
		do()
	}
	return nil
}

func (onRead) After(hostio.Op, int, error) {}

func TestAttachingIsCanceledWhileChecksumsAreComputed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read := func() {}
	dir, e := fast(t, hostio.WithHook(onRead(func() { read() }))), inprocess.New(nil)
	c, err := e.Create(t.Context(), dir, "img", engine.Spec{Format: "UDRW", Size: 5 << 20})
	require.NoError(t, err)
	sealed, err := c.Convert(t.Context(), dir, "sealed", engine.Spec{Format: "UDZO"})
	require.NoError(t, err)
	read = cancel
	_, err = sealed.Attach(ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, context.Canceled)
	detach(t, attach(t, sealed))
}
