package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// newRecord is the record of a step before it is executed. It takes the next
// index.
func (x *caseRun) newRecord(st plan.Step) result.Step {
	rec := result.Step{
		Index: x.index, Do: st.Do, Phase: st.Phase, Round: x.round, Cycle: x.cycle, Session: x.r.session,
		Expect: cmp.Or(st.Expect, "ok"), StartNS: x.r.now(),
	}
	if stepHandlers[st.Do].timesFiles {
		rec.Op = st.Do
	}
	x.index++
	return rec
}

// stepHandlers is how each kind of step is executed, except repeat and pause,
// which [caseRun.runSteps] executes. It is filled by init because the handler
// of parallel refers to it.
var stepHandlers map[string]stepHandler

// The order of rows is that of the protocol: containers, actions on them,
// files.
func init() {
	stepHandlers = map[string]stepHandler{
		"create":   {needs: needsNone, do: (*stepRun).create, replay: (*stepRun).reopenMain},
		"attach":   {do: (*stepRun).attach, replay: (*stepRun).replayAttach},
		"detach":   {do: (*stepRun).detach, replay: (*stepRun).replayDetach},
		"remount":  {do: (*stepRun).remount},
		"settle":   {do: (*stepRun).settle},
		"measure":  {do: (*stepRun).measure},
		"convert":  {do: (*stepRun).deriveContainer, replay: (*stepRun).reopenDerived},
		"transfer": {do: (*stepRun).deriveContainer, replay: (*stepRun).reopenDerived},
		"damage":   {do: (*stepRun).deriveContainer, replay: (*stepRun).reopenDerived},
		"parallel": {needs: needsNone, do: (*stepRun).parallel, replay: (*stepRun).replayParallel},

		"compact": action(func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Compact(ctx, engine.CompactOptions{AllowBattery: st.Battery == "allow"})
		}),
		"resize": action(func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Resize(ctx, int64(st.Size))
		}),
		"check": action(func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Check(ctx, engine.CheckOptions{What: st.What, Repair: st.Repair})
		}),
		"xattr": action(func(ctx context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return h.con.Xattr(ctx, st.Action, st.Attr, st.Value)
		}),
		"trim": onVolume(action(func(ctx context.Context, h *handle, _ plan.Step) (engine.Report, error) {
			return h.att.Trim(ctx)
		})),
		"mkdir": onVolume(action(func(_ context.Context, h *handle, st plan.Step) (engine.Report, error) {
			return engine.Report{}, h.att.Volume().Mkdir(st.Dir)
		})),

		"write":  {needsVolume, fileStep((*stepRun).write), (*stepRun).replayWrite, true},
		"read":   {needsVolume, fileStep((*stepRun).read), nil, true},
		"verify": {needsVolume, fileStep((*stepRun).verify), nil, false},
		"delete": {needsVolume, fileStep((*stepRun).delete), (*stepRun).replayDelete, false},
		"copy":   {needsVolume, fileStep((*stepRun).copy), (*stepRun).replayNamed, false},
		"stream": {needsVolume, fileStep((*stepRun).stream), (*stepRun).replayNamed, true},
	}
}

// action is the handler of a step that is one timed call of the engine.
func action(call func(context.Context, *handle, plan.Step) (engine.Report, error)) stepHandler {
	return stepHandler{do: func(s *stepRun, ctx context.Context) error {
		return s.timeReport(func() (engine.Report, error) { return call(ctx, s.h, s.st) })
	}}
}

// onVolume is the handler of a step that needs a mounted volume.
func onVolume(h stepHandler) stepHandler {
	h.needs = needsVolume
	return h
}

// do executes one step by its handler.
func (x *caseRun) do(ctx context.Context, st plan.Step, rec *result.Step) error {
	handler, ok := stepHandlers[st.Do]
	if !ok {
		return fmt.Errorf("the runner has no step %q", st.Do)
	}
	s := &stepRun{x: x, st: st, rec: rec}
	if handler.needs != needsNone {
		var err error
		if s.h, err = x.container(st); err != nil {
			return err
		}
		if s.h == nil || s.h.con == nil {
			return errors.New("no container has been created")
		}
	}
	if handler.needs == needsVolume && (s.h.att == nil || s.h.att.Volume() == nil) {
		return errors.New("the container is not mounted")
	}
	return handler.do(s, ctx)
}
