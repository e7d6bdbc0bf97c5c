package host

import (
	"cmp"
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

// anotherDisk is the hint of the requirements that each disk has to meet.
const anotherDisk = "measure on another disk: --on [NAME=]DIR"

// hints are what the user can do about an unmet requirement, by its key in
// run.require.
var hints = map[string]string{
	"power":           "connect or disconnect the power supply, or run without this requirement",
	"low_power":       "switch low power mode on or off in the system's settings",
	"thermal":         "let the machine cool down",
	"memory_pressure": "quit other programs",
	"virtual":         "run this plan on the machine itself",
	"translated":      "use the program built for this processor: see `dmgbench version`",
	"busy":            "wait until other programs are done: `dmgbench doctor` names them",
	"os":              "run this plan on a machine with this system",
	"medium":          anotherDisk,
	"location":        anotherDisk,
}

// Fit returns a Problem for each requirement of a plan that the host does not
// meet: those of [hints], and the minimum of cpus and memory. Medium and
// location are checked for the disk of every place. A value that is not known
// ("") does not meet a requirement.
func Fit(h result.Host, require []plan.KeyValue) []Problem {
	var out []Problem
	values := map[string]string{ // by the keys of hints; "" if that is not known
		"power": h.Power, "low_power": choose(h.LowPower, "on", "off"), "thermal": h.Thermal,
		"memory_pressure": h.MemoryPressure, "virtual": choose(Virtual(h), "yes", "no"),
		"translated": choose(h.Translated, "yes", "no"), "busy": choose(len(h.Busy) > 0, "yes", "no"),
		"os": choose(h.OS == "darwin", "macos", h.OS),
	}
	for _, r := range require {
		if r.Key == "cpus" || r.Key == "memory" {
			if have, ok := isEnough(h, r); !ok {
				out = append(out, Problem{
					Text: fmt.Sprintf("the plan requires %s of at least %s; usable are %s", r.Key, r.Value, have),
					Hint: "run this plan on a larger machine, or raise the limits of its container"})
			}
			continue
		}
		disks := h.Disks
		if hints[r.Key] != anotherDisk || len(disks) == 0 {
			disks = []result.Disk{{}} // checked once, without a disk
		}
		for _, d := range disks {
			values["medium"], values["location"] = d.Medium, d.Location
			have := values[r.Key]
			if have == r.Value {
				continue
			}
			text := fmt.Sprintf("the plan requires %s = %q; it is %s", r.Key, r.Value, cmp.Or(have, "not known here"))
			if d.Place != "" {
				text += fmt.Sprintf(" at place %q", d.Place)
			}
			out = append(out, Problem{Text: text, Hint: hints[r.Key]})
		}
	}
	return out
}

// isEnough returns the usable amount of memory or, for any other key, of cpus,
// and whether it is at least the value of r. A limit of 0 is none.
func isEnough(h result.Host, r plan.KeyValue) (have string, ok bool) {
	if r.Key == "memory" {
		n := units.Bytes(lesser(h.Memory, h.MemoryLimit))
		want, err := units.ParseBytes(r.Value)
		return n.Human(), err == nil && n >= want
	}
	n := h.CPUs
	if h.CPUQuota > 0 {
		n = min(n, int(h.CPUQuota))
	}
	want, err := strconv.Atoi(r.Value)
	return strconv.Itoa(n), err == nil && n >= want
}

// minFreeShare is the free share of a disk below which it may slow down:
// allocation gets scattered, and SSDs run out of erased blocks.
const minFreeShare = 0.1

// Warnings returns the conditions of a host that make measurements on it less
// reliable.
func Warnings(h result.Host) []result.Warning {
	var out []result.Warning
	add := func(when bool, kind, format string, args ...any) {
		if when {
			out = append(out, result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(h.Power == "battery", "battery", "the machine ran on battery")
	add(h.LowPower, "low-power", "low power mode was on")
	normal := []string{"", "nominal", "none"}
	add(!slices.Contains(normal, strings.ToLower(h.Thermal)), "thermal", "thermal pressure: %s", h.Thermal)
	add(h.CPUQuota > 0, "cpu-quota", "a quota allows %.3g of the machine's processors", h.CPUQuota)
	add(len(h.Busy) > 0, "busy", "other work was going on: %s", strings.Join(h.Busy, ", "))
	add(h.Translated, "translated", "the program was built for another processor and runs translated")
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
		add(d.Compressed, "compressed", "%s is compressed by its file system: sizes on it are smaller than elsewhere", at)
		free := float64(d.Free) / float64(max(d.Total, 1))
		add(d.Total > 0 && free < minFreeShare, "nearly-full", "%s had %.0f %% free space", at, 100*free)
	}
	add(Virtual(h), "virtual", "this is a virtual machine (%s): the host may cache disk access", h.Virtual)
	return out
}

// swapGrowth is how much more swap space, in bytes, counts as a shortage of
// memory.
const swapGrowth = 64 << 20

// Changes returns warnings of what changed between two snapshots of the host and
// makes what was measured in between less reliable. Of [Warnings] these are the
// kinds that can begin during a session; of busy programs the two that begin by
// themselves.
func Changes(before, after result.Host) []result.Warning {
	var out []result.Warning
	add := func(kind, format string, args ...any) {
		out = append(out, result.Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	was := Warnings(before)
	for _, w := range Warnings(after) {
		isNew := !slices.ContainsFunc(was, func(o result.Warning) bool { return o.Kind == w.Kind })
		kinds := []string{"battery", "low-power", "thermal", "memory-pressure", "nearly-full"}
		if isNew && slices.Contains(kinds, w.Kind) {
			add(w.Kind, "at the end of the session, not at its beginning: %s", w.Text)
		}
	}
	for _, program := range []string{"Spotlight", "Time Machine"} {
		if slices.Contains(after.Busy, program) && !slices.Contains(before.Busy, program) {
			add("busy", "at the end of the session, not at its beginning: other work was going on: %s", program)
		}
	}
	if growth := after.SwapUsed - before.SwapUsed; growth >= swapGrowth {
		add("swap", "during the session %s of memory were swapped out", units.Bytes(growth).Human())
	}
	for i, d := range after.Disks {
		if i < len(before.Disks) && before.Disks[i].Place == d.Place && d.Snapshots > before.Disks[i].Snapshots {
			add("snapshots", "local snapshots were made during the session, %d before and %d after: "+
				"they keep the space of what was deleted", before.Disks[i].Snapshots, d.Snapshots)
		}
	}
	return out
}
