package hdiutil

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/plans"
)

// Of schedules a run draws 300, and with DMGBENCH_LONG 10,000; an explicit -rapid.checks wins, since flags are parsed
// later. Two tests draw a half each.
func init() {
	checks := "150"
	if os.Getenv("DMGBENCH_LONG") != "" {
		checks = "5000"
	}
	_ = flag.Set("rapid.checks", checks)
	debug.SetGCPercent(400) // collecting garbage was a fourth of the time
}

// whole is a plan with every step that the driver has a verb for.
const whole = `
schema = 1
title = "A whole life"
[image]
size = "32 MiB"
filesystem_preference = ["APFS"]
[io]
cache = "buffered"
[files.few]
sizes = ["3 kB", "1 kB"]
[run]
rounds = 1
canary = false
[matrix]
format = ["UDRW", "UDSB", "UDSP", "ASIF"]
encryption = ["none", "AES-256"]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "few" },
  { do = "remount" },
  { do = "verify", phase = "new" },
  { do = "detach" },
  { do = "resize", size = "48 MiB" },
  { do = "check", what = "volume" },
  { do = "check", what = "container" },
  { do = "convert", as = "packed", format = "UDZO" },
  { do = "check", what = "container", on = "packed" },
  { do = "attach", on = "packed" },
  { do = "read", phase = "new", on = "packed" },
  { do = "detach", on = "packed" },
  { do = "attach" },
  { do = "read", phase = "again" },
  { do = "delete", all = true },
  { do = "detach" },
  { do = "measure", phase = "end" },
]
`

// published are plans whose steps the model's images can take.
var published = []string{"quick", "udrw-sparse-2024", "encryption-cost-2026", "read-only-formats", "shipping", "survival",
	"which-image", "backends", "home-folder", "layers", "space-efficiency-2024", "band-size-fine", "aging", "sync-delta"}

// smallPlan is one case of a plan, with few and small files, read once.
func smallPlan(t require.TestingT, name string, number int) *plan.Plan {
	plansLock.Lock()
	defer plansLock.Unlock()
	key := fmt.Sprint(name, number)
	if p := smallPlans[key]; p != nil {
		return p
	}
	text, o := []byte(whole), plan.Overrides{}
	if name != "whole" {
		text, _ = plans.Get(name)
		o = plan.Overrides{Sets: 2, Scale: 0.0001, Rounds: 1}
	}
	p, problems := plan.Parse(name, text)
	require.True(t, problems == nil || len(problems.Errors()) == 0, "%v", problems)
	for i := range p.Inputs {
		p.Inputs[i].Size /= 16
	}
	for _, set := range p.Files {
		for i := range set.Parts {
			part := &set.Parts[i]
			part.Count = min(part.Count, 3)
			if n := len(part.Sizes); n > 2 && !bytes.Contains(text, []byte("largest = ")) {
				part.Sizes = append(part.Sizes[:1:1], part.Sizes[n-1])
			}
		}
	}
	p.Run.Canary = false
	all := slices.DeleteFunc(p.Cases(), func(c plan.Case) bool { return c.Baseline })
	var only []string
	for _, kv := range all[number%len(all)].Keys {
		only = append(only, kv.Key+"="+kv.Value)
	}
	var err error
	if len(only) > 0 {
		o.Only, err = p.ParseSelector(strings.Join(only, ","))
		require.NoError(t, err)
	}
	p, _, err = p.Apply(o)
	require.NoError(t, err)
	for _, block := range p.Protocol {
		for i := range block.Steps {
			block.Steps[i].Times = min(block.Steps[i].Times, 2)
		}
	}
	smallPlans[key] = p
	return p
}

var (
	plansLock  sync.Mutex
	smallPlans = map[string]*plan.Plan{}
)

// costs are how long the tools take.
var costs = map[string]time.Duration{
	"create": time.Second, "attach": 300 * time.Millisecond, "detach": 150 * time.Millisecond, "eject": 260 * time.Millisecond,
	"info": 20 * time.Millisecond, "convert": 2 * time.Second, "compact": 700 * time.Millisecond, "resize": 500 * time.Millisecond,
	"imageinfo": 40 * time.Millisecond, "verify": 900 * time.Millisecond, "verifyVolume": 1100 * time.Millisecond,
	"repairVolume": 1300 * time.Millisecond, "image create blank": 440 * time.Millisecond, "image create from": 1800 * time.Millisecond,
	"image attach": 230 * time.Millisecond, "image info": 50 * time.Millisecond, "image resize": 460 * time.Millisecond, "show": 3 * time.Second,
	"registry": 30 * time.Millisecond, "fsck": 800 * time.Millisecond,
}

