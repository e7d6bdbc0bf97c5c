package analysis

import (
	"hash/fnv"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// planOf parses a plan of a test.
func planOf(t require.TestingT, text string) *plan.Plan {
	p, problems := plan.Parse("test", []byte(text))
	if problems != nil {
		require.Empty(t, problems.Errors(), "%v", problems.Errors())
	}
	return p
}

// moment is where in a run a law is asked.
type moment struct {
	c     plan.Case
	step  plan.Step
	round int
	cycle int
	order int // file within the step
	size  int64
}

// format is the case's format, "native" for a directory.
func (m moment) format() string {
	if m.c.Settings.Target == "directory" {
		return "native"
	}
	return m.c.Settings.Format
}

// noise is a reproducible number in [-1, 1] of the moment and some name.
func (m moment) noise(name string) float64 {
	h := fnv.New64a()
	for _, s := range []string{name, m.c.ID, m.step.Do, m.step.Phase} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	h.Write([]byte{byte(m.round), byte(m.cycle), byte(m.order), byte(m.order >> 8)})
	x := h.Sum64() // FNV leaves the upper bits alone: the mixing of SplitMix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return 2*float64((x^x>>31)>>11)/(1<<53) - 1
}

// laws say how a machine behaves.
type laws struct {
	rate    func(m moment) float64        // bytes per second of one file
	latency float64                       // seconds a file
	seconds func(m moment) float64        // of any other step
	disk    func(m moment) result.DiskUse // of measure
	freed   func(m moment) int64
	stream  func(m moment) (seconds float64, in, out int64)
	fail    func(m moment) string // error of a step
	skip    func(c plan.Case) (status, reason string)
	engine  result.Engine
	host    result.Host
	idle    int64 // ns between files
}

func apple() result.Engine {
	return result.Engine{Name: "hdiutil", Vendor: "Apple", Version: "26.4", Title: "hdiutil (Apple, macOS 26.4)"}
}

func own() result.Engine {
	return result.Engine{Name: "inprocess", Vendor: "dmgbench", Title: "in-process"}
}

// steady is a machine whose formats have fixed rates, with a little noise.
func steady(rates map[string]float64, noise float64) laws {
	return laws{engine: apple(), latency: 1e-4, idle: 1000,
		rate: func(m moment) float64 {
			round := moment{c: m.c, step: m.step, round: m.round, cycle: m.cycle}
			return rates[m.format()] * (1 + noise*round.noise("round")) * (1 + noise*m.noise("file"))
		}}
}

// play runs a plan on a machine that obeys the laws.
func play(p *plan.Plan, rounds int, l laws) *result.Result {
	r := &result.Result{Schema: result.SchemaVersion, Run: "test", Rounds: rounds,
		Sessions: []result.Session{{Index: 1, Engine: l.engine, Host: l.host}}}
	for _, c := range p.Cases() {
		r.Cases = append(r.Cases, playCase(p, c, rounds, l))
	}
	return r
}

func playCase(p *plan.Plan, c plan.Case, rounds int, l laws) result.Case {
	s := c.Settings
	out := result.Case{ID: c.ID, Baseline: c.Baseline, Status: result.Done, Target: result.Target{Kind: s.Target, Place: s.Place,
		Format: s.Format, Encryption: s.Encryption, Size: int64(s.Size), BandSize: int64(s.BandSize), BandSizeUsed: int64(s.BandSize)}}
	if len(s.Filesystems) > 0 {
		out.Target.Filesystem = s.Filesystems[0]
	}
	for _, kv := range c.Keys {
		out.Keys = append(out.Keys, [2]string{kv.Key, kv.Value})
	}
	if l.skip != nil {
		if status, reason := l.skip(c); status != "" {
			out.Status, out.Reason = status, reason
			return out
		}
	}
	for round := 1; round <= rounds; round++ {
		out.Rounds = append(out.Rounds, result.CaseRound{Round: round, Status: result.Done})
		pl := &player{p: p, l: l, m: moment{c: c, round: round}, out: &out}
		pl.all(c.Steps, 0)
	}
	return out
}

type player struct {
	p    *plan.Plan
	l    laws
	m    moment
	out  *result.Case
	at   int64
	next int
	live int64
}

func (pl *player) all(steps []plan.Step, cycle int) {
	for _, st := range steps {
		if st.Do == "repeat" {
			for n := range st.Times {
				pl.all(st.Steps, n+1)
			}
			continue
		}
		pl.m.step, pl.m.cycle, pl.m.order = st, cycle, 0
		pl.one(st, cycle)
	}
}

func (pl *player) one(st plan.Step, cycle int) {
	l, m := pl.l, pl.m
	step := result.Step{Index: pl.next, Do: st.Do, Phase: st.Phase, Round: m.round, Cycle: cycle, Session: 1, StartNS: pl.at, DurationNS: 1e7,
		Expect: st.Expect, Workers: m.c.Settings.Workers}
	pl.next++
	if l.fail != nil {
		step.Error = l.fail(m)
	}
	if l.seconds != nil {
		step.DurationNS = int64(l.seconds(m) * 1e9)
	}
	switch st.Do {
	case "write", "read":
		pl.files(&step)
	case "measure":
		if l.disk != nil {
			d := l.disk(m)
			step.Disk = &d
		}
		step.Live = pl.live
	case "compact", "trim":
		if l.freed != nil {
			step.BytesFreed = l.freed(m)
		}
	case "stream":
		if l.stream != nil {
			seconds, in, out := l.stream(m)
			step.DurationNS = int64(math.Round(seconds * 1e9))
			step.Stream = &result.Stream{Codec: m.c.Settings.Codec, In: in, Out: out, Ratio: float64(in) / float64(out), Saving: 1 - float64(out)/float64(in)}
		}
	}
	pl.at += step.DurationNS
	pl.out.Steps = append(pl.out.Steps, step)
}

// files times every file of the case's only file set, on one worker.
func (pl *player) files(step *result.Step) {
	step.Op = step.Do
	at := pl.at
	step.Span = &result.Span{GateNS: at}
	for set, sizes := range pl.p.Files[0].Draw(1) {
		for _, size := range sizes {
			m := pl.m
			m.size = int64(size)
			m.order = len(step.Samples)
			d := int64(math.Round((pl.l.latency + float64(size)/pl.l.rate(m)) * 1e9))
			step.Samples = append(step.Samples, result.Sample{File: "f", Bytes: int64(size), StartNS: at, DurationNS: d, Order: m.order, Set: set + 1})
			at += d + pl.l.idle
			step.Span.Bytes += int64(size)
			step.Span.BusyNS += d
			step.Span.IdleNS += pl.l.idle
			pl.live += int64(size)
		}
	}
	step.Span.LastDoneNS = at
	step.DurationNS = at - pl.at
}

// analysed runs a plan and analyses the result.
func analysed(t *testing.T, p *plan.Plan, rounds int, l laws) *result.Result {
	t.Helper()
	r := play(p, rounds, l)
	require.NoError(t, Analyze(p, r, Options{}))
	return r
}

func summaryOf(t *testing.T, r *result.Result, id, phase, op string) result.Summary {
	t.Helper()
	for _, s := range r.Summaries {
		if s.Case == id && s.Phase == phase && s.Op == op {
			return s
		}
	}
	require.Fail(t, "no summary", "%s %s %s", id, phase, op)
	return result.Summary{}
}
