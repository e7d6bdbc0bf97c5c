package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/plan"
	"dmgbench/internal/runner"
	"dmgbench/internal/units"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var runFormats = []string{"text", "json"}

// assumedRate is what --dry-run reckons times with, bytes per second: a SATA SSD,
// so that the time is an upper guess on anything newer.
const assumedRate units.Rate = 500_000_000

// longRun is from which estimate on a run tells at its start how long it takes.
const longRun = 10 * time.Second

// runOptions are the flags of run.
type runOptions struct {
	sessionOptions
	Plans                 []string
	Out, Filesystem, Only string
	Sets, Workers         int
	Rounds                string
	Precision, MaxTime    string
	MaxWritten            string
	MaxRounds             int
	Precondition          string
	Scale                 float64
	Seed                  string
	DryRun, Yes, Identify bool
	Repeat                repeatOptions
}

// sessionOptions are those that resume has too.
type sessionOptions struct {
	Engine, Format string
	On, Input      []string
	Keep, Verbose  bool
}

func (o *sessionOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Engine, "engine", "auto", "`engine` that makes the images: auto, hdiutil or inprocess")
	f.StringArrayVar(&o.On, "on", nil, "put the images of a place into a folder, as `[NAME=]DIR`, or NAME=here: into the run folder, a deviation; repeatable")
	f.StringArrayVar(&o.Input, "input", nil, "a file that the plan asks for, as `NAME=PATH`; repeatable")
	f.BoolVar(&o.Keep, "keep", false, "leave the images and print how to open them")
	f.StringVar(&o.Format, "format", "text", "output `format`: text or json")
	f.BoolVar(&o.Verbose, "verbose", false, "print the whole report")
}

func (o *sessionOptions) validate() error {
	switch {
	case !slices.Contains(runFormats, o.Format):
		return want("format", o.Format, runFormats)
	case !slices.Contains(engines, o.Engine):
		return want("engine", o.Engine, engines)
	}
	return nil
}

func (o *runOptions) AddFlags(f *pflag.FlagSet) {
	o.sessionOptions.AddFlags(f)
	f.StringVar(&o.Out, "out", "", "the run `folder`, new or empty (default runs/<plan>-<UTC time>)")
	f.IntVar(&o.Sets, "sets", 0, "at most `N` sets of the published sizes each: the honest way to shorten")
	f.Float64Var(&o.Scale, "scale", 0, "multiply all sizes by this `factor`; a deviation")
	f.StringVar(&o.Rounds, "rounds", "", "measure every case `N` times, each with a fresh image (intervals need 3), or auto: until intervals are narrow")
	f.StringVar(&o.Precision, "precision", "", "target half-width of intervals, as a `share` of the value (default 5% with --rounds auto)")
	f.IntVar(&o.MaxRounds, "max-rounds", 0, "with --rounds auto: at most `N` (default 30)")
	f.StringVar(&o.Precondition, "precondition", "", "`how` to prepare the disk: none, or steady: write to each place until its rate settles, before the rounds")
	f.StringVar(&o.MaxTime, "max-time", "", "with --rounds auto: begin no round that would end after this `time`, such as \"2 h\"")
	f.StringVar(&o.MaxWritten, "max-written", "", "with --rounds auto: begin no round that would write beyond this `size`, such as \"200 GB\"")
	f.StringVar(&o.Seed, "seed", "", "the `number` that data and orders are drawn from")
	f.IntVar(&o.Workers, "workers", 0, "read and write with `N` goroutines")
	o.Repeat.AddFlags(f)
	f.StringVar(&o.Only, "only", "", "only the cases with `key=value[,...]`")
	f.StringVar(&o.Filesystem, "fs", "", "`name` of the file system in the images, such as exFAT")
	f.BoolVar(&o.DryRun, "dry-run", false, "print what would be done, and do nothing")
	f.BoolVar(&o.Identify, "identify", false, "record host name, user and paths")
	f.BoolVar(&o.Yes, "yes", false, "do not ask before a large run")
}

func (o *runOptions) validate(changed func(string) bool) error {
	for name, n := range map[string]int{"sets": o.Sets, "max-rounds": o.MaxRounds, "workers": o.Workers} {
		if changed(name) && n < 1 {
			return &usageError{err: fmt.Errorf("reading --%s: %d is less than 1", name, n)}
		}
	}
	if err := cmp.Or(o.rounds(&plan.Overrides{}), o.Repeat.validate(changed)); err != nil {
		return err
	}
	if changed("scale") && !(o.Scale > 0) {
		return &usageError{err: fmt.Errorf("reading --scale: %v is not more than 0", o.Scale)}
	}
	if o.DryRun && o.Format == "json" {
		return &usageError{err: fmt.Errorf("reading --format: --dry-run prints text only")}
	}
	return o.sessionOptions.validate()
}

