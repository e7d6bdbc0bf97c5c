package plan

import "dmgbench/internal/units"

// Steady is the one way of preconditioning that there is.
const Steady = "steady"

// What precondition = "steady" takes where the plan does not say. The limit is
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

// finishSteady fills in what is not said, and refuses limits of nothing.
func finishSteady(r *reader, n *node, o *RunOptions) {
	if o.Precondition == Steady {
		o.beSteady()
		return
	}
	o.Precondition = ""
	for _, k := range steadyKeys()[1:] {
		if at := n.get(k.name); at != nil {
			r.problem(at.key, k.name, `[run]: %q is about precondition = "steady"`, k.name).hintf(`write precondition = "steady", or remove it`)
		}
	}
}

// beSteady asks for preconditioning, with defaults for what is not said.
func (o *RunOptions) beSteady() {
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
	case o.Precondition == "" || o.Precondition == p.Run.Precondition || o.Precondition == "none" && p.Run.Precondition == "":
		return nil
	case o.Precondition == Steady:
		p.Run.beSteady()
		p.changed("precondition", "the disk is written to until its rate settles")
	case o.Precondition == "none":
		p.Run.Precondition, p.Run.SteadyWindow, p.Run.SteadyLimit, p.Run.SteadyFile, p.Run.SteadyTime, p.Run.SteadyWritten = "", 0, 0, 0, 0, 0
		p.changed("precondition", "the disk is not written to until its rate settles")
	default:
		return &OverrideError{"precondition", o.Precondition, "want none or steady"}
	}
	return nil
}
