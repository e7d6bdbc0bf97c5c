package plan

import (
	"slices"

	"dmgbench/internal/system/units"
)

// Use asks which of several images to take for one use.
type Use struct {
	Name string `plan:"name name !"`
	// Says: what the image is used for
	Says       string      `plan:"says words !"`
	Candidates []Candidate `plan:"candidates min=2 max=20 !"`
	// Decide: the first decides, and each further one among those that are equal
	// by all before it
	Decide []Criterion `plan:"decide min=1 max=9 !"`
	Advice []Advice    `plan:"advice"`
}

// Candidate is one of the images to choose from.
type Candidate struct {
	Title string   `plan:"title line !"`
	Where Selector `plan:"where !"`
}

// Criterion is a quantity by which candidates are compared.
type Criterion struct {
	Title    string   `plan:"title line !"`
	Quantity Quantity `plan:"quantity quantities !"`
	// Where: added to that of each candidate: phase, cycle, operation
	Where Selector `plan:"where"`
	// Matters is the smallest difference that matters, as a share of the smaller
	// value: 0.1 for times of 10 and 11 s, and for rates of 10 and 11 MB/s.
	Matters units.Share `plan:"matters always !"`
	// Better: higher | lower
	Better string `plan:"better higher|lower"`
}

// Advice is what somebody published for a use.
type Advice struct {
	Says   string `plan:"says words !"`
	Source string `plan:"source words !"`
	// Candidate: title of the one that it recommends
	Candidate string `plan:"candidate line !"`
	// Criteria: titles of those that the source speaks of, empty: of all
	Criteria []string `plan:"criteria line"`
}

// finishCriterion fills in which values are better, of quantities for which the
// registry knows that.
func finishCriterion(r *reader, n *node, x *Criterion) {
	info, known := x.Quantity.Info()
	switch at := n.get("better"); {
	case !known || at != nil && at.invalid:
	case at == nil && info.Better == "":
		r.bad(n, "better is missing: %q has no better direction of its own", x.Quantity).
			hintf(`write better = "higher" or better = "lower"`)
	case at == nil:
		x.Better = info.Better
	case info.Better != "" && info.Better != x.Better:
		r.bad(at, "better: a %s %q is the better one", info.Better, x.Quantity).hintf("remove it")
	}
}

// checkUses checks that the candidates of each use are different cases with a
// value by every criterion, and that advice recommends one of them.
func (c *checker) checkUses() {
	for i := range c.p.Uses {
		u, n := &c.p.Uses[i], c.root.at("use", i)
		if n.invalid {
			continue
		}
		titles, owners := []string{}, map[string]string{}
		for j := range u.Candidates {
			k, at := &u.Candidates[j], n.at("candidates", j)
			if slices.Contains(titles, k.Title) {
				c.bad(at.at("title"), "the candidate %q is given twice", k.Title)
			}
			titles = append(titles, k.Title)
			c.checkCandidate(at.at("where"), k, owners)
			for m := range u.Decide {
				c.checkCriterion(n.at("decide", m).at("where"), at.at("where"), k, &u.Decide[m])
			}
		}
		criteria := namesOf(u.Decide, func(x *Criterion) string { return x.Title })
		for j, a := range u.Advice {
			for m, title := range a.Criteria {
				if !slices.Contains(criteria, title) {
					c.bad(n.at("advice", j, "criteria", m), "the use %q has no criterion %q", u.Name, title).
						suggest(title, "criteria", criteria)
				}
			}
			if !slices.Contains(titles, a.Candidate) {
				c.bad(n.at("advice", j, "candidate"), "the use %q has no candidate %q", u.Name, a.Candidate).
					suggest(a.Candidate, "candidates", titles)
			}
		}
	}
}

// checkCandidate checks that a candidate shares no case with those before it.
// owners has their titles, by the cases' ids.
func (c *checker) checkCandidate(at *node, k *Candidate, owners map[string]string) {
	for i := range c.cases {
		id := c.cases[i].ID
		if !c.whole || !k.Where.Match(c.cases[i].Value) {
			continue
		}
		if owner, has := owners[id]; has {
			c.bad(at, "the candidates %q and %q both are the case %q", owner, k.Title, id)
			return
		}
		owners[id] = k.Title
	}
}

// checkCriterion checks that a candidate has a value by a criterion that is not
// the mean of different cases or steps.
func (c *checker) checkCriterion(at, candidate *node, k *Candidate, x *Criterion) {
	where := slices.Concat(k.Where, x.Where)
	if pick, _ := k.Where.split(); c.whole && c.reachOf(pick, "").cases == 0 {
		c.bad(candidate, "no case is %s", pick).
			hintf("compare with [matrix]; [run] baseline = true makes the baseline cases")
		return
	}
	r := c.checkQuantity(at, where, x.Quantity)
	if r == nil {
		return
	}
	if mean := r.unnamedMean(where, ""); mean != nil {
		if keyNamed(sampleKeys, mean.Key) == nil {
			at = candidate
		}
		c.refuseMean(at, mean)
	}
}
