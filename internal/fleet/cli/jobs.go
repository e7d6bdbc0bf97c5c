package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/system/units"
	"dmgbench/plans"
)

// submitPlans is the command "submit". All plans are read before the first is
// submitted.
func (a *app) submitPlans(ctx context.Context, args []string) error {
	all, err := a.submissions(args)
	if err != nil {
		return err
	}
	f, err := a.openFleet()
	if err != nil {
		return err
	}
	defer f.Close()
	isUnfit := false
	for _, s := range all {
		jobs, skipped, err := f.Submit(ctx, s)
		for _, j := range jobs {
			err = cmp.Or(err, a.print("%s: job %s", j.Machine, j.Job))
		}
		for _, m := range skipped {
			err = cmp.Or(err, a.print("%s: no job of %s: %s", m.Machine, s.Plan, m.Reason))
		}
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			isUnfit = true
			a.note("no machine fits plan %s", s.Plan)
		}
	}
	if isUnfit {
		return &statusError{exit: exitSome}
	}
	return nil
}

// submissions reads the plans, with the options that all of them get.
func (a *app) submissions(args []string) (all []control.Submission, err error) {
	s := control.Submission{Repeat: a.number("repeat"), Options: fleet.Options{Rounds: a.text("rounds"),
		Sets: a.number("sets"), Scale: a.text("scale"), Workers: a.number("workers"), Engine: a.text("engine"),
		Precision: a.text("precision"), Only: a.list("only")}}
	s.Options.Seed, _ = strconv.ParseUint(a.text("seed"), 10, 64) // pflag has checked its type
	if s.Selector, err = control.ParseSelector(a.text("hosts")); err != nil {
		return nil, usageError("", "reading --hosts: %w", err)
	}
	if text := a.text("every"); text != "" {
		every, err := units.ParseDuration(text)
		if err != nil || every <= 0 {
			return nil, usageError("", "reading --every: %q is not a time such as \"24 h\"", text)
		}
		s.Every = every.Std()
	}
	for _, s.Plan = range args {
		isPath := strings.ContainsAny(s.Plan, `/\`) || strings.HasSuffix(s.Plan, ".toml")
		text, ok := plans.Get(s.Plan)
		if isPath || !ok {
			if text, err = os.ReadFile(s.Plan); err != nil {
				near := plan.Nearest(s.Plan, plans.Names())
				return nil, usageError(report.TextIf(near != "", fmt.Sprintf("there is a built-in plan %q", near)),
					"reading plan %q: %w", s.Plan, err)
			}
		}
		s.Text = text
		all = append(all, s)
	}
	return all, nil
}

// cancelJob is the command "cancel".
func (a *app) cancelJob(ctx context.Context, args []string) error {
	f, err := a.openFleet()
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	n, err := f.Cancel(ctx, args[0], a.text("machine"))
	if err != nil {
		return err
	}
	if n == 0 {
		return &statusError{fmt.Errorf("cancelling job %q: no such job waits or runs", args[0]),
			"dmgbench-fleet status lists the jobs", exitError}
	}
	return a.print("cancelled %s", report.Count(n, "job"))
}
