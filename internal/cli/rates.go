package cli

import (
	"slices"

	"dmgbench/internal/runner"
)

// mostRates is how many rates a spark line shows.
const mostRates = 12

// rates are those of the last stretches of the step under way, bytes per second.
type rates []float64

// add takes what was transferred between two statuses of one step; another step begins anew.
func (r *rates) add(before, now runner.Status) {
	same := before.Case == now.Case && before.Do == now.Do && before.Phase == now.Phase && before.Round == now.Round
	if !same || now.Bytes < before.Bytes || now.TimedNS < before.TimedNS {
		*r, before = (*r)[:0], runner.Status{}
	}
	bytes, ns := now.Bytes-before.Bytes, now.TimedNS-before.TimedNS
	if bytes <= 0 || ns <= 0 {
		return
	}
	if len(*r) == mostRates {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, float64(bytes)/float64(ns)*1e9)
}

// current is the rate of the last stretch; without one that of the whole step, 0 where nothing was transferred yet.
func (r rates) current(s runner.Status) float64 {
	switch {
	case len(r) > 0:
		return r[len(r)-1]
	case s.TimedNS > 0 && s.Bytes > 0:
		return float64(s.Bytes) / float64(s.TimedNS) * 1e9
	}
	return 0
}

// spark draws the rates from 0 to the highest, behind a blank; nothing for fewer than two.
func (r rates) spark() string {
	if len(r) < 2 {
		return ""
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	top, out := slices.Max(r), []rune{' '}
	for _, rate := range r {
		out = append(out, bars[min(int(rate/top*float64(len(bars))), len(bars)-1)])
	}
	return string(out)
}
