package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/engine/inprocess"
	"dmgbench/internal/plan"
	"dmgbench/internal/runner"
	"dmgbench/plans"
)

// onAnyEngine finds what no engine can do, on whatever machine: an error where that is in every image of the plan, else a
// warning that names the cases. A plan that was changed may have only such cases left, and can be run all the same.
func onAnyEngine(name string, p *plan.Plan) []plan.Problem {
	engines := []engine.Engine{inprocess.New(nil)}
	for _, e := range hdiutil.Ideal() {
		engines = append(engines, e)
	}
	refusals := map[string]int{}
	var list []*runner.Unsupported
	for _, e := range engines {
		list = runner.UnsupportedCases(p, e)
		for _, u := range list {
			refusals[u.Case.ID]++
		}
	}
	list = slices.DeleteFunc(list, func(u *runner.Unsupported) bool {
		return refusals[u.Case.ID] < len(engines) || u.Case.Settings.Target != "image"
	})
	hopeless, images := len(list), 0
	for _, c := range p.Cases() {
		if c.Settings.Target == "image" {
			images++
		}
	}
	var out []plan.Problem
	for len(list) > 0 {
		first, ids := list[0], []string{}
		list = slices.DeleteFunc(list, func(u *runner.Unsupported) bool {
			same := u.Step.Line == first.Step.Line && u.Step.Column == first.Step.Column && u.Error() == first.Error()
			if same {
				ids = append(ids, u.Case.ID)
			}
			return same
		})
		out = append(out, plan.Problem{Line: first.Step.Line, Column: first.Step.Column, Key: first.Step.Do, Hint: first.Err.Hint,
			Message: fmt.Sprintf("%s: no engine supports %s, which %s asks for", first.Step.Do, first.Err.What, casesNamed(ids))})
	}
	for i := range out {
		out[i].Warning = hopeless < images || len(p.Changes) > 0
		out[i] = out[i].In(planText(name))
	}
	return out
}

// casesNamed is "the case a", or the first few of several.
func casesNamed(ids []string) string {
	const few = 4
	if len(ids) == 1 {
		return "the case " + ids[0]
	}
	text := "the cases " + strings.Join(ids[:min(few, len(ids))], " and ")
	if len(ids) > few {
		text += fmt.Sprintf(" and %d more", len(ids)-few)
	}
	return text
}

// planText is the file and the text of a plan by its name, as load finds it. A file that is gone by now has no text to show.
func planText(name string) (file string, text []byte) {
	if text, ok := plans.Get(name); ok && !pathLike(name) {
		return name + ".toml", text
	}
	text, _ = os.ReadFile(name)
	return name, text
}

// engineAtHand is the engine that a run here would try first. Nothing is made to find out whether it works.
func (a *app) engineAtHand(ctx context.Context, name string) (engine.Engine, error) {
	var failed error
	for _, c := range a.candidates() {
		if name != "auto" && name != c.name {
			continue
		}
		e, err := c.make(ctx, kit{auto: name == "auto"})
		if err == nil {
			return e, nil
		}
		failed = err
	}
	return nil, failed
}

// tellUnsupported prints which cases of a plan the engine at hand would skip.
func (a *app) tellUnsupported(ctx context.Context, p *plan.Plan, engineName string) error {
	e, err := a.engineAtHand(ctx, engineName)
	if err != nil {
		a.warn(fmt.Sprintf("warning: which cases would be skipped is not known: %v", err))
		return nil
	}
	text := runner.DescribeUnsupported(runner.UnsupportedCases(p, e), len(p.Cases()))
	if text != "" {
		_, err = fmt.Fprintln(a.out, printable(text))
	}
	return err
}
