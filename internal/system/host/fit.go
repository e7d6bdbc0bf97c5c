package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

// Problem is a requirement of a plan that the machine does not meet.
type Problem struct {
	Text string // what is required and what was found
	Hint string // what the user can do about it
}

// requirement is one key of run.require: what the machine has, and what the user
// can do if that is something else.
type requirement struct {
	have func(h result.Host) string
	hint string
}

// anotherDisk is the hint of a requirement of the disks.
const anotherDisk = "measure on another disk: --on [NAME=]DIR"

var requirements = map[string]requirement{
	"power": {func(h result.Host) string { return h.Power },
		"connect or disconnect the power supply, or run without this requirement"},
	"low_power": {func(h result.Host) string { return choose(h.LowPower, "on", "off") },
		"switch low power mode on or off in the system's settings"},
	"thermal":         {func(h result.Host) string { return h.Thermal }, "let the machine cool down"},
	"memory_pressure": {func(h result.Host) string { return h.MemoryPressure }, "end other programs"},
	"virtual":         {func(h result.Host) string { return yesNo(Virtual(h)) }, "run this plan on the machine itself"},
	"translated": {func(h result.Host) string { return yesNo(h.Translated) },
		"use the program for this processor: see `dmgbench version`"},
	"busy": {func(h result.Host) string { return yesNo(len(h.Busy) > 0) },
		"wait until other programs are done: `dmgbench doctor` names them"},
	"os": {func(h result.Host) string { return choose(h.OS == "darwin", "macos", h.OS) },
		"run this plan on a machine with this system"},
	"medium":   {diskFact(func(d result.Disk) string { return d.Medium }), anotherDisk},
	"location": {diskFact(func(d result.Disk) string { return d.Location }), anotherDisk},
}

// yesNo is a fact that a plan requires as "yes" or "no".
func yesNo(yes bool) string { return choose(yes, "yes", "no") }

// diskFact is the fact of the only disk; Fit asks for one disk after another.
func diskFact(have func(result.Disk) string) func(result.Host) string {
	return func(h result.Host) string {
		if len(h.Disks) == 0 {
			return ""
		}
		return have(h.Disks[0])
	}
}

// Fit checks the host against what a plan requires: [requirements], and least
// amounts of cpus and memory. Medium and location are those of the disk below
// every place. A fact that is not known does not meet a
// requirement, and neither does a key that is not known.
func Fit(h result.Host, require []plan.KeyValue) []Problem {
	var out []Problem
	for _, r := range require {
		key, known := requirements[r.Key]
		switch {
		case r.Key == "cpus" || r.Key == "memory":
			out = append(out, tooSmall(h, r)...)
		case !known:
			out = append(out, Problem{Hint: "see run.require in the description of the plan language",
				Text: fmt.Sprintf("the plan requires %s = %q, which is not a known fact of a machine", r.Key, r.Value)})
		case key.hint == anotherDisk && len(h.Disks) > 0:
			for _, d := range h.Disks {
				one := h
				one.Disks = []result.Disk{d}
				out = append(out, differs(one, r, key, d.Place)...)
			}
		default:
			out = append(out, differs(h, r, key, "")...)
		}
	}
	return out
}

// differs is the problem with a requirement that is not met, of the disk at that
// place if it is named.
func differs(h result.Host, r plan.KeyValue, key requirement, place string) []Problem {
	have := key.have(h)
	if have == r.Value {
		return nil
	}
	if have == "" {
		have = "not known here"
	}
	text := fmt.Sprintf("the plan requires %s = %q; it is %s", r.Key, r.Value, have)
	if place != "" {
		text += fmt.Sprintf(" at place %q", place)
	}
	return []Problem{{Text: text, Hint: key.hint}}
}

