package hdiutil

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

func (r *rig) witness(s engine.Spec, o engine.AttachOptions) engine.Report {
	r.t.Helper()
	r.images++
	c := r.create("w"+strings.Repeat("x", r.images), s)
	a := r.attach(c, o)
	_, err := a.Detach(r.t.Context(), false)
	require.NoError(r.t, err)
	return a.ReportAfterDetach(r.t.Context())
}

// logging makes the stand-in log(1), too.
func logging(o *Options) { o.Log = []string{filepath.Join(filepath.Dir(o.Hdiutil[0]), "log")} }

// What APFS said of trimming this image's container is kept, and nothing of others.
func TestTrimLog(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "none"}), logging)
	rep := r.witness(spec("UDRW"), engine.AttachOptions{})
	assert.Len(t, strings.Split(rep.Reported["trim_log"], "\n"), 3)
	assert.Contains(t, rep.Reported["trim_log"], "trims took 0.000643 s")
	assert.NotContains(t, rep.Reported["trim_log"], "1.5 s")
	assert.Empty(t, rep.Reported["trim_log_unknown"])
	assert.Contains(t, r.last("show"), "log show --style ndjson --start @")
	for name, rep := range map[string]engine.Report{
		"HFS+": r.witness(spec("UDRW", on("HFS+")), engine.AttachOptions{}), "read-only": r.witness(spec("UDSB"), engine.AttachOptions{ReadOnly: true}),
		"not mounted": r.witness(spec("UDSB"), engine.AttachOptions{NoMount: true}),
	} {
		assert.Empty(t, rep.Reported, name)
	}
	assert.Len(t, r.verbs("show"), 1)
	r.clean()
}

// APFS of macOS 27 logs trims by another function's name.
func TestTrimLogOfNewerAPFS(t *testing.T) {
	r := newRig(t, FakeConfig{Trims: "spaceman_trim_free_blocks"}, logging)
	rep := r.witness(spec("UDRW"), engine.AttachOptions{})
	assert.Contains(t, rep.Reported["trim_log"], "spaceman_trim_free_blocks:4106")
	assert.Contains(t, rep.Reported["trim_log"], "trims took 0.000643 s")
	r.clean()
}

// CheckLog says before any run whether the log can be read.
func TestCheckLog(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "none"}), logging)
	require.NoError(t, r.e.CheckLog(t.Context()))
	assert.Len(t, r.verbs("show"), 1)
	r = newRig(t, rules(FakeRule{Verb: "show", From: 1, Do: "fail", Text: "log: Could not open local log store: Operation not permitted", Status: 64}), logging)
	assert.ErrorContains(t, r.e.CheckLog(t.Context()), "Could not open local log store")
	r = newRig(t, rules(FakeRule{Verb: "none"}))
	assert.ErrorIs(t, r.e.CheckLog(t.Context()), errors.ErrUnsupported)
}

// A log that may not be read is asked once; every attachment says why it knows nothing.
func TestTrimLogThatCannotBeRead(t *testing.T) {
	for do, want := range map[string]string{"fail": "Could not open local log store", "garbage": "no result", "hang": Deadline.name} {
		t.Run(do, func(t *testing.T) {
			r := newRig(t, rules(FakeRule{Verb: "show", From: 1, Do: do, Text: "log: Could not open local log store: Operation not permitted", Status: 64}),
				logging)
			for range 2 {
				rep := r.witness(spec("UDRW"), engine.AttachOptions{})
				assert.Contains(t, rep.Reported["trim_log_unknown"], want)
				assert.Empty(t, rep.Reported["trim_log"])
			}
			assert.Len(t, r.verbs("show"), 1)
			r.clean()
		})
	}
	r := newRig(t, rules(FakeRule{Verb: "none"}), func(o *Options) { o.Log = []string{"/no/such/log"} })
	assert.Contains(t, r.witness(spec("UDRW"), engine.AttachOptions{}).Reported["trim_log_unknown"], Missing.name)
	r = newRig(t, rules(FakeRule{Verb: "none"}))
	assert.Empty(t, r.witness(spec("UDRW"), engine.AttachOptions{}).Reported, "the work-alike trims by itself")
	require.Equal(t, 20*time.Second, deadlineOf("show", 0))
}
