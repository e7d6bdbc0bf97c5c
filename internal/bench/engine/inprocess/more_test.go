package inprocess_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
)

// Every kind of damage that must show, shows.
func TestDamageIsFound(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		for _, kind := range []string{"header", "table", "volume"} {
			t.Run(format+"/"+kind, func(t *testing.T) {
				c, err := inprocess.New(nil).Create(t.Context(), place(t), "img", engine.Spec{Format: format, Size: 16 << 20})
				require.NoError(t, err)
				require.NoError(t, c.Damage(t.Context(), engine.Damage{Kind: kind}))
				r, err := c.Check(t.Context(), engine.CheckOptions{})
				require.NoError(t, err)
				assert.NotEmpty(t, r.Findings)
			})
		}
	}
}

func TestReadOnlyNoMountAndForce(t *testing.T) {
	c, err := inprocess.New(nil).Create(t.Context(), place(t), "img", engine.Spec{Format: "UDSB", Size: 16 << 20})
	require.NoError(t, err)
	a, err := c.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
	require.NoError(t, err)
	require.ErrorIs(t, a.Volume().Mkdir("x"), syscall.EROFS)
	detach(t, a)
	a, err = c.Attach(t.Context(), engine.AttachOptions{NoMount: true})
	require.NoError(t, err)
	assert.Nil(t, a.Volume())
	detach(t, a)
	a = attach(t, c)
	require.NoError(t, a.Volume().Mkdir("a/b"))
	_, err = a.Volume().Create("a/b/f", 10, workload.FileOptions{})
	require.NoError(t, err)
	_, err = a.Volume().Create("big", 64<<20, workload.FileOptions{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = a.Detach(t.Context(), false)
	require.Error(t, err)
	r, err := a.Detach(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, []string{`file "a/b/f" was still open`}, r.Warnings)
	clean(t, c)
}