// machines are the tools of each macOS.
var machines = map[string]FakeConfig{
	"macOS 13.6": {NoImage: true},
	"macOS 14.7": {NoASIF: true, Brief: true},
	"macOS 15.7": {NoASIF: true},
	"macOS 26.4": {Reuse: true},
	"macOS 26.6": {Reuse: true, Bare: true},
	"macOS 27.0": {Reuse: true, Makes: true, Trims: "spaceman_trim_free_blocks"},
}

// misbehaviour is one way in which the machine fails.
type misbehaviour struct {
	FakeRule
	verbs   string // separated by commas
	passing bool   // the driver has to get over it
}

const (
	making   = "create,image create blank,convert,image create from"
	changing = "resize,image resize,compact"
	mounting = "attach,image attach"
	leaving  = "detach,eject"
	asking   = "info,registry,imageinfo,image info,verify,verifyVolume"
	working  = making + "," + changing + "," + mounting + "," + asking
)

// misbehaviours are all that were seen.
var misbehaviours = []misbehaviour{
	{FakeRule{Do: "busy"}, working + "," + leaving, true},
	{FakeRule{Do: "eagain"}, working + "," + leaving, true},
	{FakeRule{Do: "eagain-foreign"}, working, true},
	{FakeRule{Do: "fail", Status: 1, Text: "[99% completed] Error: Failed to create disk image: The operation couldn’t be completed. Resource temporarily unavailable"}, making, true},
	{FakeRule{Do: "fail", Status: 1, Text: "hdiutil: it failed - Device not configured"}, "create,image create blank,resize,image resize," + mounting, true},
	{FakeRule{Do: "fail", Status: 1, Half: true, Text: "hdiutil: create failed - image not recognized"}, "create", true},
	{FakeRule{Do: "deprecated"}, working + "," + leaving, true},
	{FakeRule{Do: "slow", After: 20 * time.Second}, working + "," + leaving + ",show", true},
	{FakeRule{Do: "licence"}, mounting, true},
	{FakeRule{Do: "short"}, "info", true},
	{FakeRule{Do: "lingers", After: 2 * time.Second}, leaving, true},
	{FakeRule{Do: "fail-after", Status: 1, Text: "hdiutil: detach failed - No such file or directory"}, leaving, true},
	{FakeRule{Do: "unmounts"}, leaving, true},
	{FakeRule{Do: "nothing"}, leaving, true},
	{FakeRule{Do: "hang"}, leaving, false},
	{FakeRule{Do: "fail", Status: 1, Text: "hdiutil: 操作失败 - 装置が構成されていません"}, working + "," + leaving, false},
	{FakeRule{Do: "fail", Status: 1, Half: true, Text: "hdiutil: create failed - No space left on device"}, making, false},
	{FakeRule{Do: "nothing"}, making + "," + changing + "," + mounting, false},
	{FakeRule{Do: "hang"}, working + ",show", false},
	{FakeRule{Do: "hang-after"}, working + "," + leaving, false},
	{FakeRule{Do: "lands", After: 3 * time.Second}, working + "," + leaving, false},
	{FakeRule{Do: "killed"}, working + "," + leaving, false},
	{FakeRule{Do: "garbage"}, working + ",show", false},
	{FakeRule{Do: "empty"}, working, false},
	{FakeRule{Do: "truncated"}, "info,imageinfo,image info," + mounting, false},
	{FakeRule{Do: "late", After: time.Second}, mounting, true},
	{FakeRule{Do: "late", After: 20 * time.Second}, mounting, true},
	{FakeRule{Do: "unmounted"}, mounting, true},
	{FakeRule{Do: "vanishes"}, mounting, true},
	{FakeRule{Do: "read-only"}, mounting, false},
	{FakeRule{Do: "fail-after", Status: 1, Text: "hdiutil: resize: failed. No such file or directory (2)"}, "resize,image resize", true},
	{FakeRule{Do: "sleep", After: time.Hour}, working + "," + leaving, false},
	{FakeRule{Do: "interrupt"}, working + "," + leaving, false},
	{FakeRule{Do: "fail", Status: 64, Text: "log: Could not open local log store: Operation not permitted"}, "show", true},
}

