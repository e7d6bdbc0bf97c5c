package hdiutil_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const protocol = `
schema = 1
title = "Through the driver"
[image]
size = "32 MiB"
filesystem_preference = ["APFS"]
[io]
cache = "buffered"
[files.few]
sizes = ["10 kB", "4097 B"]
sets = 2
[run]
rounds = 1
canary = false
[matrix]
format = ["UDRW", "UDSB", "ASIF"]
encryption = ["none", "AES-256"]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "few" },
  { do = "remount" },
  { do = "read", phase = "new" },
  { do = "verify", phase = "new" },
  { do = "detach" },
  { do = "measure", phase = "end" },
]
`

const runSecret = "a secret of one run"

// two are two cases of the protocol, which is enough for one to fail and the other not to.
var two = strings.NewReplacer(`["UDRW", "UDSB", "ASIF"]`, `["UDRW", "UDSB"]`, `["none", "AES-256"]`, `["AES-256"]`).Replace(protocol)

// drive runs a plan over a stand-in and returns the result, the stand-in and the run folder.
func drive(t *testing.T, text string, c hdiutil.FakeConfig) (*result.Result, *hdiutil.FakeTool, string) {
	tool := hdiutil.NewFakeTool(t.TempDir(), c)
	now, work := hdiutil.FakeClock{Clock: tool.Clock, Of: tool}, t.TempDir()
	o := hdiutil.Apple("macOS 26.4", now)
	o.Hdiutil, o.Diskutil, o.Host, o.WorkDir, o.Passphrase = tool.Command("hdiutil"), tool.Command("diskutil"), tool.Host(), work, []byte(runSecret)
	o.Log, o.Ioreg, o.Run = tool.Command("log"), tool.Command("ioreg"), tool.Run
	e, err := hdiutil.New(t.Context(), o)
	require.NoError(t, err)
	p, problems := plan.Parse("driver", []byte(text))
	require.True(t, problems == nil || len(problems.Errors()) == 0, "%v", problems)
	dir := t.TempDir()
	_, err = runner.Run(t.Context(), runner.Config{
		Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: filepath.Join(dir, "run"), Engine: e,
		Why: "a test", Clock: now, StateDir: filepath.Join(dir, "state"),
	})
	require.NoError(t, err)
	left, err := os.ReadDir(work)
	require.NoError(t, err)
	assert.Empty(t, left, "mount points")
	assert.Empty(t, tool.Attached())
	rd, err := result.OpenRun(filepath.Join(dir, "run"))
	require.NoError(t, err)
	defer rd.Close()
	recs, err := rd.Journal()
	require.NoError(t, err)
	r, err := result.Fold(recs)
	require.NoError(t, err)
	r.Cases = slices.DeleteFunc(r.Cases, func(c result.Case) bool { return c.Target.Kind == "directory" })
	return r, tool, filepath.Join(dir, "run")
}

func warnings(cs result.Case, do string) (list []string) {
	for _, st := range cs.Steps {
		for _, w := range st.Warnings {
			if st.Do == do {
				list = append(list, w.Text)
			}
		}
	}
	return list
}

// A whole run over the stand-in, busy now and then: every case is done, every
// retry is a warning of its step, and the secret is nowhere.
func TestRunThroughTheDriver(t *testing.T) {
	r, tool, dir := drive(t, protocol, hdiutil.FakeConfig{Rules: []hdiutil.FakeRule{
		{Verb: "attach", From: 1, To: 1, Do: "busy"}, {Verb: "detach", From: 2, To: 2, Do: "busy"},
		{Verb: "image create blank", From: 2, To: 2, Do: "eagain"}, {Verb: "*", From: 5, To: 5, Do: "deprecated"},
	}})
	require.Len(t, r.Cases, 6)
	retried, paused := 0, 0
	for _, cs := range r.Cases {
		require.Equal(t, result.Done, cs.Status, "%s: %s", cs.ID, cs.Reason)
		for _, do := range []string{"create", "attach", "remount", "detach"} {
			retried += len(warnings(cs, do))
		}
		for _, st := range cs.Steps {
			if len(st.Warnings) > 0 && strings.Contains(st.Warnings[0].Text, "500ms") {
				assert.EqualValues(t, 500*time.Millisecond, st.RetryNS, st.Do)
				paused++
			}
			if st.Do != "settle" {
				assert.Zero(t, st.DurationNS, "%s: the pause of a retry is in no duration", st.Do)
			}
		}
		assert.NotEmpty(t, cs.Steps[0].Reported, "create")
		assert.NotEmpty(t, cs.Steps[1].Reported["device"])
		assert.NotEmpty(t, cs.Steps[3].Reported["detach_ns"]+cs.Steps[3].Reported["eject_ns"], "of the remount")
		for _, i := range []int{3, 6} { // the remount and the detach
			assert.Contains(t, cs.Steps[i].Reported["trim_log"], "blocks trimmed in 7 extents", cs.Steps[i].Do)
		}
		assert.Equal(t, "APFS", cs.Target.Filesystem)
	}
	assert.Equal(t, 3, retried)
	assert.Equal(t, 2, paused, "the third is a detach, of which diskutil is asked at once")
	for _, c := range tool.Calls() {
		assert.NotContains(t, strings.Join(c.Args, " "), runSecret)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil {
			assert.NotContains(t, string(text), runSecret, f)
		}
	}
	folders, err := filepath.Glob(filepath.Join(dir, "dmgbench-*"))
	require.NoError(t, err)
	assert.Empty(t, folders, "containers")
}

// Whatever the tool does wrong ends its case with a reason, and nothing stays attached.
func TestRunOverABrokenTool(t *testing.T) {
	for _, rule := range []hdiutil.FakeRule{
		{Verb: "attach", From: 2, To: 2, Do: "garbage"},
		{Verb: "attach", From: 2, To: 2, Do: "empty"},
		{Verb: "attach", From: 1, To: 1, Do: "fail", Text: "hdiutil: attach fehlgeschlagen - Zugriff verweigert", Status: 1},
		{Verb: "create", From: 2, To: 2, Do: "nothing"},
		{Verb: "detach", From: 3, To: 6, Do: "fail", Text: "hdiutil: detach: drive not detached", Status: 1},
	} {
		t.Run(rule.Verb+"/"+rule.Do, func(t *testing.T) {
			list := []hdiutil.FakeRule{rule}
			if rule.Verb == "detach" {
				list = append(list, hdiutil.FakeRule{Verb: "eject", From: 1, To: 1, Do: "busy"})
			}
			r, _, _ := drive(t, two, hdiutil.FakeConfig{Rules: list})
			require.Len(t, r.Cases, 2)
			failed := 0
			for _, cs := range r.Cases {
				if cs.Status != result.Done {
					failed++
					assert.NotEmpty(t, cs.Reason)
				}
			}
			assert.Equal(t, 1, failed)
		})
	}
}
