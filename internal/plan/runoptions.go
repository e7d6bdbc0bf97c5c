package plan

import (
	"fmt"
	"strconv"
	"strings"

	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// auto is the number of rounds that the run finds out itself.
const auto = "auto"

// What rounds = "auto" wants where the plan does not give it.
const (
	autoPrecision = units.Share(0.05)
	autoRounds    = 30
	mostRounds    = 10000
)

// AtMost is the largest number of rounds that a run can have; where the plan does
// not leave it to the run, that is the number.
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
	return plural(max(o.Rounds, 1), "round")
}

// setAutoRounds leaves the number of rounds to the run; what is not given gets its default.
func (o *RunOptions) setAutoRounds() {
	o.Auto = true
	if o.Precision == 0 {
		o.Precision = autoPrecision
	}
	if o.MaxRounds == 0 {
		o.MaxRounds = autoRounds
	}
	o.Rounds = stats.Looks(o.MaxRounds)[0]
}

// setRounds is the opposite.
func (o *RunOptions) setRounds(n int) {
	o.Auto, o.Rounds, o.MaxRounds, o.MaxTime, o.MaxWritten = false, n, 0, 0, 0
}

// roundsKey is a number of rounds, or "auto".
func roundsKey() key[RunOptions] {
	number := numberType(1, mostRounds)
	return key[RunOptions]{name: "rounds", typ: `number or "auto"`, fallback: "3",
		decode: func(r *reader, n *node, o *RunOptions) {
			if n.kind == stringNode && n.text == auto {
				o.Auto = true
				return
			}
			if n.kind == stringNode {
				if _, err := strconv.Atoi(n.text); err != nil {
					r.problem(n.off, "rounds", "rounds: %q is not accepted here", n.text).hintf(`accepted: a whole number, or "auto"`)
					return
				}
			}
			if text, ok := r.scalar(n, "rounds", number); ok {
				o.Rounds, _ = strconv.Atoi(text)
			}
		},
		encode: func(o *RunOptions) (string, bool) {
			if o.Auto {
				return tomlString(auto), true
			}
			return strconv.Itoa(o.Rounds), o.Rounds != 0
		},
		json: func() map[string]any {
			return map[string]any{"anyOf": []any{number.json, map[string]any{"const": auto}}}
		},
	}
}

// finishRounds checks the limits of rounds = "auto".
func finishRounds(r *reader, n *node, o *RunOptions) {
	if o.Auto {
		if at := n.get("precision"); at != nil && o.Precision == 0 && at.kind == stringNode {
			r.problem(at.off, "precision", `precision: rounds = "auto" goes on until intervals are narrow, and nothing is as narrow as that`).
				hintf(`want more than 0%%, or a number of rounds`)
		}
		o.setAutoRounds()
		return
	}
	for _, name := range []string{"max_rounds", "max_time", "max_written"} {
		if at := n.get(name); at != nil {
			r.problem(at.key, name, `[run]: %q is a limit of rounds = "auto"`, name).hintf(`write rounds = "auto", or remove it`)
		}
	}
}

// autoManual refuses rounds = "auto" with manual axes: all cases of a round
// would have to be there before the next is decided on, and a user would have to turn the axis back every time.
func (c *checker) autoManual() {
	if c.p.Run.Auto && len(c.p.Manual) > 0 {
		at := c.root.at("run", "rounds")
		c.problem(at.off, "rounds", `rounds: "auto" cannot be had with the manual axis %q, which would have to be turned in every round`, c.p.Manual[0].Name).
			hintf("write a number")
	}
}

