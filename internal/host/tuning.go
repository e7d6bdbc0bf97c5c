package host

import (
	"path"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// Tuning is how the system is set where that changes rates; "" where there is
// no such setting or it is not known.
type Tuning struct {
	Governor  string // what chooses the processors' clock rate: performance, powersave …; several with commas
	Driver    string // whose governor it is: intel_pstate, acpi-cpufreq …
	HugePages string // transparent huge pages: always | madvise | never
}

// tuning reads a Linux tree.
func (t tree) tuning() Tuning {
	var out Tuning
	var governors []string
	for _, cpu := range t.list("sys/devices/system/cpu") {
		g := t.text(path.Join(cpu, "cpufreq/scaling_governor"))
		if g != "" && !slices.Contains(governors, g) {
			governors = append(governors, g)
		}
		if out.Driver == "" {
			out.Driver = t.text(path.Join(cpu, "cpufreq/scaling_driver"))
		}
	}
	out.Governor = strings.Join(governors, ", ")
	// "always [madvise] never": the one in brackets holds.
	_, rest, _ := strings.Cut(t.text("sys/kernel/mm/transparent_hugepage/enabled"), "[")
	out.HugePages, _, _ = strings.Cut(rest, "]")
	return out
}

// scaled are the drivers with an ordinary governor powersave, which scales.
var scaled = []string{"intel_pstate", "amd-pstate", "amd-pstate-epp", "amd_pstate_epp"}

// Warnings are the settings that weaken whatever is measured under them.
func (u Tuning) Warnings() []result.Warning {
	var out []result.Warning
	if strings.Contains(u.Governor, "powersave") && !slices.Contains(scaled, u.Driver) {
		out = append(out, result.Warning{Kind: "governor", Text: "the governor powersave held the processors at their lowest clock rate"})
	}
	if u.HugePages == "never" {
		out = append(out, result.Warning{Kind: "huge-pages",
			Text: "transparent huge pages are switched off: direct transfers go out in small pieces, at a third of the rate on some disks"})
	}
	return out
}

// Hints are what can be done against the warnings, in the same order.
func (u Tuning) Hints() []string {
	var out []string
	for _, w := range u.Warnings() {
		switch w.Kind {
		case "governor":
			out = append(out, "cpupower frequency-set -g performance (as root) keeps the clock rate up")
		case "huge-pages":
			out = append(out, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root) allows huge pages where they are asked for")
		}
	}
	return out
}
