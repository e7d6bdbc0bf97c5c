package simulated

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/units"
)

// key is one line of the text form.
type key struct {
	name string
	read func(l *Law, text string) error
	show func(l Law) string // "" for the default
}

// keys are all lines of the text form, in the order in which they are written.
var keys = []key{
	rateKey("write", func(l *Law) *float64 { return &l.Write }), rateKey("read",
		func(l *Law) *float64 { return &l.Read }),
	timeKey("latency", func(l *Law) *time.Duration { return &l.Latency }),
	timeKey("flush", func(l *Law) *time.Duration { return &l.Flush }),
	timeKey("step", func(l *Law) *time.Duration { return &l.Step }),
	shareKey("file_noise", func(l *Law) *float64 { return &l.FileNoise }),
	shareKey("mount_noise", func(l *Law) *float64 { return &l.MountNoise }),
	shareKey("session_noise", func(l *Law) *float64 { return &l.SessionNoise }),
	shareKey("own_noise", func(l *Law) *float64 { return &l.OwnNoise }),
	{"outliers", func(l *Law, s string) (err error) {
		l.Outliers, l.OutlierFactor, err = shareTimes(s)
		return err
	}, func(l Law) string {
		if l.Outliers == 0 {
			return ""
		}
		return percent(l.Outliers) + " x " + number(l.OutlierFactor)
	}},
	{"first", func(l *Law, s string) (err error) {
		l.First, err = times(s)
		return err
	}, func(l Law) string {
		if l.First == 0 {
			return ""
		}
		return "x " + number(l.First)
	}},
	{"cliff", readCliff, func(l Law) string {
		if l.CliffAfter == 0 {
			return ""
		}
		return units.Bytes(l.CliffAfter).String() + " x " + number(l.CliffFactor)
	}},
	{"slow", readSlow, func(l Law) string {
		if l.Slow == 0 {
			return ""
		}
		return fmt.Sprintf("%s x %s in %d files", percent(l.Slow), number(l.SlowFactor), l.SlowFiles)
	}},
	shareKey("drift", func(l *Law) *float64 { return &l.Drift }),
}

func rateKey(name string, at func(*Law) *float64) key {
	return key{name, func(l *Law, s string) error {
		r, err := units.ParseRate(s)
		*at(l) = float64(r)
		return err
	}, func(l Law) string { return units.Rate(*at(&l)).String() }}
}

func timeKey(name string, at func(*Law) *time.Duration) key {
	return key{name, func(l *Law, s string) error {
		d, err := units.ParseDuration(s)
		*at(l) = d.Std()
		return err
	}, func(l Law) string {
		if *at(&l) == 0 {
			return ""
		}
		return units.Duration(*at(&l)).String()
	}}
}

func shareKey(name string, at func(*Law) *float64) key {
	return key{name, func(l *Law, s string) error {
		body, negative := strings.CutPrefix(s, "-")
		v, err := units.ParseShare(body)
		if *at(l) = float64(v); negative {
			*at(l) = -float64(v)
		}
		return err
	}, func(l Law) string {
		if *at(&l) == 0 {
			return ""
		}
		return percent(*at(&l))
	}}
}

// times reads "x 3".
func times(s string) (float64, error) {
	body, ok := strings.CutPrefix(s, "x ")
	f, err := strconv.ParseFloat(body, 64)
	if !ok || err != nil || !(f > 0) {
		return 0, fmt.Errorf("parsing %q: want a factor such as \"x 3\"", s)
	}
	return f, nil
}

// shareTimes reads "2% x 8".
func shareTimes(s string) (share, factor float64, err error) {
	head, tail, _ := strings.Cut(s, " ")
	v, err := units.ParseShare(head)
	if err == nil {
		factor, err = times(tail)
	}
	return float64(v), factor, err
}

func readCliff(l *Law, s string) error {
	i := strings.Index(s, " x ")
	if i < 0 {
		return fmt.Errorf("parsing %q: want bytes and a factor such as \"20 GB x 5\"", s)
	}
	n, err := units.ParseBytes(s[:i])
	if err == nil {
		l.CliffFactor, err = times(s[i+1:])
	}
	l.CliffAfter = int64(n)
	return err
}

