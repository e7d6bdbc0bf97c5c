package plan

import (
	"fmt"
	"strconv"
	"strings"

	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// auto is the value of rounds that lets the run choose their number.
const auto = "auto"

// Defaults and limits of rounds = "auto".
const (
	autoPrecision = units.Share(0.05)
	autoRounds    = 30
	maxRounds     = 10000
)

// Steady is the value of precondition that writes to places until their rate is
// steady.
const Steady = "steady"

// AtMost is the largest number of rounds that a run can have.
func (o RunOptions) AtMost() int {
	if o.Auto {
		return o.MaxRounds
	}
	return max(o.Rounds, 1)
}

// RoundsText is the number of rounds in words: "3 rounds" or "5 to 30 rounds".
func (o RunOptions) RoundsText() string {
	if o.Auto && o.Rounds < o.MaxRounds {
		return fmt.Sprintf("%d to %s", o.Rounds, plural(o.MaxRounds, "round"))
	}
	return plural(o.AtMost(), "round")
}

// setAuto lets the run choose the number of rounds, with defaults for the
// limits that are not given.
func (o *RunOptions) setAuto() {
	o.Auto = true
	setDefault(&o.Precision, autoPrecision)
	setDefault(&o.MaxRounds, autoRounds)
	o.Rounds = stats.Looks(o.MaxRounds)[0]
}

// setSteady turns preconditioning on, with defaults for what is not given. The
// limit is that of fio's own examples of steadystate=bw_slope.
func (o *RunOptions) setSteady() {
	o.Precondition = Steady
	setDefault(&o.SteadyWindow, 20)
	setDefault(&o.SteadyLimit, 0.003)
	setDefault(&o.SteadyFile, 256_000_000)
	setDefault(&o.SteadyTime, 600e9)
	setDefault(&o.SteadyWritten, 100_000_000_000)
}

// setDefault sets a value that is not given.
func setDefault[V comparable](at *V, value V) {
	var zero V
	if *at == zero {
		*at = value
	}
}

var roundsKind = number[int](1, maxRounds)

// roundsKey is a number of rounds, or "auto".
func roundsKey() key[RunOptions] {
	k := field("rounds", roundsKind, func(o *RunOptions) *int { return &o.Rounds }).or("3")
	decode, encode := k.decode, k.encode
	k.typ = "number or `\"auto\"`"
	k.decode = func(r *reader, n *node, o *RunOptions) {
		_, err := strconv.Atoi(n.text)
		switch {
		case n.kind == stringNode && n.text == auto:
			o.Auto = true
		case n.kind == stringNode && err != nil:
			r.problem(n.off, "rounds", "rounds: %q is not accepted here", n.text).
				hintf(`accepted: a whole number, or "auto"`)
		default:
			decode(r, n, o)
		}
	}
	k.encode = func(o *RunOptions) (string, bool) {
		if o.Auto {
			return tomlString(auto), true
		}
		return encode(o)
	}
	k.json = func() map[string]any {
		return map[string]any{"anyOf": []any{roundsKind.json, map[string]any{"const": auto}}}
	}
	return k
}

// requirements are the host facts that a plan may require.
var requirements = []struct {
	name  string
	value *scalar
}{
	{"power", enum("ac", "battery").scalar}, {"low_power", enum("off", "on").scalar},
	{"thermal", enum("nominal").scalar}, {"os", enum("macos", "linux").scalar},
	{"memory_pressure", enum("normal").scalar}, {"virtual", enum("no", "yes").scalar},
	{"translated", enum("no", "yes").scalar}, {"busy", enum("no").scalar},
	{"medium", enum("ssd", "hdd", "memory").scalar}, {"location", enum("internal", "external").scalar},
	{"cpus", number[int](1, 4096).scalar}, {"memory", sizeKind.scalar},
}

// findRequirement is the type of a requirement, nil for an unknown name.
func findRequirement(name string) *scalar {
	for _, q := range requirements {
		if q.name == name {
			return q.value
		}
	}
	return nil
}

var requireTable = table[RunOptions]{name: "require", open: &openKeys[RunOptions]{
	names: func() []string {
		out := make([]string, len(requirements))
		for i, q := range requirements {
			out[i] = q.name
		}
		return out
	},
	read: func(r *reader, n *node, o *RunOptions) bool {
		value := findRequirement(n.name)
		if value == nil {
			return false
		}
		if text, ok := r.scalar(n, n.name, value); ok {
			o.Require = append(o.Require, KeyValue{n.name, text})
		}
		return true
	},
	json: func(name string) map[string]any { return findRequirement(name).json },
}}

// requireKey is the table of requirements. Its canonical form keeps the order
// in which the plan has them.
func requireKey() key[RunOptions] {
	k := tableField("require", &requireTable, func(o *RunOptions) *RunOptions { return o },
		func(o *RunOptions) bool { return len(o.Require) > 0 })
	k.encode = func(o *RunOptions) (string, bool) {
		var lines []string
		for _, kv := range o.Require {
			lines = append(lines, kv.Key+" = "+findRequirement(kv.Key).toml(kv.Value))
		}
		return inlineOf(lines), len(lines) > 0
	}
	return k
}

var estimators = []string{"aggregate", "mean", "median", "trimmed", "theil-sen", "least-squares", "weighted"}

var runTable = table[RunOptions]{name: "[run]", keys: []key[RunOptions]{
	roundsKey(),
	field("max_rounds", roundsKind, func(o *RunOptions) *int { return &o.MaxRounds }),
	field("max_time", spanKind, func(o *RunOptions) *units.Duration { return &o.MaxTime }),
	field("max_written", sizeKind, func(o *RunOptions) *units.Bytes { return &o.MaxWritten }),
	field("baseline", flagKind, func(o *RunOptions) *bool { return &o.Baseline }).or("true").always(),
	field("canary", flagKind, func(o *RunOptions) *bool { return &o.Canary }).or("true").always(),
	field("seed", number[uint64](0, 1<<63-1), func(o *RunOptions) *uint64 { return &o.Seed }).or("1").always(),
	requireKey(),
	field("estimator", enum(estimators...), func(o *RunOptions) *string { return &o.Estimator }).or(`"aggregate"`),
	field("fits_in", shareKind, func(o *RunOptions) *units.Share { return &o.FitsIn }).or(`"98%"`),
	field("precision", shareKind, func(o *RunOptions) *units.Share { return &o.Precision }),
	field("precondition", enum("none", Steady), func(o *RunOptions) *string { return &o.Precondition }),
	field("steady_window", number[int](5, 1000), func(o *RunOptions) *int { return &o.SteadyWindow }),
	field("steady_limit", shareKind, func(o *RunOptions) *units.Share { return &o.SteadyLimit }),
	field("steady_file", sizeKind, func(o *RunOptions) *units.Bytes { return &o.SteadyFile }),
	field("steady_max_time", spanKind, func(o *RunOptions) *units.Duration { return &o.SteadyTime }),
	field("steady_max_written", sizeKind, func(o *RunOptions) *units.Bytes { return &o.SteadyWritten }),
}, finish: finishRun}

// finishRun fills in what rounds = "auto" and precondition = "steady" need, and
// refuses their limits without them.
func finishRun(r *reader, n *node, o *RunOptions) {
	if o.Auto {
		if at := n.get("precision"); at != nil && o.Precision == 0 && at.kind == stringNode {
			r.bad(at, `precision: rounds = "auto" continues until intervals are narrow, and no interval is as narrow `+
				`as 0%%`).
				hintf(`want more than 0%%, or a number of rounds`)
		}
		o.setAuto()
	} else {
		r.refuseKeys(n, `rounds = "auto"`, "max_rounds", "max_time", "max_written")
	}
	if o.Precondition == Steady {
		o.setSteady()
	} else {
		o.Precondition = ""
		r.refuseKeys(n, `precondition = "steady"`, "steady_window", "steady_limit", "steady_file", "steady_max_time",
			"steady_max_written")
	}
	switch at := n.get("fits_in"); {
	case at != nil && o.FitsIn > 1:
		r.bad(at, "fits_in: %s is more than the volume", o.FitsIn)
	case at != nil && o.FitsIn == 0 && at.kind == stringNode && strings.Trim(at.text, "0.% ") == "":
		r.bad(at, "fits_in: %s leaves no room for files", o.FitsIn)
	}
}

// refuseKeys reports keys that have a meaning only with another one.
func (r *reader) refuseKeys(n *node, with string, names ...string) {
	for _, name := range names {
		if at := n.get(name); at != nil {
			r.badKey(at, `[run]: %q needs %s`, name, with).hintf(`write %s, or remove it`, with)
		}
	}
}