// tooSmall is the problem with a least amount that is not met.
func tooSmall(h result.Host, r plan.KeyValue) []Problem {
	have, ok := "", false
	if r.Key == "cpus" {
		n := h.CPUs
		if h.CPUQuota > 0 {
			n = min(n, int(h.CPUQuota))
		}
		want, err := strconv.Atoi(r.Value)
		have, ok = strconv.Itoa(n), err == nil && n >= want
	} else {
		n := units.Bytes(lesser(h.Memory, h.MemoryLimit))
		want, err := units.ParseBytes(r.Value)
		have, ok = n.Human(), err == nil && n >= want
	}
	if ok {
		return nil
	}
	return []Problem{{Text: fmt.Sprintf("the plan requires %s of at least %s; usable are %s", r.Key, r.Value, have),
		Hint: "run this plan on a larger machine, or raise the limits of its container"}}
}

// scarce is the free share of a disk below which it may slow down: allocation
// gets scattered, and SSDs run out of erased blocks.
const scarce = 0.1

// Warnings are the facts of a host that weaken whatever is measured on it.
func Warnings(h result.Host) []result.Warning {
	var out []result.Warning
	add := func(when bool, kind, format string, args ...any) {
		if when {
			out = append(out, result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(h.Power == "battery", "battery", "the machine ran on battery")
	add(h.LowPower, "low-power", "low power mode was on")
	calm := []string{"", "nominal", "none"}
	add(!slices.Contains(calm, strings.ToLower(h.Thermal)), "thermal", "thermal pressure: %s", h.Thermal)
	add(h.CPUQuota > 0, "cpu-quota", "a quota allows %.3g of the machine's processors", h.CPUQuota)
	add(len(h.Busy) > 0, "busy", "other work was going on: %s", strings.Join(h.Busy, ", "))
	add(h.Translated, "translated", "the program was made for another processor and runs translated")
	add(h.MemoryPressure != "" && h.MemoryPressure != "normal", "memory-pressure", "memory was short: %s",
		h.MemoryPressure)
	for _, d := range h.Disks {
		at := "the disk measured on"
		if d.Place != "" {
			at = fmt.Sprintf("the disk at place %q", d.Place)
		}
		isNetwork := d.Medium == "network"
		add(isNetwork, "network", "%s is another machine's, reached by %s", at, d.Filesystem)
		add(!isNetwork && (d.Bus == "Disk Image" || d.Bus == "loop"), "image-host", "%s is a disk image itself", at)
		add(d.Total > 0 && float64(d.Free) < scarce*float64(d.Total), "nearly-full", "%s had %.0f %% free space", at,
			100*float64(d.Free)/float64(d.Total))
	}
	add(Virtual(h), "virtual", "this is a virtual machine (%s): the host may cache disk access", h.Virtual)
	return out
}

// swapGrowth is how much more swap space, in bytes, counts as a shortage of
// memory.
const swapGrowth = 64 << 20

// Changes are what happened to the machine between two looks at it, where that
// weakens what was measured in between.
func Changes(before, after result.Host) []result.Warning {
	var out []result.Warning
	add := func(kind, format string, args ...any) {
		out = append(out, result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	was := Warnings(before)
	for _, w := range Warnings(after) {
		news := !slices.ContainsFunc(was, func(o result.Warning) bool { return o.Kind == w.Kind })
		kinds := []string{"battery", "low-power", "thermal", "memory-pressure", "nearly-full"}
		if news && slices.Contains(kinds, w.Kind) {
			add(w.Kind, "at the end of the session, not at its beginning: %s", w.Text)
		}
	}
	for _, kind := range []string{"Spotlight", "Time Machine"} {
		if slices.Contains(after.Busy, kind) && !slices.Contains(before.Busy, kind) {
			add("busy", "at the end of the session, not at its beginning: other work was going on: %s", kind)
		}
	}
	if grown := after.SwapUsed - before.SwapUsed; grown >= swapGrowth {
		add("swap", "during the session %s of memory were swapped out", units.Bytes(grown).Human())
	}
	for i, d := range after.Disks {
		if i < len(before.Disks) && before.Disks[i].Place == d.Place && d.Snapshots > before.Disks[i].Snapshots {
			add("snapshots", "local snapshots were made during the session, %d before and %d after: "+
				"they keep the space of what was deleted", before.Disks[i].Snapshots, d.Snapshots)
		}
	}
	return out
}
