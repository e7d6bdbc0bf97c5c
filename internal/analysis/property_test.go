package analysis

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

var update = flag.Bool("update", false, "rewrite golden files")

// every claim of kinds on one plan, judged together.
func everyClaim(t require.TestingT) *plan.Plan {
	p := withFit(planOf(t, threeFormats))
	all := kinds(t)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for i, a := range all[name] {
			c := claimOf(a)
			c.ID, c.By = fmt.Sprint(name, i), "author"
			p.Claims = append(p.Claims, c)
		}
	}
	return p
}

func verdicts(t require.TestingT, p *plan.Plan, r *result.Result) map[string]string {
	s, err := newRunData(p, r)
	require.NoError(t, err)
	out := map[string]string{}
	for _, c := range s.claims() {
		out[c.ID] = c.Verdict + ": " + c.Reason
	}
	return out
}

// Neither the order of the cases nor that of their rounds changes a verdict.
func TestVerdictsDoNotDependOnOrder(t *testing.T) {
	p := everyClaim(t)
	checkWholeResults(t, func(t *rapid.T) {
		l := threeRates(rapid.SampledFrom([]float64{0.001, 0.02, 0.1}).Draw(t, "noise"))
		rounds := rapid.IntRange(2, 4).Draw(t, "rounds")
		a, b := play(p, rounds, l), play(p, rounds, l)
		b.Cases = rapid.Permutation(b.Cases).Draw(t, "cases")
		for i := range b.Cases {
			b.Cases[i].Steps = rapid.Permutation(b.Cases[i].Steps).Draw(t, "steps")
		}
		require.Equal(t, verdicts(t, p, a), verdicts(t, p, b))
	})
}

// A machine that is faster or slower as a whole gives the same verdicts on all
// claims that set one rate against another.
func TestRatioVerdictsDoNotDependOnScale(t *testing.T) {
	p := everyClaim(t)
	relative := []string{"ratio0", "ratio1", "equal0", "equal1", "order0", "order1", "rank0", "rank1", "extreme0", "extreme1", "trend0", "trend1",
		"constant0", "constant1", "spread0", "spread1", "all0", "all1", "any0", "any1"}
	checkWholeResults(t, func(t *rapid.T) {
		l := threeRates(rapid.SampledFrom([]float64{0.001, 0.02, 0.1}).Draw(t, "noise"))
		scale := math.Exp2(rapid.Float64Range(-3, 3).Draw(t, "scale"))
		l.idle, l.latency = 0, 0
		a := play(p, 3, l)
		slower := l
		slower.rate = func(m moment) float64 { return l.rate(m) / scale }
		b := play(p, 3, slower)
		fast, slow := verdicts(t, p, a), verdicts(t, p, b)
		for _, id := range relative {
			x, _, _ := strings.Cut(fast[id], ":")
			y, _, _ := strings.Cut(slow[id], ":")
			require.Equal(t, x, y, "%s: %s / %s", id, fast[id], slow[id])
		}
	})
}

// What a claim needs and what is seen decide in the same way as the interval.
func TestDecideAgreesWithTheInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 3, 8).Draw(t, "xs")
		b := plan.Bound{Low: rapid.Float64Range(0, 5).Draw(t, "low"), Unit: "1"}
		b.High = b.Low + rapid.Float64Range(0, 5).Draw(t, "width")
		sc := rapid.SampledFrom([]scale{logScale, plainScale}).Draw(t, "scale")
		iv, err := sc.interval(xs)
		require.NoError(t, err)
		dir, p := sc.decide(xs, b)
		if math.Abs(p-family) < 1e-6 {
			return // on the edge the two may round apart
		}
		switch {
		case iv.Low >= b.Low && iv.High <= b.High:
			require.Equal(t, 1, dir)
			require.LessOrEqual(t, p, family)
		case iv.High < b.Low || iv.Low > b.High:
			require.Equal(t, -1, dir)
			require.LessOrEqual(t, p, family)
		default:
			require.Greater(t, p, family)
		}
	})
}

// all of parts and any of the opposite parts are mirror images.
func TestAllAndAnyMirror(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) finding {
			return finding{dir: rapid.IntRange(-1, 1).Draw(t, "dir"), p: rapid.Float64Range(0, 1).Draw(t, "p"),
				sampled: true, few: rapid.Bool().Draw(t, "few"), missing: rapid.SampledFrom([]string{"", "", "", "gone"}).Draw(t, "missing")}
		}), 1, 5).Draw(t, "parts")
		mirror := slices.Clone(parts)
		for i := range mirror {
			mirror[i].dir = -mirror[i].dir
		}
		a, b := combine(parts, 1), combine(mirror, -1)
		require.Equal(t, a.dir, -b.dir)
		require.Equal(t, a.p, b.p)
		require.Equal(t, a.few, b.few)
		require.Equal(t, a.missing, b.missing)
		if a.dir > 0 {
			for _, f := range parts {
				require.Equal(t, 1, f.dir)
				require.Empty(t, f.missing)
			}
		}
	})
}

// A small run with everything in it, as the report will see it.
func TestGolden(t *testing.T) {
	p := everyClaim(t)
	p.Published = []plan.Published{{Quantity: "write", Where: sel("format", "UDSB", "phase", "last"), Value: figure(t, "about 2 GB/s", "B/s")}}
	p.Choices = []string{"the data is random"}
	p.Relations = []plan.Relation{{Name: "rw", X: op("write", "phase", "last"), Y: op("read", "phase", "last"),
		Over: []plan.Selector{sel("format", "UDRW"), sel("format", "UDSB"), sel("format", "UDSP")}}}
	l := threeRates(0.02)
	l.host = result.Host{OS: "darwin", OSVersion: "26.3.1", CPU: "Apple M4 Pro", Power: "battery"}
	r := play(p, 3, l)
	require.NoError(t, Analyze(p, r, Options{}))
	for i := range r.Cases { // the samples are the input
		r.Cases[i].Steps = nil
	}
	roundNumbers(r)
	got, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	path := filepath.Join("testdata", "small.json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n", "go test ./internal/analysis -run TestGolden -update writes it anew")
}

// roundNumbers keeps nine digits, since processors may fuse operations.
func roundNumbers(r *result.Result) {
	digits := func(v *float64) {
		if *v != 0 && !math.IsInf(*v, 0) {
			scale := math.Pow(10, 9-math.Ceil(math.Log10(math.Abs(*v))))
			*v = math.Round(*v*scale) / scale
		}
	}
	for i := range r.Summaries {
		for k := range r.Summaries[i].Estimates {
			e := &r.Summaries[i].Estimates[k]
			digits(&e.Value)
			if e.CI != nil {
				digits(&e.CI.Low)
				digits(&e.CI.High)
			}
		}
		for k := range r.Summaries[i].Published {
			digits(&r.Summaries[i].Published[k].Ratio)
		}
	}
	for i := range r.Fits {
		for k := range r.Fits[i].Points {
			digits(&r.Fits[i].Points[k][1])
		}
		for k := range r.Fits[i].Predictions {
			digits(&r.Fits[i].Predictions[k][1])
		}
		for k := range r.Fits[i].Coefficients {
			c := &r.Fits[i].Coefficients[k]
			digits(&c.Value)
			if c.CI != nil {
				digits(&c.CI.Low)
				digits(&c.CI.High)
			}
		}
	}
	for i := range r.Relations {
		for k := range r.Relations[i].Points {
			digits(&r.Relations[i].Points[k].X)
			digits(&r.Relations[i].Points[k].Y)
		}
	}
}
