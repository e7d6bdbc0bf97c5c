package agent

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/fleet"
	"dmgbench/internal/plan"
)

// Config is what the owner of a machine gives to its agent.
type Config struct {
	Link            fleet.Link        // User is the name of the machine
	Folder          string            // of the agent's state: made if missing, and used by one agent at a time
	Program         string            // path of dmgbench
	Places          map[string]string // absolute paths of folders; "" is for plans without places, or with one
	Backing, Inputs map[string]string // absolute paths by name
	Tags            []string
	Engine          string // of jobs that have none; "" is the program's choice
	Measuring       string // folder of the lock that runs on this computer take; "" is none
	Log             func(format string, args ...any)
}

// request is a checked job as flags of dmgbench. Those of resume are fewer, as a run
// keeps its options in its folder, but not the owner's paths.
type request struct {
	locations []string // of run and resume: the owner's places and inputs
	options   []string // of run
}

// readRequest reads a job and makes its flags. It trusts no field of it, as whoever
// has the key of Control could have written it. The error is the reason why the job
// is refused; the job is empty then, so that nothing of it reaches a file or a timer.
func readRequest(c Config, id string, data []byte) (job fleet.Job, r request, err error) {
	defer func() {
		// A plan that makes the parser panic ends the job instead of the agent,
		// which would be given the job again after its restart.
		if p := recover(); p != nil {
			err = fmt.Errorf("reading the plan: %v", p)
		}
		if err != nil {
			job = fleet.Job{}
		}
	}()
	job, err = fleet.Decode[fleet.Job](data)
	switch {
	case err != nil:
		return job, r, err
	case job.ID != id || fleet.CheckJob(id) != nil:
		return job, r, errors.New("the id of the job is not that of its subject")
	case fleet.CheckJob(job.Plan) != nil:
		return job, r, errors.New("the name of the plan: want 1 to 64 letters, digits and hyphens")
	case len(job.Text) > fleet.MaxPlan:
		return job, r, fmt.Errorf("the plan has %d bytes: want at most %d", len(job.Text), fleet.MaxPlan)
	case job.Every != 0 && job.Every < time.Second || job.Repeat < 0: // a result of each occurrence is stored
		return job, r, fmt.Errorf("every %s, %d times: want at least a second", job.Every, job.Repeat)
	}
	p, problems := plan.Parse(job.Plan+".toml", []byte(job.Text))
	if list := problems.Errors(); len(list) > 0 {
		return job, r, errors.New(list[0].String())
	}
	if r.locations, err = locationFlags(c, p); err == nil {
		r.options, err = optionFlags(job.Options, cmp.Or(job.Options.Engine, c.Engine))
	}
	return job, r, err
}

// locationFlags are the flags for those places and inputs of the owner that the
// plan uses. A plan that needs commands or a person is refused.
func locationFlags(c Config, p *plan.Plan) (flags []string, err error) {
	for _, note := range p.Notes {
		if note.Tool != "" {
			return nil, fmt.Errorf("place %q makes the plan execute %s: agents execute no commands", note.Name, note.Tool)
		}
	}
	if len(p.Manual) > 0 {
		return nil, fmt.Errorf("someone has to set %q at the machine during the run", p.Manual[0].Name)
	}
	// Only what the plan names is given, and the folder for a plan with a single place:
	// a run does not depend on the rest.
	names, single := p.Places(), c.Places[""]
	for _, name := range names {
		_, here := plan.HereFor(name) // in the run folder
		if dir := c.Places[name]; dir != "" {
			flags = append(flags, "--on="+name+"="+dir)
		} else if !here && (single == "" || len(names) > 1) {
			return nil, fmt.Errorf("the owner of this machine gave no folder for place %q", name)
		}
		if dir := c.Backing[name]; dir != "" && c.Places[name] != "" {
			flags = append(flags, "--backing="+name+"="+dir)
		}
	}
	// The program gives the folder to the only place of a plan without one.
	if single != "" {
		flags = append(flags, "--on=="+single)
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
// its value, so that no value can become another flag. The forms are narrower than
// those of the program: no engine that a test uses, and no number with a sign or an
// exponent.
func optionFlags(o fleet.Options, engine string) (flags []string, err error) {
	seed := ""
	if o.Seed != nil {
		seed = strconv.FormatUint(*o.Seed, 10)
	}
	for _, f := range []struct{ name, value, form string }{
		// Whether a value fits the plan is for the dry run to decide.
		{"rounds", o.Rounds, `auto|[1-9][0-9]{0,4}`},
		{"sets", positive(o.Sets), `[0-9]{1,6}`},
		{"scale", o.Scale, `[0-9]{1,6}(\.[0-9]{1,9})?`},
		{"seed", seed, `[0-9]+`},
		{"workers", positive(o.Workers), `[0-9]{1,4}`},
		{"engine", engine, `auto|hdiutil|inprocess`},
		{"precision", o.Precision, `[0-9]{1,3}(\.[0-9]{1,9})? ?%`},
		{"only", strings.Join(o.Only, ","), `[^[:cntrl:]]*`},
	} {
		if f.value == "" {
			continue
		}
		if !regexp.MustCompile(`^(` + f.form + `)$`).MatchString(f.value) {
			return nil, fmt.Errorf("option %s: %.64q cannot be used", f.name, f.value)
		}
		flags = append(flags, "--"+f.name+"="+f.value)
	}
	return flags, nil
}

// positive is a number as text, "" if it is 0, which is none.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
