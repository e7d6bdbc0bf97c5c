// Package reporttest makes results whose every figure follows from a stated law,
// for tests of what reads results. It measures nothing and uses no clock and no
// randomness: a call gives the same result every time.
package reporttest

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// MB is a million bytes.
const MB = 1_000_000

// sizes is the published set of 16 sizes, a hundredth of them.
var sizes = []int64{20_000, 40_000, 60_000, 80_000, 100_000, 200_000, 400_000, 600_000, 800_000, 1 * MB, 2 * MB, 4 * MB, 6 * MB, 8 * MB,
	10 * MB, 20 * MB}

// law is what one case would do on an ideal day: a file takes latency + bytes/rate.
type law struct {
	write, read float64 // B/s
	latency     float64 // s
}

// run builds a result step by step on a clock that only the laws advance.
type run struct {
	p   *plan.Plan
	r   *result.Result
	now int64
}

// wobble is a number in [-1, 1) that depends on its arguments alone.
func wobble(parts ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, parts...)
	x := h.Sum64()
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	return float64(x>>11)/(1<<52) - 1
}

func newRun(name, title string, rounds int) *run {
	start := time.Date(2026, 4, 2, 9, 30, 0, 0, time.UTC)
	p := &plan.Plan{Name: name, Title: title, Source: &plan.Source{
		Title: "Disk image performance: the cost of encryption rises", Author: "Howard Oakley, The Eclectic Light Company",
		Date: time.Date(2026, 3, 23, 0, 0, 0, 0, time.UTC),
		On:   plan.On{Machine: "Mac mini M4 Pro, 2 TB", OS: "macOS 26.3.1"},
	}, Run: plan.RunOptions{Rounds: rounds, Baseline: true, Canary: true}}
	r := &result.Result{Schema: result.SchemaVersion, Run: "k3v9x2", Status: result.Done, Seed: 20260402, Rounds: rounds,
		Tool:     result.Tool{Name: "dmgbench", Version: "0.1.0", Go: "go1.26.1", OS: "linux", Arch: "amd64"},
		Plan:     result.PlanRef{Name: name, Title: title, Digest: "5f3c1b0e9a7d4c62b8e1f0a3d5c79b2468ace013579bdf02468ace13579bdf00"},
		Sessions: []result.Session{session(start)}}
	return &run{p: p, r: r}
}

func session(start time.Time) result.Session {
	return result.Session{Index: 1, Started: start, Finished: start.Add(4*time.Minute + 12*time.Second), End: "clean",
		Engine: result.Engine{Name: "inprocess", Vendor: "dmgbench", Version: "0.1.0", Title: "in-process", Why: "no privileges to attach images"},
		Host: result.Host{OS: "linux", OSVersion: "Debian GNU/Linux 13", Kernel: "6.12.0", Arch: "amd64", Model: "Example workstation",
			CPU: "Example CPU 9", CPUs: 8, Cores: []result.Cores{{Level: "performance", Count: 6}, {Level: "efficiency", Count: 2}},
			Memory: 34_359_738_368, Power: "ac",
			Disks: []result.Disk{{Filesystem: "ext4", Device: "Example NVMe 2 TB", Bus: "nvme", Medium: "ssd", Free: 900e9, Total: 2000e9}}}}
}

// Sample is a run of four image cases and the native baseline over three phases
// and three rounds, with departures, verdicts of every kind, warnings, one failed
// and one skipped case.
func Sample() (*plan.Plan, *result.Result) {
	b := newRun("performance-2024", "Performance of disk images by format and encryption", 3)
	b.p.Summary = "Writes, reads and sizes of images as they are new, part full and emptied."
	cases := []struct {
		format, encryption string
		law                law
	}{
		{"UDRW", "none", law{2.41e9, 3.05e9, 60e-6}}, {"UDRW", "AES-256", law{1.12e9, 1.58e9, 75e-6}},
		{"UDSB", "none", law{2.18e9, 2.87e9, 140e-6}}, {"UDSB", "AES-256", law{1.71e9, 1.92e9, 170e-6}},
	}
	phases := []string{"new", "part-full", "emptied"}
	for _, c := range cases {
		rc := result.Case{ID: "format=" + c.format + ",encryption=" + c.encryption, Status: result.Done,
			Keys:   [][2]string{{"format", c.format}, {"encryption", c.encryption}},
			Target: result.Target{Kind: "image", Format: c.format, Encryption: c.encryption, Filesystem: "exFAT", Size: 4e9}}
		b.measure(&rc, c.law, phases)
	}
	native := result.Case{ID: "target=directory", Baseline: true, Status: result.Done, Keys: [][2]string{{"target", "directory"}},
		Target: result.Target{Kind: "directory", Filesystem: "ext4"}}
	b.measure(&native, law{2.6e9, 3.4e9, 45e-6}, phases)
	b.r.Cases = append(b.r.Cases,
		result.Case{ID: "format=ASIF,encryption=none", Keys: [][2]string{{"format", "ASIF"}, {"encryption", "none"}}, Status: result.Skipped,
			Reason: "the in-process engine does not make ASIF images", Target: result.Target{Kind: "image", Format: "ASIF"}},
		result.Case{ID: "format=UDSP,encryption=none", Keys: [][2]string{{"format", "UDSP"}, {"encryption", "none"}}, Status: result.Failed,
			Reason: "writing file 17 of 32: no space left on device", Target: result.Target{Kind: "image", Format: "UDSP"},
			Rounds: []result.CaseRound{{Round: 1, Status: result.Failed, Reason: "no space left on device"}}})
	b.summarise()
	b.publish()
	b.judge()
	b.warn()
	b.tabulate()
	return b.p, b.r
}