// schedule is one plan on one machine with what goes wrong.
type schedule struct {
	Plan    string
	Case    int
	MacOS   string
	Rules   []FakeRule
	Passing bool // all of it passes: every case is done
	Endless bool // something never ends
}

func drawSchedule(t *rapid.T, plans []string) schedule {
	s := schedule{Passing: true}
	s.Plan = rapid.SampledFrom(plans).Draw(t, "plan")
	s.Case = rapid.IntRange(0, 7).Draw(t, "case")
	s.MacOS = rapid.SampledFrom([]string{"macOS 26.4", "macOS 26.6", "macOS 27.0", "macOS 15.7", "macOS 14.7", "macOS 13.6"}).Draw(t, "macOS")
	perVerb := map[string]int{}
	for range rapid.IntRange(0, 4).Draw(t, "rules") {
		m := rapid.SampledFrom(misbehaviours).Draw(t, "misbehaviour")
		r := m.FakeRule
		r.Verb = rapid.SampledFrom(strings.Split(m.verbs, ",")).Draw(t, "verb")
		r.From = rapid.IntRange(1, 5).Draw(t, "from")
		times := rapid.SampledFrom([]int{1, 1, 2, 0}).Draw(t, "times")
		if times > 0 {
			r.To = r.From + times - 1
		}
		weak := times > 1 && (r.Do == "late" || r.Do == "unmounted" || r.Do == "vanishes" || r.Do == "fail" || r.Do == "nothing" || r.Do == "unmounts")
		harmless := r.Do == "deprecated" || r.Do == "licence" || r.Do == "slow" || r.Do == "lingers" || r.Verb == "show"
		if perVerb[r.Verb]++; perVerb[r.Verb] > 1 || weak {
			s.Passing = s.Passing && harmless
		}
		s.Endless = s.Endless || times == 0 && !harmless
		s.Passing = s.Passing && m.passing && (times > 0 || harmless)
		s.Rules = append(s.Rules, r)
	}
	// Of the model's images only plain ones show their size after a resize that says that it failed.
	s.Passing = s.Passing && (s.Plan == "whole" && s.Case == 0 || perVerb["resize"]+perVerb["image resize"] == 0)
	// Both ways to detach may not fail together.
	if perVerb["detach"] > 0 && perVerb["eject"] > 0 || perVerb["info"] > 0 && len(s.Rules) > 1 {
		s.Passing = false
	}
	return s
}

// played is a schedule that is played.
type played struct {
	schedule
	*rapid.T
	dir      string
	tool     *FakeTool
	c        runner.Config
	e        *Engine
	sessions []time.Duration
}

// probedMachines are the capabilities of the machines, asked for once.
var probedMachines = map[string]capabilities{}

func play(t *rapid.T, s schedule, dir string) *played {
	config := machines[s.MacOS]
	config.Cost, config.Rules = costs, s.Rules
	p := &played{schedule: s, T: t, dir: dir, tool: NewFakeTool(filepath.Join(dir, "tool"), config)}
	clk := FakeClock{Clock: p.tool.Clock, Of: p.tool}
	work := filepath.Join(dir, "work")
	require.NoError(t, os.MkdirAll(work, 0o700))
	o := Apple(s.MacOS, clk)
	o.Hdiutil, o.Diskutil, o.Log = p.tool.Command("hdiutil"), p.tool.Command("diskutil"), p.tool.Command("log")
	o.Ioreg, o.FsckAPFS = p.tool.Command("ioreg"), p.tool.Command("fsck_apfs")
	o.Host, o.Run, o.WorkDir, o.Passphrase = p.tool.Host(), p.tool.Run, work, []byte("of a run")
	var err error
	p.e, err = newUnprobed(o)
	require.NoError(t, err)
	p.e.can = capabilitiesOf(t, s.MacOS, p.e)
	p.tool.Occupy("/elsewhere/foreign.dmg", "")
	p.c = runner.Config{
		Plan: smallPlan(t, s.Plan, s.Case), Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: filepath.Join(dir, "run"),
		Engine: p.e, Why: "a test", Clock: clk, StateDir: filepath.Join(dir, "state"), Volatile: true, Memory: 64 << 20,
		Suspended: func() (time.Duration, error) { return p.tool.slept, nil },
	}
	for _, c := range p.c.Plan.Cases() {
		names := []string{c.Settings.Place}
		for _, st := range c.Steps {
			names = append(names, st.Place)
		}
		for _, name := range names {
			path := filepath.Join(dir, "place-"+name)
			if _, err := os.Stat(path); name != "" && err != nil {
				require.NoError(t, os.Mkdir(path, 0o700))
				p.c.Places = append(p.c.Places, runner.Place{Name: name, Path: path})
			}
		}
	}
	return p
}

