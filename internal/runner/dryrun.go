package runner

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// DryRun says what a run of the plan would do: per case every step and the
// totals, and for the whole run the time that its bytes take at rate and that its steps settle. Nothing is
// made or written.
func DryRun(w io.Writer, p *plan.Plan, rate units.Rate) error {
	rounds := max(p.Run.Rounds, 1)
	auto, err := Auto(p)
	if err != nil {
		return err
	}
	if auto != nil {
		rounds = auto.Looks[0]
	}
	var written, read, peak units.Bytes
	cases := p.Cases()
	for _, c := range cases {
		t := plan.Estimate(p, c)
		written, read, peak = written+t.BytesWritten, read+t.BytesRead, max(peak, t.HostPeak)
		fmt.Fprintf(w, "case %s\n", c.ID)
		if err := dryCase(w, t); err != nil {
			return err
		}
	}
	moved := float64(written+read) * float64(rounds)
	span := units.Duration(moved / float64(max(rate, 1)) * float64(time.Second))
	if o := p.Run; o.Precondition == plan.Steady {
		fmt.Fprintf(w, "before the rounds: files of %s at each place until the rate settles, at most %s and %s written\n",
			o.SteadyFile.Human(), o.SteadyTime.Human(), o.SteadyWritten.Human())
	}
	kind := "total"
	if auto != nil {
		kind = "at least"
		defer dryMost(w, p, auto, written, read)
	}
	_, err = fmt.Fprintf(w, kind+": %s × %s, %d B (%s) written, %d B (%s) read, host peak %s, %s of transfer at an assumed %s, %s of waiting\n",
		count(len(cases), "case"), count(rounds, "round"), written*units.Bytes(rounds), (written * units.Bytes(rounds)).Human(), read*units.Bytes(rounds),
		(read * units.Bytes(rounds)).Human(), peak.Human(), span.Human(), rate, units.Duration(Waiting(p)).Human())
	return err
}

// dryMost says what rounds = "auto" may come to.
func dryMost(w io.Writer, p *plan.Plan, a *result.AutoRounds, written, read units.Bytes) {
	most := a.Looks[len(a.Looks)-1]
	n := units.Bytes(most)
	fmt.Fprintf(w, "at most: %s, %d B (%s) written, %d B (%s) read; looked at after %s rounds, until every interval is within ± %s",
		count(most, "round"), written*n, (written * n).Human(), read*n, (read * n).Human(), listed(a.Looks), units.Share(a.Precision))
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

func dryCase(w io.Writer, t plan.Totals) error {
	tw := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	for i, s := range t.Steps {
		fmt.Fprintf(tw, "  %d\t%s\n", i+1, describe(s))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	about := ""
	if t.Approximate {
		about = "about "
	}
	_, err := fmt.Fprintf(w, "  %s%s, %d B written (%s), %d B read, live peak %s, host peak %s\n\n",
		about, count(t.Files, "file"), t.BytesWritten, t.BytesWritten.Human(), t.BytesRead, t.LivePeak.Human(), t.HostPeak.Human())
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
	switch {
	case s.Files == 0 && s.Bytes == 0:
		return name
	case s.Files == 0:
		return fmt.Sprintf("%s\t\t%s\tlive %s", name, s.Bytes.Human(), s.Live.Human())
	}
	return fmt.Sprintf("%s\t%s\t%s\tlive %s", name, count(s.Files, "file"), s.Bytes.Human(), s.Live.Human())
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Waiting is how long a run of the plan settles at least, all rounds together.
func Waiting(p *plan.Plan) (sum time.Duration) {
	for _, c := range p.Cases() {
		sum += waiting(c.Steps) * time.Duration(max(p.Run.Rounds, 1))
	}
	return sum
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
