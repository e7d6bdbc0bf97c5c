package runner_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

const compacting = `
schema = 1
title = "It ends with a step that one format cannot do"
[image]
size = "16 MB"
filesystem = "exFAT"
[matrix]
format = ["UDRW", "UDSB"]
[files.few]
sizes = ["100 kB"]
[run]
rounds = 2
canary = false
baseline = true
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "detach" },
  { do = "compact" },
]
`

// seenPaths notes the paths of all operations.
type seenPaths struct {
	mu    sync.Mutex
	paths string
}

func (s *seenPaths) Before(op hostio.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths += op.Path + "\n"
	return nil
}
func (*seenPaths) After(hostio.Op, int, error) {}

// What cannot be done is known before a case begins: nothing of it is written, in no round, and it is told once.
func TestUnsupportedStepSkipsTheCaseBeforeItWrites(t *testing.T) {
	c := config(t, compacting)
	c.Engine = inprocess.New(nil)
	var told heard
	c.Progress = &told
	seen := &seenPaths{}
	c.Hook = seen
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, runner.StatusDone, out.Status)
	assert.NotContains(t, seen.paths, "case01-", "the image of format=UDRW was touched")
	assert.Contains(t, seen.paths, "case02-")
	r := fold(t, c.Out)
	assert.Equal(t, result.Skipped, r.Cases[0].Status)
	assert.Equal(t, "compact: in-process does not support compacting UDRW; hint: use a sparse format, or let attaching trim the image", r.Cases[0].Reason)
	assert.Empty(t, r.Cases[0].Steps)
	assert.Equal(t, result.Done, r.Cases[1].Status, r.Cases[1].Reason)
	assert.Equal(t, 1, strings.Count(strings.Join(told.said, "\n"), "1 of 3 cases will be skipped:\n  format=UDRW: compact: in-process does not support"))
}

// A run in which every image is skipped has measured nothing that it was about, whatever the native folder did.
func TestRunOfSkippedImagesAlone(t *testing.T) {
	for name, text := range map[string]string{
		"a step":        strings.Replace(compacting, `"UDRW", "UDSB"`, `"UDRW"`, 1),
		"a file system": strings.Replace(compacting, `"exFAT"`, `"APFS"`, 1),
	} {
		c := config(t, text)
		c.Engine = inprocess.New(nil)
		out, err := runner.Run(t.Context(), c)
		require.NoError(t, err, name)
		assert.Equal(t, runner.StatusSkipped, out.Status, name)
		r := fold(t, c.Out)
		assert.Equal(t, result.Done, r.Cases[len(r.Cases)-1].Status, "the native folder, of %s", name)
		assert.Equal(t, result.Skipped, r.Status, name)
	}
}

func TestUnsupportedCases(t *testing.T) {
	head := strings.SplitAfter(compacting, "[[protocol]]\n")[0]
	steps := func(list string) string { return head + "steps = [\n" + list + "\n]\n" }
	made := `{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "detach" },`
	encrypted := strings.Replace(strings.Replace(compacting, `"UDRW", "UDSB"`, `"ASIF"`, 1), "[matrix]", "encryption = \"AES-256\"\n[matrix]", 1)
	ideal := hdiutil.Ideal()
	ours, apple := ideal[0], ideal[1]
	for name, test := range map[string]struct {
		text string
		e    engine.Engine
		want []string // case and reason
	}{
		"compact":                   {compacting, inprocess.New(nil), []string{"format=UDRW compact: in-process does not support compacting UDRW"}},
		"compact by Apple's":        {compacting, apple, []string{"format=UDRW compact: hdiutil (Apple) does not support compacting UDRW"}},
		"compact is to fail":        {strings.Replace(compacting, `"compact"`, `"compact", expect = "fail"`, 1), inprocess.New(nil), nil},
		"encrypted ASIF":            {strings.Replace(encrypted, `{ do = "compact" },`, "", 1), inprocess.New(nil), []string{"format=ASIF in-process does not support encrypted ASIF, which has no published layout"}},
		"encrypted ASIF by ours":    {strings.Replace(encrypted, `{ do = "compact" },`, "", 1), ours, []string{"format=ASIF diskutil (dmgbench work-alike) does not support encryption of ASIF images"}},
		"encrypted ASIF by Apple's": {strings.Replace(encrypted, `{ do = "compact" },`, "", 1), apple, nil},
		"AES-128 ASIF by Apple's":   {strings.Replace(strings.Replace(encrypted, `{ do = "compact" },`, "", 1), "AES-256", "AES-128", 1), apple, []string{"format=ASIF diskutil (Apple) does not support encryption AES-128"}},
		"inside a repeat": {steps(made + `{ do = "repeat", times = 2, steps = [ { do = "compact" } ] },`), inprocess.New(nil),
			[]string{"format=UDRW compact: in-process does not support compacting UDRW"}},
		"damage":                  {strings.Replace(steps(made+`{ do = "damage", kind = "band-missing", as = "bad" },`), `"UDRW", "UDSB"`, `"UDSB"`, 1), inprocess.New(nil), nil},
		"of what a convert makes": {steps(made + `{ do = "convert", format = "UDSB", as = "other" }, { do = "compact", on = "other" },`), inprocess.New(nil), nil},
		"codec": {steps(`{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "copy", phase = "in", from = "in", to = "a" }, { do = "stream", phase = "s", from = "a", to = "b", codec = "lzfse" },`) +
			"[inputs.in]\nabout = \"any\"\noptional = true\nsize = \"1 MB\"\n", inprocess.New(nil), []string{
			"format=UDRW stream s: in-process does not support codec lzfse, which takes a mounted volume and macOS",
			"format=UDSB stream s: in-process does not support codec lzfse, which takes a mounted volume and macOS"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, problems := plan.Parse("p", []byte(strings.Replace(test.text, "baseline = true", "baseline = false", 1)))
			require.Empty(t, problems.Errors())
			var got []string
			for _, u := range runner.UnsupportedCases(p, test.e) {
				got = append(got, u.Case.ID+" "+u.Error())
				assert.NotZero(t, u.Step.Line)
			}
			assert.Equal(t, test.want, got)
		})
	}
}