// capabilitiesOf asks the tools of a macOS once.
func capabilitiesOf(t require.TestingT, macOS string, e *Engine) capabilities {
	plansLock.Lock()
	defer plansLock.Unlock()
	if _, ok := probedMachines[macOS]; !ok {
		tool := NewFakeTool("/tools", machines[macOS])
		o := e.o
		o.Run, o.Hdiutil, o.Diskutil = tool.Run, tool.Command("hdiutil"), tool.Command("diskutil")
		asked, err := New(context.Background(), o)
		require.NoError(t, err)
		probedMachines[macOS] = asked.can
	}
	return probedMachines[macOS]
}

// run runs the plan, and goes on after interrupts.
func (p *played) run() *result.Result {
	out, err := p.session(func(ctx context.Context) (runner.Outcome, error) { return runner.Run(ctx, p.c) })
	for n := 0; err == nil && out.Status == runner.StatusInterrupted || err != nil && p.Endless && n < 20; n++ {
		switch {
		case err != nil: // what it says is to be mended before it goes on
			p.tool.c.Rules, p.Endless = nil, false
		case !p.Endless:
			p.nothingAttached("after an interrupt")
		case n > 5: // somebody who interrupts everything gives up at last
			p.tool.c.Rules = nil
		}
		out, err = p.session(func(ctx context.Context) (runner.Outcome, error) { return runner.Resume(ctx, p.c.Out, p.c) })
	}
	if err != nil {
		p.Fatalf("the run: %v", err)
	}
	rd, err := result.OpenRun(p.c.Out)
	require.NoError(p, err)
	defer rd.Close()
	recs, err := rd.Journal()
	require.NoError(p, err)
	r, err := result.Fold(recs)
	require.NoError(p, err)
	return r
}

// session is one session, which an interrupt may end.
func (p *played) session(do func(context.Context) (runner.Outcome, error)) (runner.Outcome, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.tool.OnInterrupt = cancel
	p.sessions = append(p.sessions, p.tool.Clock.Now())
	return do(ctx)
}

func (p *played) own() (list []FakeMount) {
	return slices.DeleteFunc(p.tool.Attached(), func(a FakeMount) bool { return a.Image == "/elsewhere/foreign.dmg" })
}

// nothingAttached wants no image attached, or that the run says so and clean detaches it.
func (p *played) nothingAttached(when string) {
	p.tool.Settle(10 * time.Minute)
	if list := p.own(); len(list) > 0 {
		p.Fatalf("%s %v is attached", when, list)
	}
}

// check holds what a run left, and its result, against what happened on the machine.
func (p *played) check(r *result.Result) {
	if len(p.tool.Broken) > 0 {
		p.Fatalf("broken: %v", p.tool.Broken)
	}
	for _, c := range r.Cases {
		switch {
		case c.Status == result.Done:
		case p.Passing && c.Status == result.Failed:
			p.Fatalf("%s failed: %s", c.ID, c.Reason)
		case c.Status != result.Failed && c.Status != result.Skipped && c.Status != result.Discarded, c.Reason == "":
			p.Fatalf("%s is %s: %q", c.ID, c.Status, c.Reason)
		}
	}
	p.checkFigures(r)
	p.tool.Settle(10 * time.Minute)
	if left := p.left(); len(left) > 0 {
		p.checkCleaned(r, left)
	}
	if n := len(p.tool.Attached()); n != 1 {
		p.Fatalf("%d images are attached, somebody else's was one", n)
	}
	if limit := 24 * time.Hour; p.tool.Clock.Now() > limit {
		p.Fatalf("it took %s", p.tool.Clock.Now())
	}
}

// left are attached images of ours, mount points, and folders at the places.
func (p *played) left() (list []string) {
	for _, a := range p.own() {
		list = append(list, fmt.Sprintf("attached: %+v", a))
	}
	for _, pattern := range []string{"work/*", "run/dmgbench-*", "place-*/*"} {
		names, _ := filepath.Glob(filepath.Join(p.dir, pattern))
		list = append(list, names...)
	}
	return list
}

