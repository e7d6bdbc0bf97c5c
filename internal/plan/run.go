package plan

import (
	"cmp"
	"fmt"
	"reflect"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/system/units"
)

// auto is the value of rounds that lets the run choose their number.
const auto = "auto"

// Defaults and limits of rounds = "auto".
const (
	autoPrecision = units.Share(0.05)
	autoRounds    = 30
	maxRounds     = 10000 // as the tags of [RunOptions] have it
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
	text := units.Count(o.AtMost(), "round")
	if o.Auto && o.Rounds < o.MaxRounds {
		return fmt.Sprintf("%d to %s", o.Rounds, text)
	}
	return text
}

// setAuto lets the run choose the number of rounds, with defaults for the
// limits that are not given.
func (o *RunOptions) setAuto() {
	o.Auto = true
	o.Precision = cmp.Or(o.Precision, autoPrecision)
	o.MaxRounds = cmp.Or(o.MaxRounds, autoRounds)
	o.Rounds = stats.Looks(o.MaxRounds)[0]
}

// setSteady turns preconditioning on, with defaults for what is not given. The
// limit is that of fio's own examples of steadystate=bw_slope.
func (o *RunOptions) setSteady() {
	o.Precondition = Steady
	o.SteadyWindow = cmp.Or(o.SteadyWindow, 20)
	o.SteadyLimit = cmp.Or(o.SteadyLimit, 0.003)
	o.SteadyFile = cmp.Or(o.SteadyFile, 256_000_000)
	o.SteadyTime = cmp.Or(o.SteadyTime, 600e9)
	o.SteadyWritten = cmp.Or(o.SteadyWritten, 100_000_000_000)
}

// runForm is [run] as the canonical form writes it: rounds = "auto" is 0.
func runForm(v reflect.Value) reflect.Value {
	o := v.Interface().(RunOptions)
	if o.Auto {
		o.Rounds = 0
	}
	return reflect.ValueOf(o)
}

// requirements are the host facts that a plan may require, with their kinds as
// tags name them.
var requirements = [][2]string{
	{"power", "ac|battery"}, {"low_power", "off|on"}, {"thermal", "nominal|"}, {"os", "macos|linux"},
	{"memory_pressure", "normal|"}, {"virtual", "no|yes"}, {"translated", "no|yes"}, {"busy", "no|"},
	{"medium", "ssd|hdd|memory"}, {"location", "internal|external"}, {"cpus", "1..4096"}, {"memory", "size"},
}

// requireCodec is the table of requirements. Its canonical form keeps the order
// in which the plan has them.
func requireCodec() codec {
	t := &table{name: "require"}
	for _, q := range requirements {
		k := findKind(q[1], nil)
		t.keys = append(t.keys, key{name: q[0], codec: codec{value: k, json: func() map[string]any { return k.json },
			decode: func(r *reader, n *node, v reflect.Value) {
				if text, ok := k.read(r, n); ok {
					v.Set(reflect.Append(v, reflect.ValueOf(KeyValue{n.name, text})))
				}
			}}})
	}
	return codec{typ: "table", decode: t.read, json: t.schema,
		encode: func(v reflect.Value) (string, bool) {
			var lines []string
			for _, kv := range v.Interface().([]KeyValue) {
				lines = append(lines, kv.Key+" = "+t.key(kv.Key).value.toml(kv.Value))
			}
			return inlineOf(lines), len(lines) > 0
		}}
}

var estimators = []string{"aggregate", "mean", "median", "trimmed", "theil-sen", "least-squares", "weighted"}

// finishRun fills in what rounds = "auto" and precondition = "steady" need, and
// refuses their limits without them.
func finishRun(r *reader, n *node, o *RunOptions) {
	if n.at("rounds").text == auto {
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
	if at := n.get("fits_in"); at != nil && (o.FitsIn > 1 || o.FitsIn == 0) {
		r.bad(at, "fits_in: want more than 0%% and at most 100%%")
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