func (a *app) newRunCommand(runF func(context.Context, runOptions) error) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run PLAN...", GroupID: "measure", Args: between(1, -1, "PLAN"), ValidArgsFunction: completePlans,
		Short: "execute plans",
		Long: `Execute plans: paths, or names of built-in plans. The run folder holds
plan.toml, journal.jsonl, result.json and report.html. A summary of one screen
is printed, with --verbose the whole report. Whatever makes the run another one
than was published is in the report as a deviation.

A plan may name places, such as "internal" and "usb4" (dmgbench plans show).
Each needs a folder: --on usb4=/Volumes/Fast. --on usb4=here agrees to measure
it in the run folder instead (or in that of --on DIR): its cases are then
labelled "here (not usb4)" everywhere, and that is a deviation. For a plan with
one place --on DIR is enough. A folder that is called "here" is ./here.

The engine hdiutil drives Apple's hdiutil and diskutil on a Mac, and on Linux
this program's own ("dmgbench hdiutil"), which mounts real file systems and
needs root; inprocess needs neither. Encrypted images get the passphrase in the
file that DMGBENCH_PASSPHRASE_FILE names, or in DMGBENCH_PASSPHRASE, else one
that is made for the run and forgotten when it ends.

With --format json a line of JSON on stdout tells how each run ended and counts
its cases; progress, warnings and errors are lines of JSON on stderr. With text,
progress is one line on stderr, on a terminal only: plan, share of the whole,
case, step, file, the rate of the last files, what was written of the whole, and
the time left. Warnings are printed as they happen. Nothing is printed while a
file is timed. Ctrl-T (on Linux the signal USR1) has all of it printed in a line
that stays, with or without a terminal.
Ctrl-C cleans up and says how to go on.

` + exitText,
		Example: "  dmgbench run quick\n  dmgbench run gold-standard --sets 1 --on /mnt/fast\n" +
			"  dmgbench run quick --dry-run\n" +
			"  dmgbench run performance-2024 --on internal=. --on usb4=/mnt/fast",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Plans, a.json, a.verbose = args, o.Format == "json", o.Verbose
			if err := o.validate(cmd.Flags().Changed); err != nil {
				return err
			}
			return unlessInterrupted(runF(cmd.Context(), o), "interrupted before the run began: nothing was measured, and nothing is left behind")
		},
	}
	o.AddFlags(cmd.Flags())
	oneOf(cmd, "format", runFormats)
	oneOf(cmd, "engine", engines)
	_ = cmd.RegisterFlagCompletionFunc("only", completeOnly) // fails only for a flag that is not there
	return cmd
}

// overrides are the flags that change the plan.
func (o *runOptions) overrides(p *plan.Plan) (plan.Overrides, error) {
	v := plan.Overrides{Sets: o.Sets, Scale: o.Scale, Workers: o.Workers, Filesystem: o.Filesystem}
	given, err := readPlaces(o.On)
	if err != nil {
		return v, err
	}
	v.Here = given.here
	if err := o.rounds(&v); err != nil {
		return v, err
	}
	if o.Seed != "" {
		n, err := strconv.ParseUint(o.Seed, 10, 64)
		if err != nil {
			return v, &usageError{err: fmt.Errorf("reading --seed: %q is not a whole number from 0", o.Seed)}
		}
		v.Seed = &n
	}
	if o.Only != "" {
		v.Only, err = p.ParseSelector(o.Only)
	}
	return v, err
}

// runPlans makes sure that all plans can be executed before the first one is.
func (a *app) runPlans(ctx context.Context, o runOptions) error {
	ps, err := a.loadAll(o.Plans)
	if err != nil {
		return err
	}
	for i, p := range ps {
		v, err := o.overrides(p)
		if err != nil {
			return err
		}
		if ps[i], _, err = p.Apply(v); err != nil {
			return err
		}
		if err := canRun(ps[i]); err != nil {
			return err
		}
	}
	if o.DryRun {
		for _, p := range ps {
			if err := matched(p, o); err != nil {
				return err
			}
			if err := runner.DryRun(a.out, p, assumedRate); err != nil {
				return err
			}
			if err := a.tellUnsupported(ctx, p, o.Engine); err != nil {
				return err
			}
			if err := o.Repeat.describe(a.out); err != nil {
				return err
			}
			if err := a.tellSpace(p, o); err != nil {
				return err
			}
		}
		return nil
	}
	return a.execute(ctx, ps, o)
}

// matched checks that the files and folders that are given are what a plan asks for. Without files it is shown all the same.
func matched(p *plan.Plan, o runOptions) error {
	files, err := pairs("input", o.Input)
	if err != nil {
		return err
	}
	at, err := readPlaces(o.On)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		err = matchInputs(p, files)
	}
	_, misplaced := placesOf(p, at.dirs)
	return cmp.Or(err, misplaced)
}

