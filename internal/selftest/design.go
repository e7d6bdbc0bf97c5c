package selftest

import (
	"fmt"
	"math"
	"strings"

	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// goldSizes are the sixteen sizes of the gold standard set, in bytes.
var goldSizes = []int64{2e6, 4e6, 6e6, 8e6, 10e6, 20e6, 40e6, 60e6, 80e6, 100e6, 200e6, 400e6, 600e6, 800e6, 1000e6, 2000e6}

// design is the part of a plan that studies vary.
type design struct {
	formats []string
	sizes   []int64
	sets    int
	rounds  int
	auto    string // keys of [run] for rounds = "auto" instead of rounds, TOML
	canary  bool
	read    bool
	claims  string // TOML
}

func (d design) plan() (*plan.Plan, error) {
	quoted := func(s []string) string { return `"` + strings.Join(s, `", "`) + `"` }
	var sizes []string
	for _, n := range d.sizes {
		sizes = append(sizes, fmt.Sprintf("%d B", n))
	}
	read := ""
	if d.read {
		read = `{ do = "read", phase = "new" },`
	}
	rounds := fmt.Sprintf("rounds = %d", d.rounds)
	if d.auto != "" {
		rounds = "rounds = \"auto\"\n" + d.auto
	}
	text := fmt.Sprintf(`schema = 1
title = "A plan of the selftest"
[image]
size = "200 GB"
filesystem_preference = ["exFAT"]
[run]
%s
canary = %v
baseline = false
[matrix]
format = [%s]
[files.all]
sizes = [%s]
sets = %d
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }, %s { do = "detach" }]
%s`, rounds, d.canary, quoted(d.formats), quoted(sizes), d.sets, read, d.claims)
	p, problems := plan.Parse("selftest", []byte(text))
	if problems != nil {
		return nil, fmt.Errorf("reading a plan of the selftest: %w", problems)
	}
	return p, nil
}

// files is how many files a step times.
func (d design) files() int { return len(d.sizes) * d.sets }

// lawOf reads a law that is written in this package, its lines set apart by semicolons.
func lawOf(text string) simulated.Machine {
	m, err := simulated.Parse(strings.ReplaceAll(text, ";", "\n"))
	if err != nil {
		panic("a law of the selftest is none: " + err.Error())
	}
	return m
}

// estimateOf finds an estimate of a case's written or read rate.
func estimateOf(r *result.Result, kind, op, name string) (result.Estimate, bool) {
	for _, s := range r.Summaries {
		if s.Op != op || !strings.Contains(s.Case, kind) {
			continue
		}
		for _, e := range s.Estimates {
			if e.Name == name {
				return e, !math.IsNaN(e.Value)
			}
		}
	}
	return result.Estimate{}, false
}

// verdictOf finds the verdict of a claim.
func verdictOf(r *result.Result, id string) string {
	for _, c := range r.Claims {
		if c.ID == id {
			return c.Verdict
		}
	}
	return ""
}

// decided says whether a verdict takes a side.
func decided(verdict string) bool { return verdict == result.Holds || verdict == result.DoesNotHold }