// measure runs the protocol of one case over all rounds.
func (b *run) measure(c *result.Case, l law, phases []string) {
	for round := 1; round <= b.r.Rounds; round++ {
		c.Rounds = append(c.Rounds, result.CaseRound{Round: round, Status: result.Done})
		live, index := int64(0), 0
		next := func(do, phase string) *result.Step {
			c.Steps = append(c.Steps, result.Step{Index: index, Do: do, Phase: phase, Round: round, Session: 1, StartNS: b.now, Expect: "ok", Live: live})
			index++
			return &c.Steps[len(c.Steps)-1]
		}
		b.files(next("canary", "canary"), "write", "", 2.5e9, 50e-6)
		for _, do := range []string{"create", "attach"} {
			b.finish(next(do, ""), int64((0.02+0.004*wobble(c.ID, do, round))*1e9))
		}
		for n, phase := range phases {
			slow := 1 - 0.06*float64(n)
			w := next("write", phase)
			b.files(w, "write", c.ID, l.write*slow, l.latency)
			live += w.Span.Bytes
			w.Live = live
			b.files(next("read", phase), "read", c.ID, l.read*slow, l.latency/2)
			m := next("measure", phase)
			m.Disk = diskUse(c.Target, live)
			live -= live * 3 / 4
			next("delete", phase).Live = live
		}
		b.finish(next("detach", ""), int64((0.01+0.002*wobble(c.ID, "detach", round))*1e9))
	}
	b.r.Cases = append(b.r.Cases, *c)
}

func (b *run) finish(s *result.Step, ns int64) {
	s.DurationNS = ns
	b.now += ns
}

// diskUse gives the container's size after a phase.
func diskUse(t result.Target, live int64) *result.DiskUse {
	d := &result.DiskUse{Attached: true, Allocated: live * 104 / 100, Apparent: t.Size, VolumeFree: t.Size - live, HostFree: 900e9 - live}
	switch t.Format {
	case "UDRW":
		d.Allocated = max(d.Allocated, t.Size/2)
	case "UDSB":
		d.Bands = int(live/8_388_608) + 2
		d.BandsFull = d.Bands - 2
		d.Allocated = int64(d.Bands) * 8_388_608
	}
	return d
}

// files times two sets of files under a law.
func (b *run) files(s *result.Step, op, id string, rate, latency float64) {
	s.Op, s.Workers = op, 1
	s.Cache, s.Sync = &result.Achieved{Asked: "direct", Achieved: "direct"}, &result.Achieved{Asked: "fsync", Achieved: "full"}
	span := &result.Span{GateNS: b.now}
	day := 1 + 0.03*wobble(id, op, s.Round)
	for set := range 2 {
		for i := range sizes {
			at := (i*7 + set*5 + s.Round*3) % len(sizes)
			size := sizes[at]
			t := (latency + float64(size)/(rate*day)) * (1 + 0.08*wobble(id, op, s.Phase, s.Round, set, size))
			ns := int64(math.Round(t * 1e9))
			s.Samples = append(s.Samples, result.Sample{File: fmt.Sprintf("gold-%d-%02d", set+1, at+1), Bytes: size, StartNS: b.now, DurationNS: ns,
				Order: len(s.Samples), Set: set + 1})
			b.now += ns + 12_000
			span.Bytes += size
			span.BusyNS += ns
		}
	}
	span.LastDoneNS = b.now
	s.Span = span
	s.DurationNS = b.now - s.StartNS
}

