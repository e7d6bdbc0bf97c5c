package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTuning(t *testing.T) {
	files := map[string]string{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_driver":   "acpi-cpufreq\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
		"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor": "performance\n",
		"sys/kernel/mm/transparent_hugepage/enabled":           "always madvise [never]\n",
	}
	u := grow(t, files).tuning()
	assert.Equal(t, Tuning{Governor: "powersave, performance", Driver: "acpi-cpufreq", HugePages: "never"}, u)
	var kinds []string
	for _, w := range u.Warnings() {
		kinds = append(kinds, w.Kind)
	}
	assert.Equal(t, []string{"governor", "huge-pages"}, kinds)

	// Intel's powersave scales, and a kernel without huge pages says nothing of them.
	files["sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"] = "intel_pstate\n"
	delete(files, "sys/kernel/mm/transparent_hugepage/enabled")
	u = grow(t, files).tuning()
	assert.Equal(t, "", u.HugePages)
	assert.Empty(t, u.Warnings())
	files["sys/kernel/mm/transparent_hugepage/enabled"] = "always [madvise] never\n"
	assert.Equal(t, "madvise", grow(t, files).tuning().HugePages)
	assert.Equal(t, Tuning{}, grow(t, nil).tuning())
	assert.Equal(t, Tune(), Tune())
}

func TestModelOfADevice(t *testing.T) {
	tr := grow(t, map[string]string{"a/vendor": "0x1af4\n", "b/vendor": "ATA     \n", "b/model": "Spinner\n", "c/vendor": "QEMU\n", "c/model": "Disk\n"})
	assert.Equal(t, "", tr.model("a"))
	assert.Equal(t, "Spinner", tr.model("b"))
	assert.Equal(t, "QEMU Disk", tr.model("c"))
}
