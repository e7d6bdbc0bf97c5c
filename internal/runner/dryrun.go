package runner

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
)

// DryRun prints what a run of the plan would do: every step of each case, cases
// with the same steps together, and for the whole run its bytes and its time at
// rate. It makes no image.
func DryRun(w io.Writer, p *plan.Plan, rate units.Rate) error {
	auto, err := AutoRounds(p)
	if err != nil {
		return err
	}
	for _, g := range groupCases(p) {
		if err := g.print(w); err != nil {
			return err
		}
	}
	if o := p.Run; o.Precondition == plan.Steady {
		fmt.Fprintf(w, "before the rounds: files of %s at each place until the rate settles, "+
			"at most %s and %s written\n", o.SteadyFile.Human(), o.SteadyTime.Human(), o.SteadyWritten.Human())
	}
	c := EstimateCost(p, rate)
	if auto == nil {
		_, err = fmt.Fprintf(w, "total: %s\n", c)
	} else {
		_, err = fmt.Fprintf(w, "at least: %s\n%s\n", c, describeAuto(auto, c))
	}
	return err
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
	text := fmt.Sprintf("%s × %s, %s written, %s read, about ", units.Count(c.Cases, "case"), units.Count(c.Rounds, "round"),
		c.Written.Human(), c.Read.Human())
	if c.Waiting == 0 {
		return text + fmt.Sprintf("%s at an assumed %s", c.Transfer.Human(), c.Rate)
	}
	return text + fmt.Sprintf("%s: %s of transfer at an assumed %s, %s of waiting",
		units.Duration(c.Total()).Human(), c.Transfer.Human(), c.Rate, c.Waiting.Human())
}

// describeAuto is the most that rounds = "auto" allows.
func describeAuto(a *result.AutoRounds, c Cost) string {
	last := len(a.Looks) - 1
	times := units.Bytes(a.Looks[last])
	each := units.Bytes(c.Rounds)
	looks := strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Looks[:last]), " ", ", "), "[]")
	if looks != "" {
		looks += " and "
	}
	text := fmt.Sprintf("at most: %s, %s written, %s read; looked at after %s%d rounds, "+
		"until every interval is within ± %s",
		units.Count(a.Looks[last], "round"), (c.Written / each * times).Human(), (c.Read / each * times).Human(), looks,
		a.Looks[last], units.Share(a.Precision))
	if a.MaxTimeNS > 0 {
		text += fmt.Sprintf(", for at most %s", units.Duration(a.MaxTimeNS).Human())
	}
	if a.MaxWritten > 0 {
		text += fmt.Sprintf(", writing at most %s (canaries included)", units.Bytes(a.MaxWritten).Human())
	}
	return text
}

// caseGroup is the cases of a plan with the same steps.
type caseGroup struct {
	ids   []string
	peaks []units.Bytes // of each case at its place
	plan.Totals
}

// groupCases groups the cases that do the same with as many bytes.
func groupCases(p *plan.Plan) (groups []caseGroup) {
	for _, c := range p.Cases() {
		t := plan.Estimate(p, c)
		i := slices.IndexFunc(groups, func(g caseGroup) bool {
			return slices.Equal(g.Steps, t.Steps) && g.Files == t.Files && g.BytesWritten == t.BytesWritten &&
				g.BytesRead == t.BytesRead && g.LivePeak == t.LivePeak && g.Approximate == t.Approximate
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, caseGroup{Totals: t})
		}
		groups[i].ids, groups[i].peaks = append(groups[i].ids, c.ID), append(groups[i].peaks, t.HostPeak)
	}
	return groups
}

// print prints the group: its cases, its steps, and what each case adds up to.
func (g caseGroup) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	for i, id := range g.ids {
		fmt.Fprintf(tw, "case %s\tup to %s on the disk\n", id, g.peaks[i].Human())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for i, s := range g.Steps {
		fmt.Fprintf(tw, "  %d\t%s\n", i+1, describeStep(s))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	about, each := "", ""
	if g.Approximate {
		about = "about "
	}
	if len(g.ids) > 1 {
		each = "each case: "
	}
	_, err := fmt.Fprintf(w, "  %s%s%s, %s written, %s read, at most %s of files at a time\n\n",
		each, about, units.Count(g.Files, "file"), g.BytesWritten.Human(), g.BytesRead.Human(), g.LivePeak.Human())
	return err
}

// describeStep is one step in one line: what it does, to how much, and what is
// live after it.
func describeStep(s plan.StepTotal) string {
	cells := strings.TrimSpace(s.Do + " " + s.Phase)
	if s.Cycle > 0 {
		cells += fmt.Sprintf(" (cycle %d)", s.Cycle)
	}
	switch {
	case s.Files > 0:
		cells += "\t" + units.Count(s.Files, "file")
	case s.Bytes > 0:
		cells += "\t"
	case s.Wait > 0:
		return cells + "\twaits " + s.Wait.Human()
	default:
		return cells
	}
	return cells + fmt.Sprintf("\t%s\t%s in use", s.Bytes.Human(), s.Live.Human())
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

// until is the work of the first n steps and a share of the next one.
func (f caseForecast) until(n int, share float64) time.Duration {
	last := len(f.work) - 1
	before, next := f.work[min(n, last)], f.work[min(n+1, last)]
	return before + time.Duration(share*float64(next-before))
}

// total is the work of all steps.
func (f caseForecast) total() time.Duration { return f.work[len(f.work)-1] }

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
		f.work, f.wait = f.work+cf.total(), f.wait+cf.wait
	}
	return f
}

// finish adds a case-round that has ended, whatever its status.
func (f *forecast) finish(id string) {
	f.done += f.cases[id].total()
	f.waited += f.cases[id].wait
	f.slept = 0
}

// fill adds the forecast to a status of the current case, in which so many
// steps have ended, in a run of goal rounds.
func (f *forecast) fill(s *Status, steps int, p workload.Progress, goal int) {
	share := 0.0
	if p.OfBytes > 0 {
		share = min(float64(p.Bytes)/float64(p.OfBytes), 1)
	}
	c := f.cases[s.Case]
	s.WorkNS = int64(f.done + c.until(steps, share))
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
