package runner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// Unsupported is why an engine cannot measure a case: it cannot make the image,
// or not execute a step on it.
type Unsupported struct {
	Case plan.Case
	Step plan.Step // the step that is not supported: create if the image cannot be made
	Err  *engine.UnsupportedError
}

// Error names the step and what the engine does not support.
func (u *Unsupported) Error() string {
	if u.Step.Do == "create" {
		return u.Err.Error()
	}
	return fmt.Sprintf("%s: %v", stepName(u.Step), u.Err)
}

// Unwrap is the error of the engine, with its hint.
func (u *Unsupported) Unwrap() error { return u.Err }

// UnsupportedCases are the cases of a plan that a run with the engine skips,
// each with the first reason. Checks, dry runs and runs all use it; it only
// calls [engine.Engine.Supports] and Allows and makes no image.
func UnsupportedCases(p *plan.Plan, e engine.Engine) (list []*Unsupported) {
	for _, c := range p.Cases() {
		if u := unsupported(engineFor(e, c.Settings), c); u != nil {
			list = append(list, u)
		}
	}
	return list
}

// DescribeUnsupported lists which of so many cases are skipped for which
// reason, "" if none is.
func DescribeUnsupported(list []*Unsupported, of int) string {
	if len(list) == 0 {
		return ""
	}
	var reasons []string
	ids := map[string][]string{}
	for _, u := range list {
		text := engine.Advised(u)
		if ids[text] == nil {
			reasons = append(reasons, text)
		}
		ids[text] = append(ids[text], u.Case.ID)
	}
	text := fmt.Sprintf("%d of %s will be skipped:", len(list), units.Count(of, "case"))
	for _, reason := range reasons {
		text += fmt.Sprintf("\n  %s: %s", strings.Join(ids[reason], " and "), reason)
	}
	return text
}

// isSimulated reports whether an engine simulates the disk itself.
func isSimulated(e engine.Engine) bool { return e.Info().Name == engine.Simulated }

// engineFor is the engine of a case: e for images, the native one for folders.
func engineFor(e engine.Engine, s plan.Settings) engine.Engine {
	if s.Target == "directory" {
		return nativeEngine(e)
	}
	return e
}

// nativeEngine is the engine of native folders in a run with the engine e.
func nativeEngine(e engine.Engine) engine.Engine {
	if isSimulated(e) {
		return e
	}
	return directory.Engine{}
}

// unsupported is the first thing in a case that the engine does not support,
// nil if it supports all. The run reports errors other than an
// [engine.UnsupportedError] when it executes the step.
func unsupported(e engine.Engine, c plan.Case) *Unsupported {
	spec := specOf(c.Settings)
	step, err := plan.Step{Do: "create"}, e.Supports(spec)
	if err == nil {
		step, err = refusedStep(e, c, c.Steps, map[string]engine.Spec{"": spec})
	} else if i := slices.IndexFunc(c.Steps, func(s plan.Step) bool { return s.Do == "create" }); i >= 0 {
		step = c.Steps[i]
	}
	if u, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		return &Unsupported{Case: c, Step: step, Err: u}
	}
	return nil
}

// refusedStep is the first step that the engine refuses, and why. specs are the
// existing containers by name; it adds those that steps make.
func refusedStep(
	e engine.Engine, c plan.Case, steps []plan.Step, specs map[string]engine.Spec,
) (plan.Step, error) {
	for _, st := range steps {
		if st.Expect == "fail" { // the plan expects that it cannot be done
			continue
		}
		spec := specs[st.On]
		a := engine.Action{Do: st.Do, To: spec, Kind: st.Kind, Repair: st.Repair}
		switch st.Do {
		case "convert":
			a.To = convertedSpec(specs[""], c.Settings, st)
		case "stream":
			a.Kind = cmp.Or(st.Codec, c.Settings.Codec)
		}
		err := e.Allows(spec, a)
		if err == nil && st.Do == "damage" { // damages a copy
			err = e.Allows(spec, engine.Action{Do: "transfer"})
		}
		if err != nil {
			return st, err
		}
		switch st.Do {
		case "convert", "transfer", "damage":
			specs[cmp.Or(st.As, st.Do)] = a.To
		}
		if inner, err := refusedStep(e, c, st.Steps, specs); err != nil {
			return inner, err
		}
	}
	return plan.Step{}, nil
}

// convertedSpec is what a convert step makes in a case with the image spec.
func convertedSpec(spec engine.Spec, s plan.Settings, st plan.Step) engine.Spec {
	spec.Format, spec.BandSize = cmp.Or(st.Format, s.ConvertTo, spec.Format), int64(st.BandSize)
	spec.Encryption = cmp.Or(st.Encryption, spec.Encryption)
	return spec
}
