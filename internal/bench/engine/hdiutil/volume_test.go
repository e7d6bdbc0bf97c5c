package hdiutil

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

// An APFS container that the system makes no disk of is checked and repaired on its slice.
func TestCheckOfAPFSWithoutAContainer(t *testing.T) {
	r := newRig(t, FakeConfig{NoDisk: true})
	c := r.create("x", spec("UDRW"))
	rep, err := c.Check(t.Context(), engine.CheckOptions{What: "volume"})
	require.NoError(t, err)
	assert.Equal(t, []string{"the APFS container on /dev/disk4s2 is damaged: the system made no disk of it"}, rep.Findings)
	assert.Equal(t, []string{"diskutil verifyVolume /dev/disk4s2"}, r.verbs("verifyVolume"))
	rep, err = c.Check(t.Context(), engine.CheckOptions{What: "volume", Repair: true})
	require.NoError(t, err)
	assert.Empty(t, rep.Findings)
	require.Len(t, rep.Warnings, 1)
	assert.Contains(t, rep.Warnings[0], "/dev/disk5s2 is damaged")
	assert.Equal(t, []string{"diskutil repairVolume /dev/disk5s2"}, r.verbs("repairVolume"))
	r.clean()
}

// The system locks the file of an attached image: asking again does not help.
func TestCheckOfAnAttachedContainerIsNotTriedAgain(t *testing.T) {
	for verb, s := range map[string]engine.Spec{"imageinfo": spec("UDRW"), "image info": spec("ASIF")} {
		r := newRig(t, rules(FakeRule{Verb: verb, From: 1, Do: "eagain"}))
		c := r.create("x", s)
		a := r.attach(c, engine.AttachOptions{NoMount: true})
		_, err := c.Check(t.Context(), engine.CheckOptions{What: "container"})
		require.ErrorIs(t, err, syscall.EAGAIN, verb)
		assert.Contains(t, engine.Advised(err), "detach the image")
		assert.Len(t, r.verbs(verb), 1, verb)
		assert.Zero(t, r.clock.Now(), verb)
		_, err = a.Detach(t.Context(), false)
		require.NoError(t, err)
		r.clean()
	}
}
