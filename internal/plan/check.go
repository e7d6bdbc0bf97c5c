package plan

// check looks at the plan as a whole.
func (r *reader) check(root *node, p *Plan) {}
