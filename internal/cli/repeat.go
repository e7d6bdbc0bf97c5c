package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/result"
	"dmgbench/internal/units"

	"github.com/spf13/pflag"
)

// repeatOptions are the flags of run that make several sessions.
type repeatOptions struct {
	Sessions int
	Pause    string
	pause    time.Duration
}

// defaultPause is the least pause after which an interrupted run that goes on counts as another session, too.
const defaultPause = "10 min"

func (o *repeatOptions) AddFlags(f *pflag.FlagSet) {
	f.IntVar(&o.Sessions, "sessions", 0, "measure `N` sessions, which compare and report pool: N run folders in the run folder (compare needs 3)")
	f.StringVar(&o.Pause, "pause", "", "`time` between sessions, such as \"1 h\" (default "+defaultPause+")")
}

func (o *repeatOptions) validate(changed func(string) bool) error {
	if changed("sessions") && o.Sessions < 1 {
		return &usageError{err: fmt.Errorf("reading --sessions: %d is less than 1", o.Sessions)}
	}
	if o.Pause != "" && o.times() == 1 {
		return &usageError{err: errors.New("reading --pause: there is one session only"), hint: "add --sessions N"}
	}
	if o.times() == 1 {
		return nil
	}
	text := o.Pause
	if text == "" {
		text = defaultPause
	}
	d, err := units.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q is less than nothing", text)
	}
	if err != nil {
		return &usageError{err: fmt.Errorf("reading --pause: %w", err), hint: "a time such as 90 s, 10 min or 1 h"}
	}
	o.pause = time.Duration(d)
	return nil
}

// times is how many sessions are measured.
func (o *repeatOptions) times() int { return max(o.Sessions, 1) }

// describe prints what the dry run of one session leaves out.
func (o *repeatOptions) describe(w io.Writer) error {
	if o.times() == 1 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nSESSIONS: all of this %d times, with a pause of %s in between\n", o.Sessions, o.pause)
	return err
}

// folder is the run folder of a session from 1, in the folder of all of them. Names sort as numbers do.
func (o *repeatOptions) folder(dir string, session int) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d", len(fmt.Sprint(o.Sessions)), session))
}

// repeat measures all sessions: do runs every plan once, into the folders given.
func (a *app) repeat(ctx context.Context, clk clock.Clock, o repeatOptions, dirs []string, do func(dirs []string) (int, error)) error {
	if o.times() == 1 {
		code, err := do(dirs)
		if err != nil {
			return err
		}
		return status(code)
	}
	code := 0
	for n := 1; n <= o.Sessions; n++ {
		if n > 1 {
			a.newProgress().Message(fmt.Sprintf("session %d of %d is done; the next begins at %s UTC", n-1, o.Sessions, clk.Wall().Add(o.pause).Format("15:04")))
			if err := clk.Sleep(ctx, o.pause); err != nil {
				a.tellMissing(o, dirs, n)
				return status(exitInterrupted)
			}
		}
		own := make([]string, len(dirs))
		for i, dir := range dirs {
			own[i] = o.folder(dir, n)
		}
		got, err := do(own)
		if err != nil {
			return err
		}
		if code = max(code, got); code == exitInterrupted {
			a.tellMissing(o, dirs, n+1)
			break
		}
	}
	if !a.json && code != exitInterrupted {
		for _, dir := range dirs {
			a.newProgress().Message(fmt.Sprintf("%d sessions are in %s: dmgbench compare BEFORE %s, or dmgbench report %s", o.Sessions, printable(dir), quoted(dir),
				quoted(dir)+"/*"))
		}
	}
	return status(code)
}

// tellMissing names the commands that measure the sessions from first on.
func (a *app) tellMissing(o repeatOptions, dirs []string, first int) {
	var lines []string
	for n := first; n <= o.Sessions; n++ {
		for _, dir := range dirs {
			lines = append(lines, "  dmgbench run "+quoted(filepath.Join(o.folder(dir, 1), result.PlanFile))+" --out "+quoted(o.folder(dir, n)))
		}
	}
	if len(lines) > 0 {
		a.newProgress().Message("interrupted: these sessions are not measured yet (give --on and --engine as before):\n" + printable(strings.Join(lines, "\n")))
	}
}
