package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// odd draws numbers that a broken journal may hold.
func odd(t *rapid.T, name string) int64 {
	return rapid.OneOf(rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64 + 1, 1e9}), rapid.Int64Range(0, 1<<40)).Draw(t, name)
}

// Whatever the steps hold, the analysis neither panics nor gives a number that
// JSON does not have.
func TestAnyResultCanBeAnalysed(t *testing.T) {
	p := everyClaim(t)
	p.Published = []plan.Published{{Quantity: "write", Where: sel("format", "UDSB"), Value: figure(t, "below 2 GB/s", "B/s")},
		{Quantity: "write", Where: sel("format", "UDSB", "file_size", "2 MB"), Value: figure(t, "2 GB/s", "B/s")}}
	p.Fits = append(p.Fits, plan.Fit{Name: "p", Quantity: "write", Where: sel("phase", "full"), Along: "cycle", Model: "power", Predict: []string{"0", "1e300"}},
		plan.Fit{Name: "t", Quantity: "write_time", Where: sel("phase", "last"), Along: "file_size", Model: "two-lines"})
	p.Relations = []plan.Relation{{Name: "rw", X: op("write"), Y: op("read_time"), Over: []plan.Selector{sel("format", "UDRW"), sel("format", "UDSB"), sel("format", "UDSP")}}}
	checkWholeResults(t, func(t *rapid.T) {
		r := play(p, rapid.IntRange(0, 3).Draw(t, "rounds"), threeRates(0.05))
		if rapid.Bool().Draw(t, "no session") {
			r.Sessions = nil
		}
		for range rapid.IntRange(0, 12).Draw(t, "spoilt") {
			c := &r.Cases[rapid.IntRange(0, len(r.Cases)-1).Draw(t, "case")]
			if len(c.Steps) > 0 {
				spoil(t, &c.Steps[rapid.IntRange(0, len(c.Steps)-1).Draw(t, "step")])
			}
		}
		require.NoError(t, Analyze(p, r, Options{}))
		_, err := json.Marshal(r)
		require.NoError(t, err)
		for _, c := range r.Claims {
			require.NotEmpty(t, c.Verdict)
			require.NotEmpty(t, c.Reason, c.ID)
		}
	})
}

func spoil(t *rapid.T, st *result.Step) {
	st.DurationNS = odd(t, "duration")
	switch rapid.IntRange(0, 6).Draw(t, "way") {
	case 0:
		st.Span = nil
	case 1:
		st.Span = &result.Span{GateNS: odd(t, "gate"), LastDoneNS: odd(t, "last"), Bytes: odd(t, "bytes"), IdleNS: odd(t, "idle")}
	case 2:
		for i := range st.Samples {
			st.Samples[i].DurationNS = odd(t, "time")
			st.Samples[i].Bytes = odd(t, "size")
		}
	case 3:
		st.Samples = nil
	case 4:
		st.Disk = &result.DiskUse{Allocated: odd(t, "allocated"), VolumeFree: odd(t, "free"), Attached: true}
	case 5:
		st.Do, st.Stream = "stream", &result.Stream{In: odd(t, "in"), Out: odd(t, "out"), Ratio: 1e300}
	case 6:
		st.Cycle, st.Session, st.Workers = int(odd(t, "cycle")), 7, int(odd(t, "workers"))
	}
}

func TestTwiceTheSameCaseIsAnError(t *testing.T) {
	p := planOf(t, twoFormats)
	r := play(p, 1, steady(flat(), 0))
	r.Cases = append(r.Cases, r.Cases[0])
	require.EqualError(t, Analyze(p, r, Options{}), `analysing run "test": case "format=UDRW" occurs twice`)
}

func BenchmarkAnalyze(b *testing.B) {
	p := planOf(b, twoFormats)
	p.Files[0].Parts[0].Sets = 40 // 160 files
	for _, rounds := range []int{1, 3} {
		b.Run(fmt.Sprintf("rounds=%d", rounds), func(b *testing.B) {
			r := play(p, rounds, steady(flat(), 0.02))
			for b.Loop() {
				if err := Analyze(p, r, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
