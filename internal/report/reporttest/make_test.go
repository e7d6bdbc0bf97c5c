package reporttest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

const mb = 1_000_000

// sizes is the published set of 16 sizes, a hundredth of them.
var sizes = []int64{20_000, 40_000, 60_000, 80_000, 100_000, 200_000, 400_000, 600_000, 800_000,
	1 * mb, 2 * mb, 4 * mb, 6 * mb, 8 * mb, 10 * mb, 20 * mb}

// rates are those of a case without any noise: a file takes latency +
// bytes/rate.
type rates struct {
	write, read float64 // B/s
	latency     float64 // s
}

// run builds a result step by step, on a clock that only the formulas advance.
type run struct {
	r   *result.Result
	now int64 // ns
}

func newRun(name, title string, rounds int) *run {
	b := &run{r: &result.Result{Run: "k3v9x2", Rounds: rounds}}
	b.load("run")
	b.r.Plan.Name, b.r.Plan.Title = name, title
	return b
}

// load fills in what a file of the folder data has.
func (b *run) load(name string) {
	text, err := os.ReadFile("testdata/" + name + ".json")
	if err == nil {
		err = json.Unmarshal(text, b.r)
	}
	if err != nil {
		panic("reading the data of a test: " + err.Error())
	}
}

var throttled = result.Warning{Kind: "throttled", Text: "the last round was 9 % slower than the first"}

func makeSample() *result.Result {
	b := newRun("performance-2024", "Performance of disk images by format and encryption", 3)
	b.load("sample")
	for i, law := range []rates{{2.41e9, 3.05e9, 60e-6}, {1.12e9, 1.58e9, 75e-6}, {2.18e9, 2.87e9, 140e-6},
		{1.71e9, 1.92e9, 170e-6}, {2.6e9, 3.4e9, 45e-6}} {
		b.measure(&b.r.Cases[i], law, "new", "part-full", "emptied")
	}
	b.summarise()
	b.publish()
	for i := range b.r.Summaries {
		s := &b.r.Summaries[i]
		if s.Case == "format=UDSB,encryption=none" && s.Op == "write" && s.Phase == "emptied" {
			s.Warnings = []result.Warning{throttled}
		}
	}
	b.r.Cases[4].Steps[2].Warnings = []result.Warning{{Kind: "slow-first",
		Text: "the first file took 4 times as long as others of its size"}}
	b.fillTables()
	return b.r
}

