package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

func kindsOf(ws []result.Warning) (out []string) {
	for _, w := range ws {
		out = append(out, w.Kind)
	}
	return out
}

func flat() map[string]float64 {
	return map[string]float64{"UDRW": 1e9, "UDSB": 2e9, "native": 4e9}
}

func TestNoWarningWithoutCause(t *testing.T) {
	r := analysed(t, planOf(t, twoFormats), 3, steady(flat(), 0.02))
	assert.Empty(t, r.Warnings)
	for _, s := range r.Summaries {
		assert.Empty(t, s.Warnings, "%s %s %s", s.Case, s.Phase, s.Op)
	}
}

func TestWarnings(t *testing.T) {
	udsb := func(m moment) bool { return m.format() == "UDSB" && m.step.Do == "write" }
	slowed := func(when func(m moment) bool, factor float64) laws {
		l := steady(flat(), 0.02)
		rate := l.rate
		l.rate = func(m moment) float64 {
			if udsb(m) && when(m) {
				return rate(m) / factor
			}
			return rate(m)
		}
		return l
	}
	faster := flat()
	faster["UDSB"] = 5e9
	gaps := steady(flat(), 0.02)
	gaps.idle = 2e6
	for _, x := range []struct {
		name, kind, text string
		rounds           int
		l                laws
	}{
		{"few rounds", "few-rounds", "2 rounds: an interval and a verdict need 3", 2, steady(flat(), 0.02)},
		{"faster than the native folder", "faster-than-native", "times as fast as the native folder", 3, steady(faster, 0.01)},
		{"slow first file", "slow-first", "the first file took 2", 3, slowed(func(m moment) bool { return m.order == 0 }, 30)},
		{"outlier", "outliers", "f of 16 MB, was 19.9 times slower than expected", 3, slowed(func(m moment) bool { return m.order == 11 && m.round == 2 }, 20)},
		{"throttling", "two-modes", " MB, files took 1.9", 3, slowed(func(m moment) bool { return m.order >= 14 }, 2)},
		{"throttling that comes and goes", "bimodal", "6 of 24 files took 2", 3, slowed(func(m moment) bool { return m.order%8 >= 6 }, 2.5)},
		{"idle", "idle", "the workers were between files", 3, gaps},
		{"small files", "small-files", "24 of 24 files took less than 20 times the 2.00 ms that", 3, gaps},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := analysed(t, planOf(t, twoFormats), x.rounds, x.l)
			s := summaryOf(t, r, "format=UDSB", "new", "write")
			found := ""
			for _, w := range s.Warnings {
				if w.Kind == x.kind {
					found = w.Text
				}
			}
			assert.Contains(t, found, x.text, "%v", s.Warnings)
			if x.kind != "few-rounds" {
				assert.Contains(t, kindsOf(r.Cases[1].Warnings), x.kind, "on the case as well")
			}
			if x.kind != "few-rounds" && x.kind != "idle" && x.kind != "small-files" {
				assert.NotContains(t, kindsOf(summaryOf(t, r, "format=UDRW", "new", "write").Warnings), x.kind)
			}
		})
	}
}

// Two modes need twenty files: the halves of fewer may differ by chance.
func TestTwoModesAreFoundFromTwentyFilesOn(t *testing.T) {
	for n, isFound := range map[int]bool{19: false, 20: true} {
		st := result.Step{Do: "write", Op: "write", Span: &result.Span{}, Workers: 1}
		for i := range n {
			ns := 4e6 + 1e4*float64(i*7%5)
			if i >= 12 {
				ns *= 3
			}
			st.Samples = append(st.Samples, result.Sample{Bytes: 4e6, DurationNS: int64(ns), Order: i})
		}
		assert.Equal(t, isFound, slices.Contains(kindsOf(StepWarnings(&st)), "two-modes"), "%d files", n)
	}
}

// A rate that falls from file to file has no moment at which it fell.
func TestASteadyFallIsNoSecondMode(t *testing.T) {
	st := result.Step{Do: "write", Op: "write", Span: &result.Span{}, Workers: 1}
	for i := range 60 {
		ns := 4e6 * math.Pow(8, float64(i)/60) * (1 + 0.002*float64(i*7%5))
		st.Samples = append(st.Samples, result.Sample{Bytes: 4e6, DurationNS: int64(ns), Order: i})
	}
	kinds := kindsOf(StepWarnings(&st))
	assert.Contains(t, kinds, "transient")
	assert.NotContains(t, kinds, "two-modes")
}

func TestWarningsOfTheHostAndOfSteps(t *testing.T) {
	l := steady(flat(), 0.02)
	l.host = result.Host{Power: "battery", LowPower: true, Thermal: "serious", CPUQuota: 1.5, Busy: []string{"Spotlight"}}
	p := planOf(t, twoFormats)
	p.Run.Precision = 1e-6
	r := play(p, 3, l)
	for i := range r.Cases[0].Steps {
		if st := &r.Cases[0].Steps[i]; st.Do == "write" {
			st.Warnings = []result.Warning{{Kind: "cache", Text: "direct was asked"}}
		}
	}
	require.NoError(t, Analyze(p, r, Options{}))
	want := []string{"battery", "low-power", "thermal", "cpu-quota", "busy"}
	assert.Equal(t, want, kindsOf(r.Warnings))
	s := summaryOf(t, r, "format=UDRW", "new", "write")
	assert.Subset(t, kindsOf(s.Warnings), append(want, "cache", "precision"))
	assert.Contains(t, kindsOf(r.Cases[0].Warnings), "cache")
	assert.NotContains(t, kindsOf(r.Cases[1].Warnings), "cache")
}

