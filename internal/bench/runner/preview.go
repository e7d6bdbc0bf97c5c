package runner

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
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
		a := engine.Action{Do: st.Do, To: spec, Kind: st.Kind, Band: st.Band, Repair: st.Repair}
		switch st.Do {
		case "convert":
			a.To = convertedSpec(specs[""], c.Settings, st)
		case "stream":
			a.Kind = cmp.Or(st.Codec, c.Settings.Codec)
		}
		if err := e.Allows(spec, a); err != nil {
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

//go:embed dryrun.tmpl
var dryRunText string

var dryRunTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"add":   func(a, b int) int { return a + b },
	"count": units.Count,
	"human": func(d time.Duration) string { return units.Duration(d).Human() },
}).Parse(dryRunText))

// DryRun prints what a run of the plan would do: every step of each case, cases
// with the same steps together, and for the whole run its bytes and its time at
// rate, of the cases that the engine can measure; nil measures all. It makes no
// image.
func DryRun(w io.Writer, p *plan.Plan, e engine.Engine, rate units.Rate) error {
	auto, err := AutoRounds(p)
	if err != nil {
		return err
	}
	c := EstimateCost(p, e, rate)
	var groups []caseGroup
	for _, one := range p.Cases() {
		t := plan.Estimate(p, one)
		i := slices.IndexFunc(groups, func(g caseGroup) bool {
			same := t // the peak on the host may differ
			same.HostPeak = g.HostPeak
			return reflect.DeepEqual(g.Totals, same)
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, caseGroup{Totals: t})
		}
		groups[i].Cases = append(groups[i].Cases, dryCase{one.ID, t.HostPeak})
	}
	data := struct {
		Groups                []caseGroup
		Run                   plan.RunOptions
		Cost                  Cost
		Auto                  *result.AutoRounds
		Most                  int // rounds
		MostWritten, MostRead units.Bytes
		Looks                 string
	}{Groups: groups, Run: p.Run, Cost: c, Auto: auto}
	if auto != nil {
		last := len(auto.Looks) - 1
		data.Most = auto.Looks[last]
		ratio := func(b units.Bytes) units.Bytes { return b / units.Bytes(c.Rounds) * units.Bytes(data.Most) }
		data.MostWritten, data.MostRead = ratio(c.Written), ratio(c.Read)
		data.Looks = strings.Trim(strings.ReplaceAll(fmt.Sprint(auto.Looks[:last]), " ", ", "), "[]")
		data.Looks = strings.TrimPrefix(fmt.Sprintf("%s and %d", data.Looks, data.Most), " and ")
	}
	tw := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	return errors.Join(dryRunTemplate.ExecuteTemplate(tw, "run", data), tw.Flush())
}

// Cost is what a run takes, at the least number of rounds.
type Cost struct {
	Cases, Rounds int
	Written, Read units.Bytes
	Rate          units.Rate // of the place
	Measured      bool       // the rate, else it is assumed
	Work          units.Duration
	Waiting       units.Duration // of steps, at least
}

// EstimateCost adds up the cases of a plan that the engine can measure, nil: all,
// with the time that they take at rate.
func EstimateCost(p *plan.Plan, e engine.Engine, rate units.Rate) Cost {
	c := Cost{Rounds: max(p.Run.Rounds, 1), Rate: rate}
	if auto, err := AutoRounds(p); err == nil && auto != nil {
		c.Rounds = auto.Looks[0]
	}
	v, cases := speeds{rate: float64(max(rate, 1))}, p.Cases()
	if e != nil {
		v.engine = e.Info().Name
		cases = slices.DeleteFunc(cases, func(cs plan.Case) bool {
			return unsupported(engineFor(e, cs.Settings), cs) != nil
		})
	}
	n := units.Bytes(c.Rounds)
	for _, cs := range cases {
		t := plan.Estimate(p, cs)
		c.Written, c.Read = c.Written+n*t.BytesWritten, c.Read+n*t.BytesRead
	}
	f := newForecast(p, cases, v)
	c.Cases, c.Work = len(cases), units.Duration(n)*units.Duration(f.work)
	c.Waiting = units.Duration(n) * units.Duration(f.wait)
	return c
}

// Total is the time of the work and of the waiting.
func (c Cost) Total() time.Duration { return c.Work.Std() + c.Waiting.Std() }

// String is one line for people.
func (c Cost) String() string {
	var text strings.Builder
	_ = dryRunTemplate.ExecuteTemplate(&text, "cost", c) // a builder takes everything
	return text.String()
}

// caseGroup is the cases of a plan with the same steps.
type caseGroup struct {
	Cases []dryCase
	plan.Totals
}

// dryCase is a case and the largest size of its containers at its place.
type dryCase struct {
	ID       string
	HostPeak units.Bytes
}

// bytesPerRound is how many bytes one round writes, with canaries.
func bytesPerRound(p *plan.Plan) (sum int64) {
	for _, c := range p.Cases() {
		n := int64(plan.Estimate(p, c).BytesWritten)
		if p.Run.Canary {
			n += canaryFiles * canaryBytes
		}
		sum += min(n, math.MaxInt64-sum)
	}
	return sum
}

// AutoRounds is how a run finds the number of rounds of a plan, nil where it is
// fixed. It depends on the plan alone: the rounds after which the run is judged
// must be fixed before the first measurement. It fails if max_written does not
// allow a single round.
func AutoRounds(p *plan.Plan) (*result.AutoRounds, error) {
	o := p.Run
	if !o.Auto {
		return nil, nil
	}
	most, each := o.MaxRounds, bytesPerRound(p)
	if o.MaxWritten > 0 && each > 0 {
		most = int(min(int64(most), int64(o.MaxWritten)/each))
		if most < 1 {
			return nil, fmt.Errorf("planning the rounds: one writes %s, and max_written allows %s",
				units.Bytes(each).Human(), o.MaxWritten.Human())
		}
	}
	return &result.AutoRounds{Precision: float64(o.Precision), Looks: stats.Looks(most), MaxRounds: o.MaxRounds,
		MaxTimeNS: int64(o.MaxTime), MaxWritten: int64(o.MaxWritten)}, nil
}

// specOf is the image that the settings request.
func specOf(s plan.Settings) engine.Spec {
	cache := hostio.CacheBuffered
	if s.Cache == workload.CacheDirect {
		cache = hostio.CacheDirect
	}
	return engine.Spec{
		Format: s.Format, Encryption: s.Encryption, Filesystems: s.Filesystems, Size: int64(s.Size),
		BandSize: int64(s.BandSize), VolumeName: s.VolumeName, Backend: s.Backend, ServedBy: s.ServedBy, Mount: s.Mount,
		Cache: cache,
	}
}

// requestedTarget is the target of a case as the plan asks for it.
func requestedTarget(s plan.Settings) result.Target {
	t := result.Target{
		Kind: s.Target, Place: s.Place, Format: s.Format, Encryption: s.Encryption,
		Size: int64(s.Size), BandSize: int64(s.BandSize), Backend: s.Backend,
	}
	if s.Target != "directory" { // until the engine says otherwise: few volumes are browsed
		t.Mount = engine.MountPrivate
	}
	if len(s.Filesystems) > 0 {
		t.Filesystem = s.Filesystems[0]
	}
	return t
}

// stepName names a step in errors: its kind and its phase.
func stepName(st plan.Step) string { return strings.TrimSpace(st.Do + " " + st.Phase) }
