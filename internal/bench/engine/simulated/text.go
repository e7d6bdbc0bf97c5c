package simulated

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/system/units"
)

// key is one line of the text form: "name = " and the form with the values in
// the places of %s. It is left out where the first value is 0.
type key struct {
	name, form string
	values     func(*Law) []value
}

// keys are all lines of the text form, in the order in which they are written.
var keys = []key{
	{"write", "%s", func(l *Law) []value { return []value{rate(&l.Write)} }},
	{"read", "%s", func(l *Law) []value { return []value{rate(&l.Read)} }},
	{"latency", "%s", func(l *Law) []value { return []value{duration(&l.Latency)} }},
	{"flush", "%s", func(l *Law) []value { return []value{duration(&l.Flush)} }},
	{"step", "%s", func(l *Law) []value { return []value{duration(&l.Step)} }},
	{"file_noise", "%s", func(l *Law) []value { return []value{share(&l.FileNoise)} }},
	{"mount_noise", "%s", func(l *Law) []value { return []value{share(&l.MountNoise)} }},
	{"session_noise", "%s", func(l *Law) []value { return []value{share(&l.SessionNoise)} }},
	{"own_noise", "%s", func(l *Law) []value { return []value{share(&l.OwnNoise)} }},
	{"outliers", "%s x %s", func(l *Law) []value { return []value{share(&l.Outliers), factor(&l.OutlierFactor)} }},
	{"first", "x %s", func(l *Law) []value { return []value{factor(&l.First)} }},
	{"cliff", "%s x %s", func(l *Law) []value { return []value{size(&l.CliffAfter), factor(&l.CliffFactor)} }},
	{"slow", "%s x %s in %s files", func(l *Law) []value {
		return []value{share(&l.Slow), factor(&l.SlowFactor), count(&l.SlowFiles)}
	}},
	{"drift", "%s", func(l *Law) []value { return []value{share(&l.Drift)} }},
}

// value is a field of a law with its text.
type value struct {
	parse  func(text string) error
	text   any // prints the value
	isZero bool
}

func rate(at *float64) value {
	return value{func(s string) error {
		r, err := units.ParseRate(s)
		*at = float64(r)
		return err
	}, units.Rate(*at), *at == 0}
}

func duration(at *time.Duration) value {
	return value{func(s string) error {
		d, err := units.ParseDuration(s)
		*at = d.Std()
		return err
	}, units.Duration(*at), *at == 0}
}

func size(at *int64) value {
	return value{func(s string) error {
		n, err := units.ParseBytes(s)
		*at = int64(n)
		return err
	}, units.Bytes(*at), *at == 0}
}

// share has ten decimals of a percent: exact for every share that a person
// would write.
func share(at *float64) value {
	return value{func(s string) error {
		body, negative := strings.CutPrefix(s, "-")
		v, err := units.ParseShare(body)
		if *at = float64(v); negative {
			*at = -*at
		}
		return err
	}, number(math.Round(*at*1e12)/1e10) + "%", *at == 0}
}

func factor(at *float64) value {
	return value{func(s string) (err error) {
		if *at, err = strconv.ParseFloat(s, 64); err == nil && !(*at > 0) {
			err = fmt.Errorf("a factor of %s is not above 0", s)
		}
		return err
	}, number(*at), *at == 0}
}

func count(at *int) value {
	return value{func(s string) (err error) {
		*at, err = strconv.Atoi(s)
		return err
	}, strconv.Itoa(*at), *at == 0}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// read reads the values of the line into a law.
func (k key) read(l *Law, text string) error {
	form := regexp.MustCompile("^" + strings.ReplaceAll(k.form, "%s", "(.+?)") + "$")
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return fmt.Errorf("parsing %q: want %q", text, strings.ReplaceAll(k.form, "%s", "…"))
	}
	for i, v := range k.values(l) {
		if err := v.parse(parts[i+1]); err != nil {
			return fmt.Errorf("parsing %q: %w", text, err)
		}
	}
	return nil
}

// lines are the lines of a law.
func (l Law) lines() (out []string) {
	for _, k := range keys {
		var parts []any
		values := k.values(&l)
		for _, v := range values {
			parts = append(parts, v.text)
		}
		if !values[0].isZero {
			out = append(out, k.name+" = "+fmt.Sprintf(k.form, parts...))
		}
	}
	return out
}

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
	m, section := Machine{}, ""
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := m.readLine(line, &section); err != nil {
			return Machine{}, fmt.Errorf("reading the law: line %d: %w", i+1, err)
		}
	}
	return m, m.Check()
}

// readLine reads one line into the law of a section, "" for that of all kinds.
func (m *Machine) readLine(line string, section *string) error {
	if name, ok := strings.CutPrefix(line, "["); ok {
		name, closed := strings.CutSuffix(name, "]")
		*section = strings.Join(strings.Fields(name), " ")
		_, twice := m.Kinds[*section]
		if !closed || *section == "" || twice || strings.ContainsAny(*section, "[]=") {
			return fmt.Errorf("%q is not a section, or is there twice", line)
		}
		if m.Kinds == nil {
			m.Kinds = map[string]Law{}
		}
		m.Kinds[*section] = m.Law
		return nil
	}
	name, text, ok := strings.Cut(line, "=")
	at := slices.IndexFunc(keys, func(k key) bool { return k.name == strings.TrimSpace(name) })
	if !ok || at < 0 {
		return fmt.Errorf("%q is not a line of a law", line)
	}
	law := m.Of(*section)
	err := keys[at].read(&law, strings.TrimSpace(text))
	if *section == "" {
		m.Law = law
	} else {
		m.Kinds[*section] = law
	}
	return err
}

// String is the law in one line.
func (m Machine) String() string {
	out := strings.Join(m.lines(), ", ")
	for _, kind := range slices.Sorted(maps.Keys(m.Kinds)) {
		out += "; " + kind + ": " + strings.Join(m.Kinds[kind].lines(), ", ")
	}
	return out
}