func TestCanaryDrift(t *testing.T) {
	p := planOf(t, twoFormats)
	for _, x := range []struct {
		slow float64
		want bool
	}{{0.001, false}, {0.1, true}} {
		r := play(p, 3, steady(flat(), 0.02))
		n := 0
		for i := range r.Cases {
			for round := 1; round <= 3; round++ {
				ns := int64(1e8 * (1 + x.slow*float64(n)))
				at := int64(n) * 1e9
				n++
				r.Cases[i].Steps = append(r.Cases[i].Steps, result.Step{Do: "canary", Op: "write", Round: round, Session: 1, StartNS: at,
					Span: &result.Span{GateNS: at, LastDoneNS: at + ns, Bytes: 1e8}})
			}
		}
		require.NoError(t, Analyze(p, r, Options{}))
		assert.Equal(t, x.want, len(r.Warnings) == 1, "%v", r.Warnings)
		if x.want {
			assert.Equal(t, "drift", r.Warnings[0].Kind)
			assert.Contains(t, r.Warnings[0].Text, "becoming slower by")
			assert.Contains(t, r.Warnings[0].Text, "in the course of the run")
		}
	}
}

func TestDepartures(t *testing.T) {
	l := steady(flat(), 0.02)
	l.engine = own()
	l.host = result.Host{OS: "linux", OSVersion: "12", CPU: "AMD EPYC"}
	p := planOf(t, twoFormats)
	p.Choices = []string{"data is random"}
	p.Changes = []plan.Change{{Kind: "sets", Text: "1 set of 10"}}
	p.Published = []plan.Published{{Quantity: "write", Where: sel("format", "UDSB"), Value: figure(t, "2 GB/s", "B/s")}}
	r := play(p, 3, l)
	r.Departures = []result.Departure{{Kind: "sets", Text: "1 set of 10"}}
	r.Cases[0].Target.Filesystem = "exFAT"
	r.Cases[0].Target.BandSize, r.Cases[0].Target.BandSizeUsed = 8<<20, 16<<20
	for i := range r.Cases[1].Steps {
		if st := &r.Cases[1].Steps[i]; st.Do == "write" {
			st.Cache = &result.Achieved{Asked: "direct", Achieved: "buffered"}
			st.Sync = &result.Achieved{Asked: "fsync", Achieved: "full"}
		}
	}
	require.NoError(t, Analyze(p, r, Options{}))
	var kinds []string
	cases := map[string][]string{}
	for _, d := range r.Departures {
		kinds = append(kinds, d.Kind)
		cases[d.Kind] = d.Cases
	}
	assert.Equal(t, []string{"sets", "choice", "engine", "machine", "os", "filesystem", "band-size", "cache", "sync"}, kinds)
	assert.Equal(t, []string{"format=UDRW"}, cases["filesystem"])
	assert.Equal(t, []string{"format=UDSB"}, cases["sync"])
	assert.Empty(t, cases["engine"])
	s := summaryOf(t, r, "format=UDSB", "new", "write")
	require.Len(t, s.Published, 1)
	assert.False(t, s.Published[0].Comparable)
	assert.InDelta(t, 0.95, s.Published[0].Ratio, 0.06)
	assert.Equal(t, "Mac mini M4 Pro, macOS 26.3.1", s.Published[0].On)
	assert.Contains(t, s.Departures, "images were made and attached by in-process, not by Apple's tools")

	l.engine = apple()
	l.host = result.Host{OS: "darwin", OSVersion: "26.4", CPU: "Apple M4 Pro", Model: "Mac16,11"}
	p.Choices, p.Changes = nil, nil
	r = analysed(t, p, 3, l)
	assert.Empty(t, r.Departures)
	assert.True(t, summaryOf(t, r, "format=UDSB", "new", "write").Published[0].Comparable)
}

// Bands that nobody asked for, or that nobody knows, differ from no plan.
func TestADepartureOfBandsNeedsBothSizes(t *testing.T) {
	for _, sizes := range [][2]int64{{0, 8 << 20}, {8 << 20, 0}, {8 << 20, 8 << 20}} {
		p := planOf(t, twoFormats)
		p.Source.On = plan.On{} // measured anywhere
		r := play(p, 1, steady(flat(), 0))
		r.Cases[1].Target.BandSize, r.Cases[1].Target.BandSizeUsed = sizes[0], sizes[1]
		require.NoError(t, Analyze(p, r, Options{}))
		assert.Empty(t, r.Departures, "asked for and used: %d", sizes)
	}
}

