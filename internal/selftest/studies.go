package selftest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// studies are all of them, in the order of the page.
var studies = []struct {
	id string
	do func(*exam, context.Context, *draft) error
}{
	{"recovery", (*exam).recovery},
	{"files", (*exam).fileIntervals},
	{"rounds", (*exam).roundIntervals},
	{"speeds", (*exam).twoSpeedIntervals},
	{"auto", (*exam).autoRounds},
	{"verdicts", (*exam).falseVerdicts},
	{"power", (*exam).power},
	{"compare", (*exam).comparisons},
	{"require", (*exam).requiredClaims},
	{"warnings", (*exam).fileWarnings},
	{"drift", (*exam).drift},
	{"overhead", (*exam).overhead},
}

// IDs are the names of all studies.
func IDs() []string {
	out := make([]string, len(studies))
	for i, s := range studies {
		out[i] = s.id
	}
	return out
}

// Run goes through the studies.
func Run(ctx context.Context, o Options) (r Report, err error) {
	for _, id := range o.Only {
		if !slices.Contains(IDs(), id) {
			return Report{}, fmt.Errorf("choosing studies: there is no study %q, only %s", id,
				strings.Join(IDs(), ", "))
		}
	}
	st, err := newStage()
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	x := &exam{seed: o.Seed, full: o.Full, stage: st}
	r = Report{Seed: o.Seed, Full: o.Full, Kept: true}
	for _, one := range studies {
		if len(o.Only) > 0 && !slices.Contains(o.Only, one.id) {
			continue
		}
		from := time.Now()
		d := newDraft(one.id)
		if err := one.do(x, ctx, d); err != nil {
			return r, fmt.Errorf("study %q: %w", one.id, err)
		}
		s := d.finish()
		for _, p := range s.Promises {
			r.Kept = r.Kept && p.Kept
		}
		r.Studies = append(r.Studies, s)
		if o.Done != nil {
			o.Done(s, time.Since(from))
		}
	}
	r.Overhead = x.cost
	return r, nil
}
