package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/host"
)

// A file counts unless the process was stopped for a part of its time. Files in turn have a span
// without it, those of several workers share theirs.
func TestFilesDuringWhichTheProcessWasStoppedAreLeftOut(t *testing.T) {
	whole := result.Span{GateNS: 100, FirstDoneNS: 400, LastDoneNS: 400, Bytes: 6, BusyNS: 300, PausedNS: 5}
	for name, c := range map[string]struct {
		stops   [][2]time.Duration // on the session's clock, at 1000 ns when it is asked
		workers int
		marked  []bool
		span    result.Span
		warning string
	}{
		"never":              {nil, 1, []bool{false, false, false}, whole, ""},
		"before and after":   {[][2]time.Duration{{50, 100}, {400, 500}}, 1, []bool{false, false, false}, whole, ""},
		"within one":         {[][2]time.Duration{{220, 280}}, 1, []bool{false, true, false}, result.Span{GateNS: 100, FirstDoneNS: 300, LastDoneNS: 300, Bytes: 4, BusyNS: 200, PausedNS: 105}, "left out: 1 file"},
		"exactly one":        {[][2]time.Duration{{200, 300}}, 1, []bool{false, true, false}, result.Span{GateNS: 100, FirstDoneNS: 300, LastDoneNS: 300, Bytes: 4, BusyNS: 200, PausedNS: 105}, "left out: 1 file"},
		"over a border":      {[][2]time.Duration{{250, 350}}, 0, []bool{false, true, true}, result.Span{GateNS: 100, FirstDoneNS: 200, LastDoneNS: 200, Bytes: 1, BusyNS: 100, PausedNS: 205}, "left out: 2 files"},
		"twice":              {[][2]time.Duration{{110, 120}, {390, 395}}, 1, []bool{true, false, true}, result.Span{GateNS: 100, FirstDoneNS: 200, LastDoneNS: 200, Bytes: 2, BusyNS: 100, PausedNS: 205}, "left out: 2 files"},
		"all the time":       {[][2]time.Duration{{0, 1000}}, 1, []bool{true, true, true}, result.Span{GateNS: 100, FirstDoneNS: 100, LastDoneNS: 100, PausedNS: 305}, "left out: 3 files"},
		"of several workers": {[][2]time.Duration{{220, 280}}, 2, []bool{false, true, false}, whole, "the time of all files together contains it"},
	} {
		v := clock.NewVirtual(time.Time{})
		v.Advance(6000)
		x := &caseRun{r: &run{started: 5000, c: Config{Clock: v, Stops: func() (out []host.Stop) {
			for _, s := range c.stops {
				out = append(out, host.Stop{Began: 1000 - s[0], Ended: 1000 - s[1]})
			}
			return out
		}}}}
		span := whole
		rec := result.Step{Workers: c.workers, Span: &span}
		for i := range int64(3) {
			rec.Samples = append(rec.Samples, result.Sample{Bytes: i + 1, StartNS: 100 + 100*i, DurationNS: 100})
		}
		x.leaveOutStopped(&rec)
		for i, f := range rec.Samples {
			assert.Equal(t, c.marked[i], f.Stopped, "%s: file %d", name, i)
		}
		assert.Equal(t, c.span, *rec.Span, name)
		if c.warning == "" {
			assert.Empty(t, rec.Warnings, name)
			continue
		}
		if assert.Len(t, rec.Warnings, 1, name) {
			assert.Equal(t, "stopped", rec.Warnings[0].Kind, name)
			assert.Contains(t, rec.Warnings[0].Text, c.warning, name)
		}
	}
}
