package runner

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

//go:embed dryrun.tmpl
var dryRunText string

var dryRunTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"add":   func(a, b int) int { return a + b },
	"count": units.Count,
	"human": func(d time.Duration) string { return units.Duration(d).Human() },
}).Parse(dryRunText))

// DryRun prints what a run of the plan would do: every step of each case, cases
// with the same steps together, and for the whole run its bytes and its time at
// rate. It makes no image.
func DryRun(w io.Writer, p *plan.Plan, rate units.Rate) error {
	auto, err := AutoRounds(p)
	if err != nil {
		return err
	}
	c := EstimateCost(p, rate)
	data := struct {
		Groups                []caseGroup
		Run                   plan.RunOptions
		Cost                  Cost
		Auto                  *result.AutoRounds
		Most                  int // rounds
		MostWritten, MostRead units.Bytes
		Looks                 string
	}{Groups: groupCases(p), Run: p.Run, Cost: c, Auto: auto}
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
	Rate          units.Rate     // assumed
	Transfer      units.Duration // of all bytes at that rate
	Waiting       units.Duration // of steps, at least
}

// EstimateCost adds up the cases of a plan, with the time of its bytes at rate.
func EstimateCost(p *plan.Plan, rate units.Rate) Cost {
	c := Cost{Rounds: max(p.Run.Rounds, 1), Rate: rate}
	if auto, err := AutoRounds(p); err == nil && auto != nil {
		c.Rounds = auto.Looks[0]
	}
	n := units.Bytes(c.Rounds)
	for _, cs := range p.Cases() {
		t := plan.Estimate(p, cs)
		c.Cases++
		c.Written, c.Read = c.Written+n*t.BytesWritten, c.Read+n*t.BytesRead
		c.Waiting += units.Duration(n) * units.Duration(waiting(t))
	}
	c.Transfer = units.Duration(float64(c.Written+c.Read) / float64(max(rate, 1)) * float64(time.Second))
	return c
}

// Total is the time of the bytes and of the waiting.
func (c Cost) Total() time.Duration { return c.Transfer.Std() + c.Waiting.Std() }

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

// groupCases groups the cases that do the same with as many bytes.
func groupCases(p *plan.Plan) (groups []caseGroup) {
	for _, c := range p.Cases() {
		t := plan.Estimate(p, c)
		i := slices.IndexFunc(groups, func(g caseGroup) bool {
			same := t // the peak on the host may differ
			same.HostPeak = g.HostPeak
			return reflect.DeepEqual(g.Totals, same)
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, caseGroup{Totals: t})
		}
		groups[i].Cases = append(groups[i].Cases, dryCase{c.ID, t.HostPeak})
	}
	return groups
}

// Speeds that a forecast assumes until the run has measured its own.
const (
	assumedRate = 500e6                  // bytes per second: a SATA SSD
	assumedStep = 200 * time.Millisecond // of each create, attach, detach and other step
)

// caseForecast is how long one round of a case takes at the assumed speeds.
type caseForecast struct {
	work []time.Duration // before the first step and until the end of each, without waiting
	wait time.Duration   // that the protocol prescribes
}

// forecast adds up what a run has to do and has done. Work is the time at the
// assumed speeds; progress corrects it by the ratio of the time that the work
// really took.
type forecast struct {
	cases      map[string]caseForecast
	work, wait time.Duration // of one round of all cases
	done       time.Duration // work of the case-rounds that this or an earlier session has finished
	waited     time.Duration // waiting of those
	slept      time.Duration // waiting of the current case-round
}

// newForecast estimates every case of the plan.
func newForecast(p *plan.Plan, cases []plan.Case) forecast {
	f := forecast{cases: map[string]caseForecast{}}
	for _, c := range cases {
		t := plan.Estimate(p, c)
		cf := caseForecast{work: []time.Duration{0}, wait: waiting(t)}
		var sum time.Duration
		for _, s := range t.Steps {
			sum += assumedStep
			switch s.Do {
			case "write", "read", "verify", "copy", "stream":
				sum += time.Duration(float64(s.Bytes) / assumedRate * float64(time.Second))
			}
			cf.work = append(cf.work, sum)
		}
		f.cases[c.ID] = cf
		f.work, f.wait = f.work+sum, f.wait+cf.wait
	}
	return f
}

// finish adds a case-round that has ended, whatever its status.
func (f *forecast) finish(id string) {
	c := f.cases[id]
	f.done, f.waited, f.slept = f.done+c.work[len(c.work)-1], f.waited+c.wait, 0
}

// fill adds the forecast to a status of the current case, in which so many
// steps have ended, in a run of goal rounds.
func (f *forecast) fill(s *Status, steps int, p workload.Progress, goal int) {
	c := f.cases[s.Case]
	last := len(c.work) - 1
	before, next := c.work[min(steps, last)], c.work[min(steps+1, last)]
	if p.OfBytes > 0 { // a share of the next step
		before += time.Duration(min(float64(p.Bytes)/float64(p.OfBytes), 1) * float64(next-before))
	}
	s.WorkNS = int64(f.done + before)
	s.OfWorkNS = int64(f.work) * int64(goal)
	s.WaitedNS = int64(f.waited + min(f.slept, c.wait))
	s.OfWaitNS = int64(f.wait) * int64(goal)
}

// waiting is how long the steps wait at least, however fast the disk is.
func waiting(t plan.Totals) (sum time.Duration) {
	for _, s := range t.Steps {
		sum += s.Wait.Std()
	}
	return sum
}
