package plan

import (
	"fmt"
	"strconv"

	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// auto is the number of rounds that the run finds out itself.
const auto = "auto"

// What rounds = "auto" wants where the plan does not say.
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

// leaveRounds leaves the number of rounds to the run; what is not said gets its default.
func (o *RunOptions) leaveRounds() {
	o.Auto = true
	if o.Precision == 0 {
		o.Precision = autoPrecision
	}
	if o.MaxRounds == 0 {
		o.MaxRounds = autoRounds
	}
	o.Rounds = stats.Looks(o.MaxRounds)[0]
}

// fixRounds is the opposite.
func (o *RunOptions) fixRounds(n int) {
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

// finishRounds sees to what lies between rounds and its limits.
func finishRounds(r *reader, n *node, o *RunOptions) {
	if o.Auto {
		if at := n.get("precision"); at != nil && o.Precision == 0 && at.kind == stringNode {
			r.problem(at.off, "precision", `precision: rounds = "auto" goes on until intervals are narrow, and nothing is as narrow as that`).
				hintf(`want more than 0%%, or a number of rounds`)
		}
		o.leaveRounds()
		return
	}
	for _, name := range []string{"max_rounds", "max_time", "max_written"} {
		if at := n.get(name); at != nil {
			r.problem(at.key, name, `[run]: %q is a limit of rounds = "auto"`, name).hintf(`write rounds = "auto", or remove it`)
		}
	}
}

// autoManual refuses rounds = "auto" beside manual axes: all cases of a round
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
		p.Run.fixRounds(o.Rounds)
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
		p.Run.leaveRounds()
	} else if o.MaxRounds > 0 || o.MaxTime > 0 || o.MaxWritten > 0 {
		flag := "max-written"
		if o.MaxTime > 0 {
			flag = "max-time"
		} else if o.MaxRounds > 0 {
			flag = "max-rounds"
		}
		return &OverrideError{flag, "", fmt.Sprintf("it is a limit of --rounds auto, and the plan has %s; add --rounds auto", p.Run.RoundsText())}
	}
	if now := p.Run; now.Auto != was.Auto || now.Rounds != was.Rounds || now.AtMost() != was.AtMost() || now.Auto && now.Precision != was.Precision ||
		now.MaxTime != was.MaxTime || now.MaxWritten != was.MaxWritten {
		old := roundsWords(was)
		if !was.Auto && !now.Auto {
			old = itoa(was.Rounds)
		}
		p.changed("rounds", "%s, not %s", roundsWords(now), old)
	}
	return nil
}

func roundsWords(o RunOptions) string {
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