// A figure that the source has from elsewhere is comparable where the run was there, not where it was at the source's own machine.
func TestPublishedElsewhere(t *testing.T) {
	l := steady(flat(), 0.02)
	l.host = result.Host{OS: "darwin", OSVersion: "26.4", CPU: "Apple M4 Pro", Model: "Mac16,11"}
	p := planOf(t, twoFormats)
	p.Source.On.Tool = "Disk Utility, Stibium"
	for _, c := range []struct {
		on   plan.On
		want bool
	}{
		{plan.On{}, true},
		{plan.On{Date: time.Date(2024, 12, 12, 0, 0, 0, 0, time.UTC)}, true},
		{plan.On{Machine: "MacBook Pro M4 Pro", OS: "macOS 26.0", Tool: "Stibium"}, true},
		{plan.On{Machine: "MacBook Pro M3 Pro"}, false},
		{plan.On{OS: "macOS 13"}, false},
		{plan.On{Tool: "Blackmagic Disk Speed Test"}, false},
	} {
		p.Published = []plan.Published{{Quantity: "write", Where: sel("format", "UDSB"), On: c.on, Value: figure(t, "2 GB/s", "B/s")}}
		p.Tables = []plan.Table{{Name: "one", Title: "one", Columns: []plan.TableLine{{Operand: plan.Operand{Quantity: "write", Where: sel("phase", "new")}}},
			Rows: []plan.TableLine{{Operand: plan.Operand{Where: sel("format", "UDSB")}}}}}
		r := analysed(t, p, 3, l)
		require.Empty(t, r.Departures)
		got := summaryOf(t, r, "format=UDSB", "new", "write").Published[0]
		assert.Equal(t, c.want, got.Comparable, "%+v", c.on)
		assert.Positive(t, got.Ratio)
		assert.Equal(t, c.want, tableOf(t, r, "one").Cells[0][0].Published.Comparable, "in a table, %+v", c.on)
	}
}

func TestPublishedOfOneFileSize(t *testing.T) {
	p := planOf(t, twoFormats)
	p.Published = []plan.Published{{Quantity: "write", Where: sel("format", "UDSB", "file_size", "16 MB"), Value: figure(t, "2 GB/s", "B/s")}}
	s := summaryOf(t, analysed(t, p, 3, steady(flat(), 0)), "format=UDSB", "new", "write")
	e, ok := findEstimate(s.Estimates, "aggregate@16 MB")
	require.True(t, ok)
	assert.InEpsilon(t, 16e6/(1e-4+16e6/2e9), e.Value, 1e-6)
	assert.Equal(t, 18, e.N)
	assert.InEpsilon(t, e.Value/2e9, s.Published[0].Ratio, 1e-9)
}

// The exact intervals over files are labelled where the files of the only round are of two speeds; the numbers stay.
func TestIntervalsOfFilesAtTwoSpeedsAreLabelled(t *testing.T) {
	const label = ", too narrow: files at two speeds"
	l := steady(flat(), 0.01)
	rate := l.rate
	l.rate = func(m moment) float64 {
		if m.order%8 >= 6 {
			return rate(m) / 2.5
		}
		return rate(m)
	}
	for _, c := range []struct {
		l      laws
		rounds int
		want   bool
	}{{l, 1, true}, {steady(flat(), 0.01), 1, false}, {l, 3, false}} {
		s := summaryOf(t, analysed(t, planOf(t, twoFormats), c.rounds, c.l), "format=UDSB", "new", "write")
		given := 0
		for _, e := range s.Estimates {
			if e.CI != nil {
				exact := e.Name == medianRate || e.Name == theilSen
				assert.Equal(t, exact && c.want, strings.HasSuffix(e.CI.Method, label), "%s: %s", e.Name, e.CI.Method)
				given++
			}
		}
		assert.Positive(t, given)
	}
}

// A mean of zero has no relative width, however wide its interval is.
func TestNoPrecisionIsWantedOfAMeanOfZero(t *testing.T) {
	p := planOf(t, `schema = 1
title = "Compacting"
[image]
format = "UDSB"
size = "1 GB"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, { do = "detach" }, { do = "compact", phase = "end" }]
[[claim]]
says = "Compacting frees space"
by = "us"
left = { reclaimed = { phase = "end" } }
bound = "> 1 MB"
`)
	p.Run.Precision = 0.05
	for _, k := range []struct {
		middle int64
		warned bool
	}{{0, false}, {1e5, true}} {
		l := steady(flat(), 0)
		l.freed = func(m moment) int64 { return k.middle + int64(m.round-3)*1e6 }
		r := play(p, 5, l)
		r.Auto = &result.AutoRounds{Looks: []int{5, 9}}
		require.NoError(t, Analyze(p, r, Options{}))
		s := summaryOf(t, r, p.Cases()[0].ID, "end", "reclaimed")
		e, _ := findEstimate(s.Estimates, s.Headline)
		require.NotNil(t, e.CI)
		require.Equal(t, float64(k.middle), e.Value)
		assert.Equal(t, k.warned, slices.Contains(kindsOf(s.Warnings), "precision"), "%v", s.Warnings)
	}
}