// applyRounds are the flags about rounds.
func (p *Plan) applyRounds(o Overrides) error {
	was := p.Run
	switch {
	case o.Auto && o.Rounds > 0:
		return &OverrideError{"rounds", itoa(o.Rounds), "want a number or auto"}
	case o.Rounds < 0 || o.Rounds > mostRounds:
		return &OverrideError{"rounds", itoa(o.Rounds), "want 1 to 10000"}
	case o.MaxRounds < 0 || o.MaxRounds > mostRounds:
		return &OverrideError{"max-rounds", itoa(o.MaxRounds), "want 1 to 10000"}
	case o.Rounds > 0:
		p.Run.setRounds(o.Rounds)
	}
	if o.Precision > 0 {
		p.Run.Precision = o.Precision
	}
	if o.Auto || p.Run.Auto {
		if len(p.Manual) > 0 {
			return &OverrideError{"rounds", auto, "the plan has a manual axis, which would have to be turned in every round"}
		}
		if o.MaxRounds > 0 {
			p.Run.MaxRounds = o.MaxRounds
		}
		if o.MaxTime > 0 {
			p.Run.MaxTime = o.MaxTime
		}
		if o.MaxWritten > 0 {
			p.Run.MaxWritten = o.MaxWritten
		}
		p.Run.setAutoRounds()
	} else if o.MaxRounds > 0 || o.MaxTime > 0 || o.MaxWritten > 0 {
		flag := "max-written"
		if o.MaxTime > 0 {
			flag = "max-time"
		} else if o.MaxRounds > 0 {
			flag = "max-rounds"
		}
		return &OverrideError{flag, "", fmt.Sprintf("it is a limit of --rounds auto, and the plan has %s; add --rounds auto", p.Run.RoundsText())}
	}
	if now := p.Run; now.Auto != was.Auto || now.Rounds != was.Rounds || now.AtMost() != was.AtMost() || now.Auto &&
		now.Precision != was.Precision ||
		now.MaxTime != was.MaxTime || now.MaxWritten != was.MaxWritten {
		old := formatRounds(was)
		if !was.Auto && !now.Auto {
			old = itoa(was.Rounds)
		}
		p.changed("rounds", "%s, not %s", formatRounds(now), old)
	}
	return nil
}

func formatRounds(o RunOptions) string {
	if !o.Auto {
		return o.RoundsText()
	}
	text := fmt.Sprintf("%s, until every interval is within ± %s", o.RoundsText(), o.Precision)
	if o.MaxTime > 0 {
		text += fmt.Sprintf(", for at most %s", o.MaxTime)
	}
	if o.MaxWritten > 0 {
		text += fmt.Sprintf(", writing at most %s", o.MaxWritten)
	}
	return text
}

// Steady is the one way of preconditioning that there is.
const Steady = "steady"

// What precondition = "steady" takes where the plan does not give it. The limit is
// that of fio's own examples of steadystate=bw_slope.
const (
	steadyWindow  = 20
	steadyLimit   = units.Share(0.003)
	steadyFile    = units.Bytes(256_000_000)
	steadyTime    = units.Duration(600e9)
	steadyWritten = units.Bytes(100_000_000_000)
)

// steadyKeys are the keys that go with precondition = "steady".
func steadyKeys() []key[RunOptions] {
	return []key[RunOptions]{
		enumKey("precondition", func(o *RunOptions) *string { return &o.Precondition }, "none", Steady),
		numberKey("steady_window", 5, 1000, func(o *RunOptions) *int { return &o.SteadyWindow }),
		shareKey("steady_limit", func(o *RunOptions) *units.Share { return &o.SteadyLimit }),
		sizeKey("steady_file", sizeType, func(o *RunOptions) *units.Bytes { return &o.SteadyFile }),
		spanKey("steady_max_time", func(o *RunOptions) *units.Duration { return &o.SteadyTime }),
		sizeKey("steady_max_written", sizeType, func(o *RunOptions) *units.Bytes { return &o.SteadyWritten }),
	}
}

// finishSteady fills in defaults, and refuses limits without preconditioning.
func finishSteady(r *reader, n *node, o *RunOptions) {
	if o.Precondition == Steady {
		o.setSteadyDefaults()
		return
	}
	o.Precondition = ""
	for _, k := range steadyKeys()[1:] {
		if at := n.get(k.name); at != nil {
			r.problem(at.key, k.name, `[run]: %q is about precondition = "steady"`, k.name).
				hintf(`write precondition = "steady", or remove it`)
		}
	}
}

// setSteadyDefaults asks for preconditioning, with defaults for what is not given.
func (o *RunOptions) setSteadyDefaults() {
	o.Precondition = Steady
	if o.SteadyWindow == 0 {
		o.SteadyWindow = steadyWindow
	}
	if o.SteadyLimit == 0 {
		o.SteadyLimit = steadyLimit
	}
	if o.SteadyFile == 0 {
		o.SteadyFile = steadyFile
	}
	if o.SteadyTime == 0 {
		o.SteadyTime = steadyTime
	}
	if o.SteadyWritten == 0 {
		o.SteadyWritten = steadyWritten
	}
}

