package host

import (
	"fmt"
	"slices"
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
// memory, thermal, memory_pressure, virtual, translated, busy, medium and
// location; the last two of the disk under every place. A fact that is not
// known does not meet a requirement, and neither does a key that is not known.
// cpus and memory are least amounts.
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
	case "memory_pressure":
		return differs(r, h.MemoryPressure, "end other programs")
	case "virtual":
		return differs(r, yesNo(Virtual(h)), "run this plan on the machine itself")
	case "translated":
		return differs(r, yesNo(h.Translated), "use the program for this processor: see `dmgbench version`")
	case "busy":
		return differs(r, yesNo(len(h.Busy) > 0), "wait until it is done: "+strings.Join(h.Busy, ", "))
	case "medium", "location":
		return disks(r, h.Disks)
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

// disks checks the disk of every place.
func disks(r plan.KeyValue, list []result.Disk) (Problem, bool) {
	for _, d := range list {
		have := d.Medium
		if r.Key == "location" {
			have = d.Location
		}
		if p, ok := differs(r, have, "measure on another disk: --on [NAME=]DIR"); !ok {
			if d.Place != "" {
				p.Text += fmt.Sprintf(" at place %q", d.Place)
			}
			return p, false
		}
	}
	return Problem{}, len(list) > 0
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
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
	if h.Translated {
		add("translated", "the program was made for another processor and runs translated")
	}
	if p := h.MemoryPressure; p != "" && p != "normal" {
		add("memory-pressure", "memory was short: "+p)
	}
	for _, d := range h.Disks {
		diskWarnings(d, add)
	}
	if Virtual(h) {
		add("virtual", "this is a virtual machine ("+h.Virtual+"): the host may cache disk access")
	}
	return out
}

// scarce is the free share of a disk below which it may slow down: allocation
// gets scattered, and SSDs run out of erased blocks.
const scarce = 0.1

// diskWarnings are the facts of a disk that weaken whatever is measured on it.
func diskWarnings(d result.Disk, add func(kind, text string)) {
	at := "the disk measured on"
	if d.Place != "" {
		at = fmt.Sprintf("the disk at place %q", d.Place)
	}
	switch {
	case d.Medium == "network":
		add("network", at+" is another machine's, reached by "+d.Filesystem)
	case d.Bus == "Disk Image" || d.Bus == "loop":
		add("image-host", at+" is a disk image itself")
	}
	if d.Total > 0 && float64(d.Free) < scarce*float64(d.Total) {
		add("nearly-full", fmt.Sprintf("%s had %.0f %% free space", at, 100*float64(d.Free)/float64(d.Total)))
	}
}

// swapGrowth is how much more swap space, in bytes, counts as a shortage of
// memory.
const swapGrowth = 64 << 20

// Changes are what happened to the machine between two looks at it, where that
// weakens what was measured in between.
func Changes(before, after result.Host) []result.Warning {
	var out []result.Warning
	add := func(kind, text string) { out = append(out, result.Warning{Kind: kind, Text: text}) }
	was := Warnings(before)
	for _, w := range Warnings(after) {
		news := !slices.ContainsFunc(was, func(o result.Warning) bool { return o.Kind == w.Kind })
		if news && slices.Contains([]string{"battery", "low-power", "thermal", "memory-pressure", "nearly-full"}, w.Kind) {
			add(w.Kind, "at the end of the session, not at its beginning: "+w.Text)
		}
	}
	for _, kind := range []string{"Spotlight", "Time Machine"} {
		if slices.Contains(after.Busy, kind) && !slices.Contains(before.Busy, kind) {
			add("busy", "at the end of the session, not at its beginning: other work was going on: "+kind)
		}
	}
	if grown := after.SwapUsed - before.SwapUsed; grown >= swapGrowth {
		add("swap", "during the session "+units.Bytes(grown).Human()+" of memory were swapped out")
	}
	for i, d := range after.Disks {
		if i < len(before.Disks) && before.Disks[i].Place == d.Place && d.Snapshots > before.Disks[i].Snapshots {
			add("snapshots", fmt.Sprintf("local snapshots were made during the session, %d before and %d after: they keep the space of what was deleted",
				before.Disks[i].Snapshots, d.Snapshots))
		}
	}
	return out
}