// Sweep is a run over a numeric axis (threads 1 to 14) with a line through its
// points, the author's coefficients and a prediction.
func Sweep() (*plan.Plan, *result.Result) {
	b := newRun("thread-scaling-2024", "Compression against the number of threads", 3)
	axis := plan.Axis{Key: "threads"}
	f := result.Fit{Name: "threads", Model: "line", Along: "threads", Op: "stream"}
	for _, n := range []int{1, 2, 3, 4, 6, 8, 10, 12, 14} {
		axis.Values = append(axis.Values, fmt.Sprint(n))
		rate := (0.31 + 0.29*float64(n)) * 1e9
		c := result.Case{ID: fmt.Sprintf("threads=%d", n), Keys: [][2]string{{"threads", fmt.Sprint(n)}}, Status: result.Done,
			Target: result.Target{Kind: "image", Format: "UDSB", Filesystem: "exFAT", Size: 4e9}}
		sum := result.Summary{Case: c.ID, Phase: "compress", Op: "stream", Rounds: 3, N: 3, Headline: "aggregate"}
		v := rate * (1 + 0.02*wobble("sweep", n))
		sum.Estimates = []result.Estimate{{Name: "aggregate", Value: v, Unit: "B/s", N: 3,
			CI: &result.CI{Low: v * 0.97, High: v * 1.03, Level: 0.95, Method: "t", Unit: "round"}}}
		for round := 1; round <= 3; round++ {
			ns := int64(15e9 / v * 1e9)
			c.Rounds = append(c.Rounds, result.CaseRound{Round: round, Status: result.Done})
			c.Steps = append(c.Steps, result.Step{Do: "stream", Phase: "compress", Op: "stream", Round: round, Session: 1, StartNS: b.now, DurationNS: ns,
				Stream: &result.Stream{Codec: "zstd", Threads: n, In: 15e9, Out: 9e9, Ratio: 1.67, Saving: 0.4}})
			b.now += ns
		}
		b.r.Cases, b.r.Summaries = append(b.r.Cases, c), append(b.r.Summaries, sum)
		f.Points = append(f.Points, [2]float64{float64(n), v})
	}
	intercept, slope := 0.2e9, 0.3e9
	f.Coefficients = []result.Coefficient{
		{Name: "intercept", Value: 0.31e9, Published: &intercept, CI: &result.CI{Low: 0.25e9, High: 0.37e9, Level: 0.95, Method: "t", Unit: "round"}},
		{Name: "slope", Value: 0.29e9, Published: &slope, CI: &result.CI{Low: 0.28e9, High: 0.3e9, Level: 0.95, Method: "t", Unit: "round"}},
		{Name: "r2", Value: 0.998}}
	f.Predictions = [][2]float64{{20, 6.11e9}}
	b.p.Axes = []plan.Axis{axis}
	b.r.Fits = []result.Fit{f}
	b.r.Relations = []result.Relation{{Name: "speed and compression", XOp: "ratio", YOp: "stream", Spearman: 0.6,
		Points: []result.RelationPoint{{Label: "UDRW", X: 1.2, Y: 2.1e9, RankX: 3, RankY: 2}, {Label: "UDSB", X: 1.9, Y: 3.3e9, RankX: 1, RankY: 1},
			{Label: "UDSP", X: 1.6, Y: 0.4e9, RankX: 2, RankY: 3, Outlier: true}}}}
	return b.p, b.r
}

// Large is one case with at least n timed files, over as many rounds as that takes.
func Large(n int) (*plan.Plan, *result.Result) {
	b := newRun("large", "Many files", n/(4*len(sizes))+1)
	c := result.Case{ID: "format=UDSB", Status: result.Done, Keys: [][2]string{{"format", "UDSB"}}, Target: result.Target{Kind: "image", Format: "UDSB", Size: 4e9}}
	b.measure(&c, law{2e9, 3e9, 1e-4}, []string{"new"})
	b.summarise()
	return b.p, b.r
}

// Aging is one case over ten cycles in which writing becomes slower.
func Aging() (*plan.Plan, *result.Result) {
	b := newRun("aging", "Hundreds of cycles", 1)
	c := result.Case{ID: "format=UDSB", Status: result.Done, Keys: [][2]string{{"format", "UDSB"}}, Target: result.Target{Kind: "image", Format: "UDSB", Size: 4e9},
		Rounds: []result.CaseRound{{Round: 1, Status: result.Done}}}
	for cycle := 1; cycle <= 10; cycle++ {
		s := result.Step{Index: cycle, Do: "write", Phase: "aged", Round: 1, Cycle: cycle, Session: 1, StartNS: b.now, Expect: "ok"}
		b.files(&s, "write", c.ID, 2e9*(1-0.03*float64(cycle)), 1e-4)
		c.Steps = append(c.Steps, s)
		sum := summary(c.ID, "aged", "write", []float64{float64(s.Span.Bytes) / float64(s.Span.BusyNS) * 1e9}, len(s.Samples))
		sum.Cycle = cycle
		b.r.Summaries = append(b.r.Summaries, sum)
	}
	b.r.Cases = []result.Case{c}
	return b.p, b.r
}