// publish adds published figures to the measured ones; none of them is
// comparable.
func (b *run) publish() {
	figures := map[string]map[string]string{
		"format=UDRW,encryption=none":    {"write": "5.5", "read": "5.3"},
		"format=UDRW,encryption=AES-256": {"write": "2.6", "read": "3.4"},
		"format=UDSB,encryption=none":    {"write": "7.62", "read": "6.13"},
		"format=UDSB,encryption=AES-256": {"write": "5.1", "read": "4.4"},
	}
	for i := range b.r.Summaries {
		s := &b.r.Summaries[i]
		text, ok := figures[s.Case][s.Op]
		if !ok || s.Phase != "new" {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(text+"e9", &v); err != nil {
			panic(err)
		}
		s.Departures = []string{"file system exFAT instead of APFS", "in-process engine instead of Apple’s hdiutil"}
		s.Published = []result.PublishedValue{{Text: text + " GB/s", Kind: "is", Low: v, High: v, Unit: "B/s",
			Statistic: "theil-sen", On: "Mac mini M4 Pro, macOS 26.3.1", Ratio: s.Estimates[0].Value / v}}
	}
}

// fillTables gives the cells of the tables that name a case their figures.
func (b *run) fillTables() {
	for _, t := range b.r.Tables {
		for _, row := range t.Cells {
			for k := range row {
				for i := range b.r.Summaries {
					s, c := &b.r.Summaries[i], &row[k]
					if c.Case == "" || s.Case != c.Case || s.Phase != c.Phase || s.Op != t.Columns[k].Op {
						continue
					}
					c.Rounds, c.Estimate, c.Warnings = s.Rounds, &s.Estimates[0], s.Warnings
					if len(s.Published) > 0 {
						c.Published = &s.Published[0]
					}
				}
			}
		}
	}
}

func makeSweep() *result.Result {
	b := newRun("thread-scaling-2024", "Compression against the number of threads", 3)
	b.load("sweep")
	for _, n := range []int{1, 2, 3, 4, 6, 8, 10, 12, 14} {
		v := (0.31 + 0.29*float64(n)) * 1e9 * (1 + 0.02*Noise("sweep", n))
		c := newCase("exFAT", "threads", fmt.Sprint(n))
		c.Target.Format = "UDSB"
		for round := 1; round <= 3; round++ {
			ns := int64(15e9 / v * 1e9)
			c.Rounds = append(c.Rounds, result.CaseRound{Round: round, Status: result.Done})
			c.Steps = append(c.Steps, result.Step{Do: "stream", Phase: "compress", Op: "stream", Round: round,
				Session: 1, StartNS: b.now, DurationNS: ns,
				Stream: &result.Stream{Codec: "zstd", Threads: n, In: 15e9, Out: 9e9, Ratio: 1.67, Saving: 0.4}})
			b.now += ns
		}
		b.r.Cases = append(b.r.Cases, c)
		sum := newSummary(c.ID, "compress", "stream", []float64{v, v, v}, 3)
		sum.Estimates[0].Why = ""
		sum.Estimates[0].CI = &result.CI{Low: v * 0.97, High: v * 1.03, Level: 0.95, Method: "t", Unit: "round"}
		b.r.Summaries = append(b.r.Summaries, sum)
		b.r.Fits[0].Points = append(b.r.Fits[0].Points, [2]float64{float64(n), v})
	}
	return b.r
}

// newCase is a complete image case with the value of each key.
func newCase(filesystem string, keys ...string) result.Case {
	c := result.Case{Status: result.Done, Target: result.Target{Kind: "image", Filesystem: filesystem, Size: 4e9}}
	for pair := range slices.Chunk(keys, 2) {
		c.ID = strings.TrimPrefix(c.ID+","+pair[0]+"="+pair[1], ",")
		c.Keys = append(c.Keys, [2]string{pair[0], pair[1]})
		switch pair[0] {
		case "format":
			c.Target.Format = pair[1]
		case "encryption":
			c.Target.Encryption = pair[1]
		}
	}
	return c
}

// makeLarge is one round of one case.
func makeLarge() *result.Result {
	b := newRun("large", "Many files", 1)
	b.r.Cases = []result.Case{newCase("", "format", "UDSB")}
	b.measure(&b.r.Cases[0], rates{2e9, 3e9, 1e-4}, "new")
	b.summarise()
	return b.r
}

func makeAging() *result.Result {
	b := newRun("aging", "Hundreds of cycles", 1)
	c := newCase("", "format", "UDSB")
	c.Rounds = []result.CaseRound{{Round: 1, Status: result.Done}}
	for cycle := 1; cycle <= 10; cycle++ {
		s := result.Step{Index: cycle, Do: "write", Phase: "aged", Round: 1, Cycle: cycle, Session: 1,
			StartNS: b.now, Expect: "ok"}
		b.files(&s, "write", c.ID, 2e9*(1-0.03*float64(cycle)), 1e-4)
		c.Steps = append(c.Steps, s)
		rate := float64(s.Span.Bytes) / float64(s.Span.BusyNS) * 1e9
		sum := newSummary(c.ID, "aged", "write", []float64{rate}, len(s.Samples))
		sum.Cycle = cycle
		b.r.Summaries = append(b.r.Summaries, sum)
	}
	b.r.Cases = []result.Case{c}
	return b.r
}

// makePast is the first run of the past.
func makePast() *result.Result {
	b := newRun("encryption-cost-2026", "The cost of encryption rises", 3)
	b.r.Sessions = nil
	b.load("past")
	laws := map[string]rates{"UDRW none": {5.61e9, 6.05e9, 6e-6}, "UDRW AES-256": {2.62e9, 3.58e9, 7e-6},
		"UDSB none": {6.18e9, 6.27e9, 14e-6}, "UDSB AES-256": {4.51e9, 4.92e9, 17e-6}}
	for _, name := range []string{"UDRW none", "UDRW AES-256", "UDSB none", "UDSB AES-256"} {
		format, encryption, _ := strings.Cut(name, " ")
		b.r.Cases = append(b.r.Cases, newCase("APFS", "format", format, "encryption", encryption))
		b.measure(&b.r.Cases[len(b.r.Cases)-1], laws[name], "new", "part-full")
	}
	b.summarise()
	return b.r
}

// newSummary is the mean of the rounds with a t interval.
func newSummary(id, phase, op string, vs []float64, n int) result.Summary {
	mean, squares := 0.0, 0.0
	for _, v := range vs {
		mean += v / float64(len(vs))
	}
	for _, v := range vs {
		squares += (v - mean) * (v - mean)
	}
	e := result.Estimate{Name: "aggregate", Value: mean, Unit: plan.Quantity(op).Unit(), N: len(vs)}
	switch {
	case len(vs) < 3:
		e.Why = "fewer than 3 rounds"
	case squares == 0:
		e.Why = "every round gave the same value"
	default: // 4.303: Student's t for 2 degrees of freedom and 95 %
		half := 4.303 * math.Sqrt(squares/2/3)
		e.CI = &result.CI{Low: max(mean-half, 0), High: mean + half, Level: 0.95, Method: "t", Unit: "round"}
	}
	return result.Summary{Case: id, Phase: phase, Op: op, N: n, Rounds: len(vs), Headline: "aggregate",
		Estimates: []result.Estimate{e}}
}

var update = flag.Bool("update", false, "write the files of the folder runs")

// The stored runs are what the formulas give, so that every figure in them can be derived.
// makeUses is the sample with uses of every choice, failures, and steps on trees
// in the first two cases.
func makeUses() *result.Result {
	b := &run{r: makeSample()}
	b.load("uses")
	b.r.Tables, b.r.Claims = nil, nil
	for i := range 2 {
		c := &b.r.Cases[i]
		for round := 1; round <= b.r.Rounds; round++ {
			b.operations(c, round, "tree", "create", map[string]float64{"mkdir": 40e-6, "create": 200e-6})
			b.operations(c, round, "random", "new", map[string]float64{"read": 80e-9})
		}
		for _, x := range []struct {
			op, phase, kind string
			value           float64
		}{
			{"tree", "create", "", 4900}, {"tree", "create", "mkdir", 350}, {"tree_p50", "create", "mkdir", 40e-6},
			{"tree", "create", "create", 4550}, {"tree_p50", "create", "create", 0.2e-3}, {"tree_p95", "create", "create", 0.28e-3},
			{"tree_p99", "create", "create", 0.29e-3}, {"random", "new", "", 9e6}, {"random", "new", "read", 9e6},
			{"random_p50", "new", "read", 80e-9}, {"random_p999", "new", "read", 95e-9}, {"random_max", "new", "read", 99e-9},
		} {
			unit, phase := "s", x.phase
			if !strings.Contains(x.op, "_") {
				unit = "1/s"
			}
			if x.kind != "" {
				phase += " (" + x.kind + ")"
			}
			b.r.Summaries = append(b.r.Summaries, result.Summary{Case: c.ID, Phase: phase, Op: x.op, Operation: x.kind, N: 3, Rounds: 3,
				Headline: "mean", Estimates: []result.Estimate{{Name: "mean", Value: x.value, Unit: unit, N: 3,
					CI: &result.CI{Low: 0.9 * x.value, High: 1.1 * x.value, Level: 0.95, Method: "Student t of logarithms", Unit: "round"}}}})
		}
	}
	return b.r
}

// operations adds a step of operations of some kinds with a median latency in
// seconds.
func (b *run) operations(c *result.Case, round int, do, phase string, kinds map[string]float64) {
	s := result.Step{Index: 100, Do: do, Phase: phase, Round: round, Session: 1, StartNS: b.now, DurationNS: 1e8,
		Expect: "ok", OperationsSpan: &result.OperationsSpan{DurationNS: 9e7, OwnNS: 30}}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		var l result.Latencies
		for i := range 100 {
			l.Add(int64(kinds[kind] * 1e9 * (1 + 0.5*Noise(c.ID, kind, round, i))))
		}
		s.Operations = append(s.Operations, result.Operations{Kind: kind, Count: 100, Latency: l.Histogram()})
	}
	b.now += s.DurationNS
	c.Steps = append(c.Steps, s)
}

func TestRunsAreMade(t *testing.T) {
	for name, make := range map[string]func() *result.Result{
		"sample": makeSample, "sweep": makeSweep, "large": makeLarge, "aging": makeAging, "past": makePast, "uses": makeUses,
	} {
		want, err := json.Marshal(make())
		require.NoError(t, err)
		path := "runs/" + name + ".json.gz"
		if *update {
			var packed bytes.Buffer
			w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
			require.NoError(t, err)
			_, err = w.Write(want)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o644))
		}
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		r, err := gzip.NewReader(f)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got), "%s differs from its formula; run with -update", path)
	}
}
