package selftest

import (
	_ "embed"
	"fmt"
	"strings"

	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/plan"
)

// goldSizes are the sixteen sizes of the gold standard set, in bytes.
var goldSizes = []int64{2e6, 4e6, 6e6, 8e6, 10e6, 20e6, 40e6, 60e6, 80e6, 100e6,
	200e6, 400e6, 600e6, 800e6, 1000e6, 2000e6}

// oneCall are the gold standard's sizes that one call moves.
var oneCall = goldSizes[:15]

// fewSizes keep a simulated run quick, where rounds are studied and not files.
var fewSizes = []int64{10e6, 100e6, 400e6, 1000e6}

// fourFormats are the cases of the plans that claims are judged on.
var fourFormats = []string{"UDRW", "UDSB", "UDSP", "ASIF"}

// design is the part of a plan that studies vary.
type design struct {
	// Nil is UDRW alone
	formats []string
	sizes   []int64
	sets    int
	rounds  int
	// Keys of [run] for rounds = "auto" instead of rounds, TOML
	auto   string
	canary bool
	read   bool
	// TOML
	claims string
}

func (d design) plan() (*plan.Plan, error) {
	formats := d.formats
	if formats == nil {
		formats = fourFormats[:1]
	}
	var sizes []string
	for _, n := range d.sizes {
		sizes = append(sizes, fmt.Sprintf("%d B", n))
	}
	quoted := func(s []string) string { return `"` + strings.Join(s, `", "`) + `"` }
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
%s`, rounds, d.canary, quoted(formats), quoted(sizes), d.sets, read, d.claims)
	p, problems := plan.Parse("selftest", []byte(text))
	if problems != nil {
		return nil, fmt.Errorf("reading a plan of the selftest: %w", problems)
	}
	return p, nil
}

// files is how many files a step times.
func (d design) files() int { return len(d.sizes) * d.sets }

// sizesText names the sample: "20 of one size", "48 of 16 sizes".
func (d design) sizesText() string {
	if len(d.sizes) == 1 {
		return fmt.Sprintf("%d of one size", d.files())
	}
	return fmt.Sprintf("%d of 16 sizes", d.files())
}

// law reads a law, its lines separated by semicolons; those of this package are
// fixed.
func law(text string) simulated.Machine {
	m, err := simulated.Parse(strings.ReplaceAll(text, ";", "\n"))
	if err != nil {
		panic(fmt.Sprintf("reading a law of the selftest: %v", err))
	}
	return m
}

// The heads of laws: a device with latency and one without, which differ in
// their steps alone from case to case.
const (
	withLatency = "write = 5 GB/s;read = 6 GB/s;latency = 200 us;step = 20 ms;"
	noLatency   = "write = 5 GB/s;read = 5 GB/s;step = 20 ms;"
)

// nullClaims are claims with a truth exactly on their bound under [nullLaw], so
// that a verdict either way is a false alarm.
//
//go:embed nullclaims.toml
var nullClaims string

func countClaims(toml string) int { return strings.Count(toml, "[[claim]]") }

// absoluteClaims compare rates of this session with a constant, where what the
// session was like does not cancel.
var absoluteClaims = map[string]bool{"difference": true, "bound-1": true, "bound-2": true}

// fasterClaim holds where UDSB is written faster than UDRW.
const fasterClaim = `[[claim]]
id = "faster"
says = "Claim faster"
by = "us"
scope = "any"
left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 1"
`

// nullLaw is the law under which [nullClaims] are exactly true; noise is more
// of it.
func nullLaw(noise string) simulated.Machine {
	return law(noLatency + noise + ";[UDSP];write = 2.5 GB/s;[ASIF];write = 4.5 GB/s")
}

// udsbLaw is a law under which UDSB is written at a rate in GB/s, UDRW at 5.
func udsbLaw(noise, rate string) simulated.Machine {
	return law(noLatency + noise + ";[UDSB];write = " + rate + " GB/s")
}