// applyPrecondition is the flag of that name.
func (p *Plan) applyPrecondition(o Overrides) error {
	switch {
	case o.Precondition == "" || o.Precondition == p.Run.Precondition || o.Precondition == "none" &&
		p.Run.Precondition == "":
		return nil
	case o.Precondition == Steady:
		p.Run.setSteadyDefaults()
		p.changed("precondition", "the disk is written to until its rate settles")
	case o.Precondition == "none":
		p.Run.Precondition, p.Run.SteadyWindow, p.Run.SteadyLimit, p.Run.SteadyFile, p.Run.SteadyTime, p.Run.SteadyWritten = "", 0, 0, 0, 0, 0
		p.changed("precondition", "the disk is not written to until its rate settles")
	default:
		return &OverrideError{"precondition", o.Precondition, "want none or steady"}
	}
	return nil
}

// requirements are the host facts that a plan may ask for.
var requirements = []struct {
	name  string
	value *scalar
}{
	{"power", enumType(nil, "ac", "battery")}, {"low_power", enumType(nil, "off", "on")},
	{"thermal", enumType(nil, "nominal")},
	{"os", enumType(nil, "macos", "linux")}, {"memory_pressure", enumType(nil, "normal")},
	{"virtual", enumType(nil, "no", "yes")}, {"translated", enumType(nil, "no", "yes")}, {"busy", enumType(nil, "no")},
	{"medium", enumType(nil, "ssd", "hdd", "memory")}, {"location", enumType(nil, "internal", "external")},
	{"cpus", numberType(1, 4096)}, {"memory", sizeType},
}

var requireTable = table[RunOptions]{name: "require", other: readRequirement, otherNames: func(*reader) []string {
	var out []string
	for _, q := range requirements {
		out = append(out, q.name)
	}
	return out
}, otherJSON: func() (map[string]any, any) {
	out := map[string]any{}
	for _, q := range requirements {
		out[q.name] = q.value.json
	}
	return out, false
}}

func readRequirement(r *reader, n *node, o *RunOptions) bool {
	for _, q := range requirements {
		if q.name == n.name {
			if text, ok := r.scalar(n, n.name, q.value); ok {
				o.Require = append(o.Require, KeyValue{n.name, text})
			}
			return true
		}
	}
	return false
}

func requireTOML(o *RunOptions) (string, bool) {
	var lines []string
	for _, kv := range o.Require {
		for _, q := range requirements {
			if q.name == kv.Key {
				lines = append(lines, kv.Key+" = "+q.value.toml(kv.Value))
			}
		}
	}
	return "{ " + strings.Join(lines, ", ") + " }", len(lines) > 0
}

var estimators = []string{"aggregate", "mean", "median", "trimmed", "theil-sen", "least-squares", "weighted"}

var runTable = table[RunOptions]{name: "[run]", keys: append([]key[RunOptions]{
	roundsKey(),
	numberKey("max_rounds", 1, mostRounds, func(o *RunOptions) *int { return &o.MaxRounds }),
	spanKey("max_time", func(o *RunOptions) *units.Duration { return &o.MaxTime }),
	sizeKey("max_written", sizeType, func(o *RunOptions) *units.Bytes { return &o.MaxWritten }),
	flagKey("baseline", func(o *RunOptions) *bool { return &o.Baseline }).or("true").always(),
	flagKey("canary", func(o *RunOptions) *bool { return &o.Canary }).or("true").always(),
	scalarKey("seed", numberType(0, 1<<63-1), func(o *RunOptions, s string) { o.Seed = parseUint(s) },
		func(o *RunOptions) (string, bool) { return uintText(o.Seed), true }).or("1"),
	{name: "require", typ: "table",
		decode: func(r *reader, n *node, o *RunOptions) { requireTable.read(r, n, o) },
		encode: requireTOML,
		json:   func() map[string]any { return requireTable.schema() }},
	enumKey("estimator", func(o *RunOptions) *string { return &o.Estimator }, estimators...).or(`"aggregate"`),
	shareKey("fits_in", func(o *RunOptions) *units.Share { return &o.FitsIn }).or(`"98%"`),
	shareKey("precision", func(o *RunOptions) *units.Share { return &o.Precision }),
}, steadyKeys()...), finish: func(r *reader, n *node, o *RunOptions) {
	finishRounds(r, n, o)
	finishSteady(r, n, o)
	switch at := n.get("fits_in"); {
	case at != nil && o.FitsIn > 1:
		r.problem(at.off, "fits_in", "fits_in: %s is more than the volume", o.FitsIn)
	case at != nil && o.FitsIn == 0 && at.kind == stringNode && strings.Trim(at.text, "0.% ") == "":
		r.problem(at.off, "fits_in", "fits_in: %s leaves no room for files", o.FitsIn)
	}
}}
