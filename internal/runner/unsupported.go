package runner

import (
	"errors"
	"fmt"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/directory"
	"dmgbench/internal/plan"
)

// Unsupported is what keeps an engine from measuring a case: its image cannot be made, or a step cannot be done to it.
type Unsupported struct {
	Case plan.Case
	Step plan.Step // the step that cannot be done: create where the image cannot be made
	Err  *engine.UnsupportedError
}

// Error names the step and what the engine does not support.
func (u *Unsupported) Error() string {
	if u.Step.Do == "create" {
		return u.Err.Error()
	}
	return fmt.Sprintf("%s: %v", stepName(u.Step), u.Err)
}

func (u *Unsupported) Unwrap() error { return u.Err }

// UnsupportedCases are the cases of a plan that a run with the engine skips, each with the first reason. Whoever
// asks, a check, a dry run or the run itself, hears what the engine says, and nothing is made to find out.
func UnsupportedCases(p *plan.Plan, e engine.Engine) (list []*Unsupported) {
	for _, c := range p.Cases() {
		if u := unsupported(engineOf(e, c.Settings), c); u != nil {
			list = append(list, u)
		}
	}
	return list
}

// DescribeUnsupported says in lines how many of so many cases are skipped, and which for what reason; "" where none is.
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
	text := fmt.Sprintf("%d of %s will be skipped:", len(list), count(of, "case"))
	for _, reason := range reasons {
		text += fmt.Sprintf("\n  %s: %s", strings.Join(ids[reason], " and "), reason)
	}
	return text
}

// engineOf is the engine of the images, or the native one for plain folders.
func engineOf(e engine.Engine, s plan.Settings) engine.Engine {
	if s.Target == "directory" && !simulated(e) {
		return directory.Engine{}
	}
	return e
}

// unsupported is the first thing in a case that the engine cannot do, nil if it can do all.
func unsupported(e engine.Engine, c plan.Case) *Unsupported {
	spec := specOf(c.Settings)
	if err := e.Supports(spec); err != nil {
		return refused(c, plan.Step{Do: "create"}, err)
	}
	return unsupportedStep(e, c, c.Steps, map[string]engine.Spec{"": spec})
}

// unsupportedStep follows the steps with the specs of the containers that there are.
func unsupportedStep(e engine.Engine, c plan.Case, steps []plan.Step, specs map[string]engine.Spec) *Unsupported {
	for _, st := range steps {
		if st.Expect == "fail" { // that it cannot be done is what the plan wants to see
			continue
		}
		from := specs[st.On]
		to, makes := from, st.Do == "transfer" || st.Do == "damage"
		if st.Do == "convert" {
			to, makes = converted(specs[""], c.Settings, st), true
		}
		actions := []engine.Action{{Do: st.Do, To: to, Kind: st.Kind, Repair: st.Repair}}
		switch st.Do {
		case "stream":
			actions[0].Kind = cmpOr(st.Codec, c.Settings.Codec)
		case "damage": // of a copy
			actions = append(actions, engine.Action{Do: "transfer"})
		}
		for _, a := range actions {
			if err := e.Allows(from, a); err != nil {
				return refused(c, st, err)
			}
		}
		if makes {
			specs[cmpOr(st.As, st.Do)] = to
		}
		if u := unsupportedStep(e, c, st.Steps, specs); u != nil {
			return u
		}
	}
	return nil
}

// refused keeps what an engine said. Whatever it cannot do is an [engine.UnsupportedError]; of any other error the step is told to the run.
func refused(c plan.Case, st plan.Step, err error) *Unsupported {
	no, ok := errors.AsType[*engine.UnsupportedError](err)
	if !ok {
		return nil
	}
	for _, s := range c.Steps { // where the plan asks for it
		if s.Do == "create" && st.Do == "create" {
			st = s
			break
		}
	}
	return &Unsupported{Case: c, Step: st, Err: no}
}

// converted is what a convert step makes in a case with the image of that spec.
func converted(spec engine.Spec, s plan.Settings, st plan.Step) engine.Spec {
	spec.Format, spec.BandSize = cmpOr(st.Format, cmpOr(s.ConvertTo, spec.Format)), int64(st.BandSize)
	spec.Encryption = cmpOr(st.Encryption, spec.Encryption)
	return spec
}

// tellUnsupported says at the start of a session which cases are skipped, and why.
func (r *run) tellUnsupported() {
	if text := DescribeUnsupported(UnsupportedCases(r.p, r.c.Engine), len(r.cases)); text != "" {
		r.c.Progress.Message(text)
	}
}
