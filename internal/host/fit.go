package host

import (
	"fmt"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
)

// Problem is a requirement of a plan that the machine does not meet.
type Problem struct {
	Text string // what is asked and what is there
	Hint string // what the user can do about it
}

// Fit checks the host against what a plan requires: power, low_power, os, cpus,
// memory and thermal. A fact that is not known does not meet a requirement, and
// neither does a key that is not known. cpus and memory are least amounts.
func Fit(h result.Host, require []plan.KeyValue) []Problem {
	var out []Problem
	for _, r := range require {
		if p, ok := fit(h, r); !ok {
			out = append(out, p)
		}
	}
	return out
}

func fit(h result.Host, r plan.KeyValue) (Problem, bool) {
	switch r.Key {
	case "power":
		return differs(r, h.Power, "connect or disconnect the power supply, or run without this requirement")
	case "low_power":
		return differs(r, onOff(h.LowPower), "switch low power mode "+r.Value+" in the system's settings")
	case "thermal":
		return differs(r, h.Thermal, "let the machine cool down")
	case "os":
		name := h.OS
		if name == "darwin" {
			name = "macos"
		}
		return differs(r, name, "run this plan on a machine with this system")
	case "cpus":
		have := h.CPUs
		if h.CPUQuota > 0 {
			have = min(have, int(h.CPUQuota))
		}
		want, err := strconv.Atoi(r.Value)
		return least(r, strconv.Itoa(have), err == nil && have >= want)
	case "memory":
		have := lesser(h.Memory, h.MemoryLimit)
		want, err := units.ParseBytes(r.Value)
		return least(r, units.Bytes(have).Human(), err == nil && units.Bytes(have) >= want)
	}
	return Problem{Text: fmt.Sprintf("the plan requires %s = %q, which is no fact known of a machine", r.Key, r.Value),
		Hint: "see run.require in the description of the plan language"}, false
}

func differs(r plan.KeyValue, have, hint string) (Problem, bool) {
	if have == r.Value {
		return Problem{}, true
	}
	if have == "" {
		have = "not known here"
	}
	return Problem{Text: fmt.Sprintf("the plan requires %s = %q; it is %s", r.Key, r.Value, have), Hint: hint}, false
}

func least(r plan.KeyValue, have string, ok bool) (Problem, bool) {
	if ok {
		return Problem{}, true
	}
	return Problem{Text: fmt.Sprintf("the plan requires %s of at least %s; usable are %s", r.Key, r.Value, have),
		Hint: "run this plan on a larger machine, or raise the limits of its container"}, false
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Warnings are the facts of a host that weaken whatever is measured on it.
func Warnings(h result.Host) []result.Warning {
	var out []result.Warning
	add := func(kind, text string) { out = append(out, result.Warning{Kind: kind, Text: text}) }
	if h.Power == "battery" {
		add("battery", "the machine ran on battery")
	}
	if h.LowPower {
		add("low-power", "low power mode was on")
	}
	if t := strings.ToLower(h.Thermal); t != "" && t != "nominal" && t != "none" {
		add("thermal", "thermal pressure: "+h.Thermal)
	}
	if h.CPUQuota > 0 {
		add("cpu-quota", fmt.Sprintf("a quota allows %.3g of the machine's processors", h.CPUQuota))
	}
	if len(h.Busy) > 0 {
		add("busy", "other work was going on: "+strings.Join(h.Busy, ", "))
	}
	if Virtual(h) {
		add("virtual", "the machine is virtual ("+h.Virtual+"): what its disk and caches do is not known")
	}
	return out
}
