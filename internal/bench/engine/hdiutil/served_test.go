package hdiutil

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

func servedAs(by string) func(*engine.Spec) { return func(s *engine.Spec) { s.ServedBy = by } }

// What is to serve an image reaches the tool, and what did serve it is noted.
func TestServedBy(t *testing.T) {
	r := newRig(t, FakeConfig{})
	for _, test := range []struct{ by, option, seen string }{{"", "", "loop"}, {"auto", "", ""}, {"kernel", " -kernel", ""}, {"helper", " -nokernel", "fuse+loop"}} {
		c := r.create("served"+test.by, spec("UDRW", servedAs(test.by)))
		r.e.host.ServedBy = func(device, kind, image string) string {
			assert.Contains(t, device, "/dev/disk")
			assert.NotEmpty(t, kind)
			assert.Equal(t, c.path, image)
			return test.seen
		}
		assert.Empty(t, c.Made().ServedBy, "nothing is attached yet")
		a := r.attach(c, engine.AttachOptions{NoMount: true})
		assert.Contains(t, r.last("attach"), " -noautoopen"+test.option+" -nomount ")
		_, err := a.Detach(t.Context(), false)
		require.NoError(t, err)
		a = r.attach(c, engine.AttachOptions{})
		_, err = a.Detach(t.Context(), false)
		require.NoError(t, err)
		assert.Equal(t, cmp.Or(test.seen, map[string]string{"kernel": "kernel"}[test.by]), c.Made().ServedBy)
	}
}

// What a tool cannot serve as asked is refused before anything is made.
func TestServedByWhatCannot(t *testing.T) {
	r := newRig(t, FakeConfig{})
	unable := func(s engine.Spec) string { return engine.Advised(r.e.Supports(s)) }
	require.NoError(t, r.e.Supports(spec("UDSP", servedAs("kernel"))), "on a Mac")
	assert.Contains(t, unable(spec("UDSB", servedAs("kernel"))), "the kernel alone serves UDRW, UDRO")
	assert.Contains(t, unable(spec("ASIF", servedAs("helper"))), "choosing what serves an image")
	r.e.o.Vendor = "dmgbench"
	require.NoError(t, r.e.Supports(spec("UDRW", servedAs("kernel"))))
	require.NoError(t, r.e.Supports(spec("UDSB", servedAs("helper"))))
	assert.Contains(t, unable(spec("UDSP", servedAs("kernel"))), "the kernel alone serves plain UDRW")
	assert.Contains(t, unable(spec("UDRW", encrypted("AES-256"), servedAs("kernel"))), "without a helper process")
	r.e.can.noFUSE = "load the module fuse"
	require.NoError(t, r.e.Supports(spec("UDRW", servedAs("kernel"))))
	assert.Contains(t, unable(spec("UDRW", servedAs("helper"))), "load the module fuse")
}