// checkCleaned: what a fault without an end left was named, and goes with clean when the fault ends.
func (p *played) checkCleaned(r *result.Result, left []string) {
	if !p.Endless {
		p.Fatalf("%q is left", left)
	}
	if !slices.ContainsFunc(r.Warnings, func(w result.Warning) bool { return w.Kind == "cleanup" }) {
		p.Fatalf("%q is left, and no warning says so", left)
	}
	p.tool.c.Rules = nil
	var said bytes.Buffer
	err := runner.Clean(context.Background(), p.c.StateDir, runner.CleanOptions{Release: p.e.Release, Clock: p.c.Clock}, &said)
	if err != nil {
		p.Fatalf("clean: %v", err)
	}
	points, _ := filepath.Glob(filepath.Join(p.dir, "work/*"))
	for _, point := range points { // as the command clean does
		os.Remove(point)
	}
	if left := p.left(); len(left) > 0 {
		p.Fatalf("%q is left after clean, which said %q", left, said.String())
	}
}

// timedVerbs are the verbs whose time is that of a step.
var timedVerbs = map[string]string{
	"create": making, "attach": mounting, "detach": leaving, "remount": mounting + "," + leaving, "convert": making,
	"resize": changing, "compact": changing, "check": mounting + "," + leaving + ",imageinfo,image info,verify,verifyVolume,repairVolume,fsck",
}

// secondWays are verbs that do what another one could not.
var secondWays = map[string]string{"eject": "detach", "image resize": "resize", "fsck": "verifyVolume"}

// checkFigures: the time of a step is that of the runs that made its result, and of nothing else.
func (p *played) checkFigures(r *result.Result) {
	start := func(st result.Step) time.Duration { return p.sessions[st.Session-1] + time.Duration(st.StartNS) }
	starts := []time.Duration{p.tool.Clock.Now()}
	for _, c := range r.Cases {
		for _, st := range c.Steps {
			starts = append(starts, start(st))
		}
	}
	slices.Sort(starts)
	for _, c := range r.Cases {
		if c.Target.Kind != "directory" {
			p.checkTimes(c, start, starts)
		}
	}
}

func (p *played) checkTimes(c result.Case, start func(result.Step) time.Duration, starts []time.Duration) {
	for _, st := range c.Steps {
		if st.Error != "" || slices.Contains([]string{"settle", "recover", "damage"}, st.Do) { // these wait, or do several things
			continue
		}
		from := start(st)
		n, _ := slices.BinarySearch(starts, from+1)
		to := starts[min(n, len(starts)-1)]
		last := map[string]time.Duration{}
		for _, call := range p.tool.calls {
			verb := call.Verb()
			switch {
			case call.Began < from || call.Ended > to:
			case !slices.Contains(strings.Split(timedVerbs[st.Do], ","), verb):
			default:
				if other := secondWays[verb]; other != "" {
					verb = other
				}
				last[verb] = call.Ended - call.Began + call.Late
			}
		}
		want := time.Duration(0)
		for _, d := range last {
			want += d
		}
		least := want
		if st.Do == "check" { // where a detach succeeded and nobody knew, its time is that of a failed try
			least -= last["detach"]
		}
		got := time.Duration(st.DurationNS)
		if st.Do == "remount" && want > 0 && got%want == 0 { // it may do so several times
			got = want
		}
		if got < least || got > want {
			p.Fatalf("%s %s %s took %s (and %s of retries), the tool %s: %v", c.ID, st.Do, st.Phase, got, time.Duration(st.RetryNS), want, st.Warnings)
		}
	}
}

// Whole plans run on machines that misbehave as Apple's do: whatever goes wrong, no image stays attached, no folder or
// file is left, somebody else's image is let alone, every case is done, failed or skipped with a reason, and no figure
// contains a failed try or a pause.
func TestSchedules(t *testing.T) {
	for _, plans := range [][]string{{"whole"}, append([]string{"whole"}, published[:len(published)*min(1, len(os.Getenv("DMGBENCH_LONG")))]...)} {
		t.Run(plans[len(plans)-1], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			rapid.Check(t, func(rt *rapid.T) {
				s := rapid.Custom(func(rt *rapid.T) schedule { return drawSchedule(rt, plans) }).Draw(rt, "schedule")
				one, err := os.MkdirTemp(dir, "run")
				require.NoError(rt, err)
				defer os.RemoveAll(one)
				p := play(rt, s, one)
				p.check(p.run())
			})
		})
	}
}
