package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/units"

	"golang.org/x/term"
)

// largeRun is from how many bytes written on a run asks first: what it costs in
// time and in wear is not to be had by a slip of the hand.
const largeRun = 20 * units.Bytes(1e9)

// ask lets a person at a terminal stop a large run before it begins. Where
// nobody can answer there is no question.
func (a *app) ask(ctx context.Context, ps []*plan.Plan, o runOptions) error {
	in, ok := a.in.(*os.File)
	if _, seen := terminal(a.err); !ok || !seen || o.Yes || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	var total units.Bytes
	upTo := ""
	for _, p := range ps {
		if p.Run.Auto {
			upTo = "up to "
		}
		for _, c := range p.Cases() {
			total += plan.Estimate(p, c).BytesWritten * units.Bytes(p.Run.AtMost()) * units.Bytes(o.Repeat.times())
		}
	}
	if total < largeRun {
		return nil
	}
	fmt.Fprintf(a.err, "This writes %s%s in all. Go on? [y/N] ", upTo, total.Human())
	yes, err := a.typedYes(ctx, in)
	if yes || err != nil {
		return err
	}
	return &usageError{err: fmt.Errorf("starting the run: it was not confirmed"),
		hint: "--dry-run shows what it would do, --sets 1 shortens it honestly, --yes asks nothing"}
}

// typedYes waits for a line and reports whether it is a yes.
func (a *app) typedYes(ctx context.Context, in *os.File) (bool, error) {
	typed := make(chan string, 1)
	go func() { // a read of a terminal cannot be called off; the program ends instead
		line, _ := bufio.NewReader(in).ReadString('\n')
		typed <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return false, ctx.Err()
	case line := <-typed:
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes", nil
	}
}
