package inprocess

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/container"
	"dmgbench/internal/system/hostio"
)

func encrypted(t *testing.T, dir *hostio.Dir, name string) (*Engine, *image) {
	e := New(nil)
	e.Iterations, e.Passphrase = 1000, []byte("of all images")
	c, err := e.Create(t.Context(), dir, name, engine.Spec{Format: "UDRW", Size: 5 << 20, Encryption: container.AES256})
	require.NoError(t, err)
	return e, c.(*image)
}

// The passphrase of an image does not stay in memory after the image is gone. Copies of the image keep theirs.
func TestRemoveWipesThePassphrase(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	_, c := encrypted(t, dir, "img")
	secret := c.spec.Passphrase
	twin, err := c.Transfer(t.Context(), dir, "twin")
	require.NoError(t, err)
	a, err := c.Attach(t.Context(), engine.AttachOptions{NoMount: true})
	require.NoError(t, err)
	require.Error(t, c.Remove(t.Context()), "while attached")
	assert.Equal(t, "of all images", string(secret))
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)

	require.NoError(t, c.Remove(t.Context()))
	assert.Equal(t, make([]byte, len(secret)), secret)
	r, err := twin.Check(t.Context(), engine.CheckOptions{})
	require.NoError(t, err)
	assert.Empty(t, r.Findings)
}

func TestOpenRefusesAnotherEncryption(t *testing.T) {
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	e, _ := encrypted(t, dir, "AES")
	_, err = e.Create(t.Context(), dir, "plain", engine.Spec{Format: "UDRW", Size: 5 << 20})
	require.NoError(t, err)
	for _, c := range []struct {
		name, encryption string
		ok               bool
	}{
		{"AES", container.AES256, true}, {"AES", container.AES128, false}, {"AES", "", false},
		{"plain", "", true}, {"plain", container.AES256, false},
	} {
		_, err = e.Open(t.Context(), dir, c.name, engine.Spec{Format: "UDRW", Encryption: c.encryption})
		assert.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
	}
}
