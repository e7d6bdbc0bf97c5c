package hdiutil_test

import (
	"context"
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
	"dmgbench/plans"
)

// smallPlan is a published plan with small files and one of its cases.
func smallPlan(t require.TestingT, name string, number int) *plan.Plan {
	text, ok := plans.Get(name)
	require.True(t, ok)
	p, problems := plan.Parse(name, text)
	require.True(t, problems == nil || len(problems.Errors()) == 0, "%v", problems)
	for i := range p.Inputs {
		p.Inputs[i].Size /= 16
	}
	for _, set := range p.Files {
		for i := range set.Parts {
			part := &set.Parts[i]
			part.Count = min(part.Count, 3)
			if n := len(part.Sizes); n > 2 && !strings.Contains(string(text), "largest = ") {
				part.Sizes = append(part.Sizes[:1:1], part.Sizes[n-1])
			}
		}
	}
	p.Run.Canary = false
	var pairs []string
	all := slices.DeleteFunc(p.Cases(), func(c plan.Case) bool { return c.Baseline })
	for _, kv := range all[number%len(all)].Keys {
		pairs = append(pairs, kv.Key+"="+kv.Value)
	}
	o := plan.Overrides{Sets: 2, Scale: 0.0001, Rounds: 1}
	if len(pairs) > 0 {
		only, err := p.ParseSelector(strings.Join(pairs, ","))
		require.NoError(t, err)
		o.Only = only
	}
	p, _, err := p.Apply(o)
	require.NoError(t, err)
	for _, protocol := range p.Protocol {
		for i := range protocol.Steps {
			protocol.Steps[i].Times = min(protocol.Steps[i].Times, 2)
		}
	}
	return p
}

// costs are how long the tools take.
var costs = map[string]time.Duration{
	"create": time.Second, "attach": 300 * time.Millisecond, "detach": 150 * time.Millisecond, "eject": 260 * time.Millisecond,
	"info": 20 * time.Millisecond, "convert": 2 * time.Second, "compact": 700 * time.Millisecond, "resize": 500 * time.Millisecond,
	"imageinfo": 40 * time.Millisecond, "verify": 900 * time.Millisecond, "verifyVolume": 1100 * time.Millisecond, "repairVolume": 1300 * time.Millisecond,
	"image create blank": 440 * time.Millisecond, "image create from": 1800 * time.Millisecond, "image attach": 230 * time.Millisecond,
	"image info": 50 * time.Millisecond, "image resize": 460 * time.Millisecond, "show": 3 * time.Second,
}

func TestX(t *testing.T) {
	for _, name := range plans.Names() {
		for n := range 3 {
			p := smallPlan(t, name, n)
			dir := t.TempDir()
			tool := hdiutil.NewFakeTool(filepath.Join(dir, "tool"), hdiutil.FakeConfig{Cost: costs})
			start := time.Now()
			r, out, err := session(t, dir, tool, p)
			if err != nil {
				t.Log(name, n, err)
				continue
			}
			var st []string
			for _, c := range r.Cases {
				st = append(st, c.Status+":"+c.Reason[:min(90, len(c.Reason))])
			}
			t.Log(name, n, time.Since(start), out.Status, tool.Clock.Now(), st, len(tool.Calls()), tool.Broken)
		}
	}
}

func session(t require.TestingT, dir string, tool *hdiutil.FakeTool, p *plan.Plan) (*result.Result, runner.Outcome, error) {
	clk := hdiutil.FakeClock{Clock: tool.Clock, Of: tool}
	work := filepath.Join(dir, "work")
	require.NoError(t, os.MkdirAll(work, 0o700))
	o := hdiutil.Apple("macOS 26.4", clk)
	o.Hdiutil, o.Diskutil, o.Log = tool.Command("hdiutil"), tool.Command("diskutil"), tool.Command("log")
	o.Host, o.Run, o.WorkDir, o.Passphrase = tool.Host(), tool.Run, work, []byte("of a run")
	ctx := t.(interface{ Context() context.Context }).Context()
	e, err := hdiutil.New(ctx, o)
	require.NoError(t, err)
	c := runner.Config{
		Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "test"}, Out: filepath.Join(dir, "run"), Engine: e,
		Why: "a test", Clock: clk, StateDir: filepath.Join(dir, "state"), Volatile: true, Memory: 64 << 20,
	}
	for _, cs := range p.Cases() {
		names := []string{cs.Settings.Place}
		for _, st := range cs.Steps {
			names = append(names, st.Place)
		}
		for _, name := range names {
			path := filepath.Join(dir, "place-"+name)
			if _, err := os.Stat(path); name != "" && err != nil {
				require.NoError(t, os.Mkdir(path, 0o700))
				c.Places = append(c.Places, runner.Place{Name: name, Path: path})
			}
		}
	}
	out, err := runner.Run(ctx, c)
	if err != nil {
		return nil, out, err
	}
	rd, err := result.OpenRun(c.Out)
	require.NoError(t, err)
	defer rd.Close()
	recs, err := rd.Journal()
	require.NoError(t, err)
	r, err := result.Fold(recs)
	require.NoError(t, err)
	return r, out, nil
}

var _ = assert.Empty
var _ = slices.Contains[[]int]

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

func BenchmarkPlan(b *testing.B) {
	p, problems := plan.Parse("whole", []byte(whole))
	require.True(b, problems == nil || len(problems.Errors()) == 0, "%v", problems)
	only, err := p.ParseSelector("format=UDSB,encryption=none")
	require.NoError(b, err)
	p, _, err = p.Apply(plan.Overrides{Only: only})
	require.NoError(b, err)
	for b.Loop() {
		dir, _ := os.MkdirTemp("/dev/shm", "x")
		tool := hdiutil.NewFakeTool(filepath.Join(dir, "tool"), hdiutil.FakeConfig{Cost: costs})
		r, out, err := session(b, dir, tool, p)
		require.NoError(b, err)
		require.Equal(b, "done", out.Status, r.Cases[0].Reason)
		os.RemoveAll(dir)
	}
}
