package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dmgbench/internal/fleet"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// minEvery is the shortest time between two occurrences of a job.
const minEvery = time.Second

// request is a checked job as flags of dmgbench.
type request struct {
	locations []string // of run and resume: the owner's places and inputs
	options   []string // of run
}

// checkRequest checks a job, of which it trusts no field, and makes its flags.
// The error is the reason why the job is refused.
func checkRequest(c Config, job fleet.Job) (r request, err error) {
	// A plan that makes the parser panic ends the job instead of the agent.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading the plan: %v", p)
		}
	}()
	switch {
	case fleet.CheckJob(job.Plan) != nil:
		return r, errors.New("the name of the plan: want 1 to 64 letters, digits and hyphens")
	case len(job.Text) > fleet.MaxPlan:
		return r, fmt.Errorf("the plan has %d bytes: want at most %d", len(job.Text), fleet.MaxPlan)
	case job.Every != 0 && job.Every < minEvery || job.Repeat < 0:
		return r, fmt.Errorf("every %s, %d times: want at least %s", job.Every, job.Repeat, minEvery)
	}
	p, problems := plan.Parse(job.Plan+".toml", []byte(job.Text))
	if list := problems.Errors(); len(list) > 0 {
		return r, errors.New(list[0].String())
	}
	for _, note := range p.Notes {
		if note.Tool != "" {
			return r, fmt.Errorf("place %q makes the plan execute %s: agents execute no commands", note.Name, note.Tool)
		}
	}
	if len(p.Manual) > 0 {
		return r, fmt.Errorf("someone has to set %q at the machine during the run", p.Manual[0].Name)
	}
	if r.locations, err = locationFlags(c, p); err != nil {
		return r, err
	}
	r.options, err = optionFlags(c, p, job.Options)
	return r, err
}

// locationFlags are the flags for those places and inputs of the owner that the
// plan uses.
func locationFlags(c Config, p *plan.Plan) (flags []string, err error) {
	names := slices.DeleteFunc(p.Places(), func(name string) bool {
		_, here := plan.HereFor(name) // in the run folder
		return here
	})
	_, single := c.Places[""]
	isUnnamed := func(c plan.Case) bool { return c.Settings.Place == "" }
	useDefault := slices.ContainsFunc(p.Cases(), isUnnamed)
	for _, name := range names {
		dir, given := c.Places[name]
		switch {
		case given:
			flags = append(flags, "--on="+name+"="+dir)
		case single && len(names) == 1 && !useDefault:
			useDefault = true
			continue
		default:
			return nil, fmt.Errorf("the owner of this machine gave no folder for place %q", name)
		}
		if dir := c.Backing[name]; dir != "" {
			flags = append(flags, "--backing="+name+"="+dir)
		}
	}
	if single && useDefault {
		flags = append(flags, "--on=="+c.Places[""])
	}
	for _, in := range p.Inputs {
		if path := c.Inputs[in.Name]; path != "" {
			flags = append(flags, "--input="+in.Name+"="+path)
		} else if !in.Optional {
			return nil, fmt.Errorf("the owner of this machine gave no file for input %q: %s", in.Name, in.About)
		}
	}
	return flags, nil
}

// optionFlags are the flags for the options of a job. Each is one argument with
// its value, so that no value can become another flag.
func optionFlags(c Config, p *plan.Plan, o fleet.Options) (flags []string, err error) {
	add := func(name, value string, ok bool) {
		if value == "" {
			return
		}
		if !ok && err == nil {
			err = fmt.Errorf("option %s: %.64q cannot be used", name, value)
		}
		flags = append(flags, "--"+name+"="+value)
	}
	number := func(name string, n, most int) {
		if n != 0 {
			add(name, strconv.Itoa(n), n > 0 && n <= most)
		}
	}
	rounds, _ := strconv.Atoi(o.Rounds)
	add("rounds", o.Rounds, o.Rounds == "auto" || rounds > 0 && o.Rounds == strconv.Itoa(rounds))
	number("sets", o.Sets, math.MaxInt32)
	number("workers", o.Workers, math.MaxInt32)
	scale, notNumber := strconv.ParseFloat(o.Scale, 64)
	add("scale", o.Scale, notNumber == nil && scale > 0 && scale <= math.MaxFloat64)
	if o.Seed != 0 {
		add("seed", strconv.FormatUint(o.Seed, 10), true)
	}
	engine := cmp.Or(o.Engine, c.Engine)
	add("engine", engine, slices.Contains([]string{"auto", "hdiutil", "inprocess"}, engine))
	_, notShare := units.ParseShare(o.Precision)
	add("precision", o.Precision, notShare == nil)
	only := strings.Join(o.Only, ",")
	_, notSelector := p.ParseSelector(only)
	add("only", only, notSelector == nil && !strings.ContainsFunc(only, unicode.IsControl))
	return flags, err
}
