package runner

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// DryRun prints what a run of the plan would do: every step of each case, cases with the same steps together, and for
// the whole run its bytes and its time at rate. Nothing is made or written.
func DryRun(w io.Writer, p *plan.Plan, rate units.Rate) error {
	auto, err := Auto(p)
	if err != nil {
		return err
	}
	for _, g := range groupCases(p) {
		if err := g.print(w); err != nil {
			return err
		}
	}
	if o := p.Run; o.Precondition == plan.Steady {
		fmt.Fprintf(w, "before the rounds: files of %s at each place until the rate settles, at most %s and %s written\n",
			o.SteadyFile.Human(), o.SteadyTime.Human(), o.SteadyWritten.Human())
	}
	kind, c := "total", EstimateCost(p, rate)
	if auto != nil {
		kind = "at least"
		defer dryMost(w, p, auto, c)
	}
	_, err = fmt.Fprintf(w, "%s: %s\n", kind, c)
	return err
}

// Cost is what a run takes, at the least number of rounds.
type Cost struct {
	Cases, Rounds int
	Written, Read units.Bytes
	Rate          units.Rate     // assumed
	Transfer      units.Duration // of all bytes at that rate
	Waiting       units.Duration // that steps wait at least
}

// EstimateCost adds up the cases of a plan, with the time of its bytes at rate.
func EstimateCost(p *plan.Plan, rate units.Rate) Cost {
	c := Cost{Rounds: max(p.Run.Rounds, 1), Rate: rate}
	if auto, err := Auto(p); err == nil && auto != nil {
		c.Rounds = auto.Looks[0]
	}
	for _, cs := range p.Cases() {
		t := plan.Estimate(p, cs)
		c.Cases++
		c.Written, c.Read, c.Waiting = c.Written+t.BytesWritten, c.Read+t.BytesRead, c.Waiting+units.Duration(waiting(cs.Steps))
	}
	n := units.Bytes(c.Rounds)
	c.Written, c.Read, c.Waiting = c.Written*n, c.Read*n, c.Waiting*units.Duration(n)
	c.Transfer = units.Duration(float64(c.Written+c.Read) / float64(max(rate, 1)) * float64(time.Second))
	return c
}

// Total is the time of the bytes and of the waiting.
func (c Cost) Total() time.Duration { return c.Transfer.Std() + c.Waiting.Std() }

func (c Cost) String() string {
	text := fmt.Sprintf("%s × %s, %s written, %s read, about ", count(c.Cases, "case"), count(c.Rounds, "round"), c.Written.Human(), c.Read.Human())
	if c.Waiting == 0 {
		return text + fmt.Sprintf("%s at an assumed %s", c.Transfer.Human(), c.Rate)
	}
	return text + fmt.Sprintf("%s: %s of transfer at an assumed %s, %s of waiting",
		units.Duration(c.Total()).Human(), c.Transfer.Human(), c.Rate, c.Waiting.Human())
}

// dryMost says what rounds = "auto" may come to.
func dryMost(w io.Writer, p *plan.Plan, a *result.AutoRounds, c Cost) {
	most := a.Looks[len(a.Looks)-1]
	times := units.Bytes(most)
	each := units.Bytes(c.Rounds)
	fmt.Fprintf(w, "at most: %s, %s written, %s read; looked at after %s rounds, until every interval is within ± %s",
		count(most, "round"), (c.Written / each * times).Human(), (c.Read / each * times).Human(), listed(a.Looks), units.Share(a.Precision))
	if a.MaxTimeNS > 0 {
		fmt.Fprintf(w, ", for at most %s", units.Duration(a.MaxTimeNS).Human())
	}
	if a.MaxWritten > 0 {
		fmt.Fprintf(w, ", writing at most %s (canaries included)", units.Bytes(a.MaxWritten).Human())
	}
	fmt.Fprintln(w)
}

// listed is "5, 9 and 17".
func listed(ns []int) string {
	text := ""
	for i, n := range ns {
		switch {
		case i == 0:
		case i == len(ns)-1:
			text += " and "
		default:
			text += ", "
		}
		text += strconv.Itoa(n)
	}
	return text
}

// caseGroup is the cases of a plan whose steps do the same.
type caseGroup struct {
	ids   []string
	peaks []units.Bytes // of each case at its place
	plan.Totals
}

// groupCases puts cases together whose steps do the same to as many bytes.
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

func (g caseGroup) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	for i, id := range g.ids {
		fmt.Fprintf(tw, "case %s\tup to %s on the disk\n", id, g.peaks[i].Human())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for i, s := range g.Steps {
		fmt.Fprintf(tw, "  %d\t%s\n", i+1, describe(s))
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
		each, about, count(g.Files, "file"), g.BytesWritten.Human(), g.BytesRead.Human(), g.LivePeak.Human())
	return err
}

// describe is one step in one line: what it does, to how much, and what is live after it.
func describe(s plan.StepTotal) string {
	name := s.Do
	if s.Phase != "" {
		name += " " + s.Phase
	}
	if s.Cycle > 0 {
		name += fmt.Sprintf(" (cycle %d)", s.Cycle)
	}
	wait := ""
	if s.Wait > 0 {
		wait = "waits " + s.Wait.Human()
	}
	switch {
	case s.Files == 0 && s.Bytes == 0 && wait == "":
		return name
	case s.Files == 0 && s.Bytes == 0:
		return fmt.Sprintf("%s\t%s", name, wait)
	case s.Files == 0:
		return fmt.Sprintf("%s\t\t%s\t%s in use", name, s.Bytes.Human(), s.Live.Human())
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s in use", name, count(s.Files, "file"), s.Bytes.Human(), s.Live.Human())
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// waiting is how long steps settle at least, however fast the disk is.
func waiting(steps []plan.Step) (sum time.Duration) {
	for _, st := range steps {
		switch st.Do {
		case "settle":
			sum += st.AtLeast.Std()
		case "remount":
			sum += st.AtLeast.Std() * time.Duration(max(st.Times, 1))
		case "repeat":
			sum += waiting(st.Steps) * time.Duration(st.Times)
		}
	}
	return sum
}