func readSlow(l *Law, s string) (err error) {
	head, tail, ok := strings.Cut(s, " in ")
	count, files := strings.CutSuffix(tail, " files")
	if !ok || !files {
		return fmt.Errorf("parsing %q: want a share, a factor and a length such as \"30%% x 2 in 10 files\"", s)
	}
	if l.SlowFiles, err = strconv.Atoi(count); err != nil {
		return fmt.Errorf("parsing %q: %q is not a number of files", s, count)
	}
	l.Slow, l.SlowFactor, err = shareTimes(head)
	return err
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// percent has ten decimals: exact for every share that a person would write.
func percent(f float64) string { return number(math.Round(f*1e12)/1e10) + "%" }

// Parse reads the text form of a machine: lines "name = value" in the units of
// plans, "#" comments, and sections "[KIND]" that start with the values of all
// lines above the first section. Write and read have to be given.
//
//	write      = 5 GB/s
//	read       = 6 GB/s
//	latency    = 200 us
//	file_noise = 3%
//	outliers   = 2% x 8
//	cliff      = 20 GB x 5
//	[UDSB AES-256]
//	write      = 2.5 GB/s
func Parse(text string) (Machine, error) {
	m := Machine{}
	fail := func(line int, err error) (Machine, error) {
		return Machine{}, fmt.Errorf("reading the law: line %d: %w", line, err)
	}
	law, section := &m.Law, ""
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			setLaw(&m, section, law)
			name, closed := strings.CutSuffix(name, "]")
			if section = strings.Join(strings.Fields(name),
				" "); !closed || section == "" || strings.ContainsAny(section, "[]=") {
				return fail(i+1, fmt.Errorf("%q is not a section", line))
			}
			if _, twice := m.Kinds[section]; twice {
				return fail(i+1, fmt.Errorf("section %q is there twice", section))
			}
			law = &Law{}
			*law = m.Law
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		at := slices.IndexFunc(keys, func(k key) bool { return k.name == strings.TrimSpace(name) })
		if !ok || at < 0 {
			return fail(i+1, fmt.Errorf("%q is not a line of a law", line))
		}
		if err := keys[at].read(law, strings.TrimSpace(value)); err != nil {
			return fail(i+1, err)
		}
	}
	setLaw(&m, section, law)
	return m, m.Check()
}

// setLaw sets the law of a section that has ended.
func setLaw(m *Machine, section string, law *Law) {
	if section == "" {
		return
	}
	if m.Kinds == nil {
		m.Kinds = map[string]Law{}
	}
	m.Kinds[section] = *law
}

// lines are the lines of a law.
func (l Law) lines() []string {
	var out []string
	for _, k := range keys {
		if v := k.show(l); v != "" {
			out = append(out, k.name+" = "+v)
		}
	}
	return out
}

// Text is the text form, which [Parse] reads back.
func (m Machine) Text() string {
	out := strings.Join(m.lines(), "\n") + "\n"
	for _, kind := range slices.Sorted(maps.Keys(m.Kinds)) {
		out += "[" + kind + "]\n"
		for _, k := range keys {
			v := k.show(m.Kinds[kind])
			if v == "" && k.show(m.Law) != "" {
				v = defaults[k.name]
			}
			if v != "" {
				out += k.name + " = " + v + "\n"
			}
		}
	}
	return out
}

// defaults reset in a section what the machine sets.
var defaults = map[string]string{
	"latency": "0 s", "flush": "0 s", "step": "0 s", "file_noise": "0%", "mount_noise": "0%", "session_noise": "0%", "own_noise": "0%",
	"outliers": "0% x 1", "first": "x 1", "cliff": "0 B x 1", "slow": "0% x 1 in 1 files", "drift": "0%",
}

// String is the law in one line.
func (m Machine) String() string {
	out := strings.Join(m.lines(), ", ")
	for _, kind := range slices.Sorted(maps.Keys(m.Kinds)) {
		out += "; " + kind + ": " + strings.Join(m.Kinds[kind].lines(), ", ")
	}
	return out
}