// tellSpace prints what the run of a plan needs at each place and what is free there, and warns where it would be refused.
// It is about this machine, so that it is no part of what stdout has of the plan.
func (a *app) tellSpace(p *plan.Plan, o runOptions) error {
	at, err := readPlaces(o.On)
	if err != nil {
		return err
	}
	have, err := placesOf(p, at.dirs)
	if err != nil {
		return err
	}
	c := runner.Config{Plan: p, Places: have, Out: cmp.Or(o.Out, runsDir), Keep: o.Keep}
	spaces, err := runner.Spaces(c)
	if err != nil {
		return err
	}
	missing := missingPlaces(p, have)
	spaces = slices.DeleteFunc(spaces, func(s runner.Space) bool { return slices.Contains(missing, s.Place.Name) })
	for _, s := range spaces {
		fmt.Fprintln(a.err, printable(s.String()))
	}
	for _, err := range []error{askForPlaces(p, have), runner.CheckSpace(spaces)} {
		if err != nil {
			fmt.Fprintf(a.err, "this run would be refused: %s\nhint: %s\n", printable(err.Error()), printable(hint(err)))
		}
	}
	return nil
}

func (a *app) execute(ctx context.Context, ps []*plan.Plan, o runOptions) error {
	c, err := a.config(ctx, o.sessionOptions)
	if err != nil {
		return err
	}
	c.Identify = o.Identify
	for _, p := range ps {
		if err := matchInputs(p, c.Inputs); err != nil {
			return err
		}
		have, err := placesOf(p, c.Places)
		if err != nil {
			return err
		}
		if err := askForPlaces(p, have); err != nil {
			return err
		}
	}
	if err := a.ask(ctx, ps, o); err != nil {
		return err
	}
	dirs := outFolders(o.Out, ps, c.Clock.Wall().Format("20060102T150405Z"))
	return a.repeat(ctx, c.Clock, o.Repeat, dirs, func(dirs []string) (int, error) { return a.runAll(ctx, c, ps, dirs) })
}

// runAll runs each plan into its folder.
func (a *app) runAll(ctx context.Context, c runner.Config, ps []*plan.Plan, dirs []string) (code int, err error) {
	for i, dir := range dirs {
		c := c
		c.Plan, c.Out = ps[i], dir
		if c.Places, err = placesOf(c.Plan, c.Places); err != nil {
			return code, err
		}
		if err := a.tellCost(c); err != nil {
			return code, err
		}
		got, err := a.session(ctx, c, func(c runner.Config) (runner.Outcome, error) { return runner.Run(ctx, c) })
		if err != nil {
			return code, err
		}
		if code = max(code, got); code == exitInterrupted {
			break
		}
	}
	return code, nil
}

// tellCost prints what a run that is not short will take, and the space that it needs.
func (a *app) tellCost(c runner.Config) error {
	cost := runner.EstimateCost(c.Plan, assumedRate)
	if cost.Total() < longRun {
		return nil
	}
	spaces, err := runner.Spaces(c)
	if err != nil {
		return err
	}
	pr := a.newProgress()
	pr.Message(c.Plan.Name + ": " + cost.String())
	for _, s := range spaces {
		pr.Message(s.String())
	}
	return nil
}

// outFolders are the run folders of the plans; those that nobody chose get a number where
// the name is taken, as a run of less than a second leaves it to the next one.
func outFolders(out string, ps []*plan.Plan, now string) []string {
	var dirs []string
	for _, p := range ps {
		dir := filepath.Join("runs", p.Name+"-"+now)
		if out != "" {
			dir = out
			if len(ps) > 1 {
				dir = filepath.Join(out, p.Name)
			}
		}
		name := dir
		for n := 2; slices.Contains(dirs, name) || out == "" && isThere(name); n++ {
			name = dir + "-" + strconv.Itoa(n)
		}
		dirs = append(dirs, name)
	}
	return dirs
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// pairs reads NAME=VALUE arguments.
func pairs(flag string, args []string) (map[string]string, error) {
	m := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" || value == "" {
			return nil, &usageError{err: fmt.Errorf("reading --%s: %q is not NAME=PATH", flag, arg)}
		}
		if m[name] != "" {
			return nil, &usageError{err: fmt.Errorf("reading --%s: %q is given twice", flag, name)}
		}
		m[name] = value
	}
	return m, nil
}

// matchInputs compares the files that are brought with those that are asked for.
func matchInputs(p *plan.Plan, inputs map[string]string) error {
	for _, in := range p.Inputs {
		if !in.Optional && inputs[in.Name] == "" {
			return &usageError{err: fmt.Errorf("running plan %q: it needs the file %q: %s", p.Name, in.Name, cmp.Or(in.About, "an input")),
				hint: "give it with --input " + in.Name + "=PATH"}
		}
	}
	for name := range inputs {
		if !slices.ContainsFunc(p.Inputs, func(in plan.Input) bool { return in.Name == name }) {
			return &usageError{err: fmt.Errorf("running plan %q: it asks for no file %q", p.Name, name)}
		}
	}
	return nil
}
