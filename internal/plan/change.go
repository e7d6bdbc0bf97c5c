package plan

// Change is one way in which the plan as executed departs from the plan as
// published: fewer sets, other sizes, another file system.
type Change struct {
	Kind string // sets | scale | rounds | precondition | workers | fs | only | place
	Text string // one sentence for people
}

// changeTable describes [[change]], which only the canonical form of an executed
// plan holds: `report` and `resume` read the departures from it.
var changeTable = table[Change]{name: "[[change]]", keys: []key[Change]{
	enumKey("kind", func(c *Change) *string { return &c.Kind }, "sets", "scale", "rounds", "precondition", "workers", "fs", "only", "place").must(),
	textKey("text", someText, func(c *Change) *string { return &c.Text }).must(),
}}
