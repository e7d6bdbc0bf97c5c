package cli

import (
	"fmt"
	"strconv"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// rounds reads the flags about the number of rounds.
func (o *runOptions) rounds(v *plan.Overrides) error {
	bad := func(flag string, err error) error {
		return &usageError{err: fmt.Errorf("reading --%s: %w", flag, err)}
	}
	var err error
	switch o.Rounds {
	case "":
	case "auto":
		v.Auto = true
	default:
		if v.Rounds, err = strconv.Atoi(o.Rounds); err != nil {
			return bad("rounds", fmt.Errorf("%q is neither a whole number nor auto", o.Rounds))
		}
		if v.Rounds < 1 {
			return bad("rounds", fmt.Errorf("%d is less than 1", v.Rounds))
		}
	}
	v.MaxRounds, v.Precondition = o.MaxRounds, o.Precondition
	if o.Precision != "" {
		if v.Precision, err = units.ParseShare(o.Precision); err == nil && v.Precision <= 0 {
			err = fmt.Errorf("%q is not more than nothing", o.Precision)
		}
		if err != nil {
			return bad("precision", err)
		}
	}
	if o.MaxTime != "" {
		if v.MaxTime, err = units.ParseDuration(o.MaxTime); err == nil && v.MaxTime <= 0 {
			err = fmt.Errorf("%q is not more than nothing", o.MaxTime)
		}
		if err != nil {
			return bad("max-time", err)
		}
	}
	if o.MaxWritten != "" {
		if v.MaxWritten, err = units.ParseBytes(o.MaxWritten); err == nil && v.MaxWritten <= 0 {
			err = fmt.Errorf("%q is not more than nothing", o.MaxWritten)
		}
		if err != nil {
			return bad("max-written", err)
		}
	}
	return nil
}

// foundRounds is how the number of rounds came about, "" where it was fixed or is not found yet.
func foundRounds(r *result.Result) string {
	if r.Auto == nil || len(r.Auto.Decisions) == 0 {
		return ""
	}
	last := r.Auto.Decisions[len(r.Auto.Decisions)-1]
	if last.Stop == "" {
		return ""
	}
	return "rounds " + last.Text
}
