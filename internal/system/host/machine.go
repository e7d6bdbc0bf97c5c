package host

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// machine fills in the facts of the whole machine from a Linux tree. h.CPUs is
// set.
func (t tree) machine(h *result.Host) {
	rel := fields(t.read("etc/os-release"), "=")
	h.OSVersion = cmp.Or(clean(unquote(rel["PRETTY_NAME"])), clean(unquote(rel["NAME"])+" "+unquote(rel["VERSION_ID"])))
	h.OSBuild = clean(unquote(rel["BUILD_ID"]))
	h.Kernel = t.text("proc/sys/kernel/osrelease")
	h.Model = cmp.Or(clean(t.text("sys/class/dmi/id/sys_vendor")+" "+t.text("sys/class/dmi/id/product_name")),
		clean(strings.Trim(t.read("proc/device-tree/model"), "\x00")))
	info := fields(t.read("proc/cpuinfo"), ":")
	h.CPU = clean(cmp.Or(info["model name"], info["Model"], info["Processor"], info["cpu"]))
	h.Cores = t.cores()
	h.Memory, h.MemoryLimit = t.memory()
	h.CPUQuota = t.cpuQuota()
	h.Virtual = t.virtual(info["flags"])
	h.Power = t.power()
	h.LowPower = t.text("sys/firmware/acpi/platform_profile") == "low-power"
	h.Thermal = t.thermal()
	h.SwapUsed, h.MemoryPressure = t.swap(), t.pressure()
	load, _, _ := strings.Cut(t.read("proc/loadavg"), " ")
	if v, err := strconv.ParseFloat(load, 64); err == nil && !math.IsInf(v, 0) {
		h.Busy = append(h.Busy, loadBusy(v, h.CPUs)...)
	}
}

// unquote takes the quotes of os-release(5) off; its escapes are rare and kept.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// cores distinguishes processors of two levels: by Intel's hybrid units, or by
// the capacity that the kernel gives each processor (Arm).
func (t tree) cores() []result.Cores {
	p, e := cpuList(t.read("sys/devices/cpu_core/cpus")), cpuList(t.read("sys/devices/cpu_atom/cpus"))
	if p == 0 || e == 0 {
		p, e = t.capacities()
	}
	if p > 0 && e > 0 {
		return []result.Cores{{Level: "performance", Count: p}, {Level: "efficiency", Count: e}}
	}
	if n := cpuList(t.read("sys/devices/system/cpu/online")); n > 0 {
		return []result.Cores{{Count: n}}
	}
	return []result.Cores{}
}

func (t tree) capacities() (most, less int) {
	var top int64
	for _, dir := range t.list("sys/devices/system/cpu") {
		switch c, ok := t.number(path.Join(dir, "cpu_capacity")); {
		case !ok:
		case c > top:
			top, less, most = c, less+most, 1
		case c == top:
			most++
		default:
			less++
		}
	}
	return most, less
}

// memory is the physical memory and the limit of the control group, 0 for none.
func (t tree) memory() (physical, limit int64) {
	total := strings.TrimSuffix(fields(t.read("proc/meminfo"), ":")["MemTotal"], "kB")
	physical = size(total, 1024)
	for _, dir := range t.groups("", "sys/fs/cgroup") {
		limit = lesser(limit, size(t.read(path.Join(dir, "memory.max")), 1))
	}
	for _, dir := range t.groups("memory", "sys/fs/cgroup/memory") {
		limit = lesser(limit, size(t.read(path.Join(dir, "memory.limit_in_bytes")), 1))
	}
	// Version 1 writes "no limit" as the largest multiple of a page.
	if limit > 1<<60 {
		limit = 0
	}
	return physical, limit
}

// lesser is the smaller of two limits, where 0 is none.
func lesser[T int64 | float64](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// cpuQuota is the processors' worth of time that control groups allow, 0 for no
// limit.
func (t tree) cpuQuota() float64 {
	var quota float64
	for _, dir := range t.groups("", "sys/fs/cgroup") {
		if f := strings.Fields(t.read(path.Join(dir, "cpu.max"))); len(f) == 2 {
			quota = lesser(quota, share(f[0], f[1]))
		}
	}
	for _, dir := range t.groups("cpu", "sys/fs/cgroup/cpu") {
		period := t.read(path.Join(dir, "cpu.cfs_period_us"))
		quota = lesser(quota, share(t.read(path.Join(dir, "cpu.cfs_quota_us")), period))
	}
	return quota
}

func share(quota, period string) float64 {
	q, p := size(quota, 1), size(period, 1)
	if q == 0 || p == 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// groups are the folders of this process's control group and of those above it,
// since a limit of any of them binds. The controller "" is version 2.
func (t tree) groups(controller, mount string) []string {
	var own string
	for line := range strings.Lines(t.read("proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			own = path.Clean("/" + f[2])
		}
	}
	out := []string{mount}
	for dir := own; len(dir) > 1 && len(out) < 64; dir = path.Dir(dir) {
		out = append(out, path.Join(mount, dir))
	}
	return out
}

// power is "ac" if a supply is on, "battery" if none is and a battery
// discharges; batteries of mice and the like (scope Device) do not count.
func (t tree) power() string {
	online, discharging := false, false
	for _, dir := range t.list("sys/class/power_supply") {
		if t.text(path.Join(dir, "scope")) == "Device" {
			continue
		}
		switch t.text(path.Join(dir, "type")) {
		case "Mains", "USB", "USB_C", "Wireless":
			n, ok := t.number(path.Join(dir, "online"))
			online = online || ok && n > 0
		case "Battery":
			discharging = discharging || t.text(path.Join(dir, "status")) == "Discharging"
		}
	}
	switch {
	case online:
		return "ac"
	case discharging:
		return "battery"
	}
	return ""
}

// thermal is "throttled" while a zone is at its passive or hot trip point,
// where the kernel slows the processors, "nominal" if zones with such points
// are below them.
func (t tree) thermal() string {
	state := ""
	for _, zone := range t.list("sys/class/thermal") {
		temp, ok := t.number(path.Join(zone, "temp"))
		if !ok {
			continue
		}
		for i := range 16 {
			trip := path.Join(zone, "trip_point_"+strconv.Itoa(i))
			kind := t.text(trip + "_type")
			at, ok := t.number(trip + "_temp")
			if kind != "passive" && kind != "hot" || !ok || at <= 0 {
				continue
			}
			if temp >= at {
				return "throttled"
			}
			state = "nominal"
		}
	}
	return state
}

// swap is the swap space in use, in bytes.
func (t tree) swap() int64 {
	f := fields(t.read("proc/meminfo"), ":")
	kib := func(key string) int64 { return size(strings.TrimSuffix(f[key], "kB"), 1024) }
	return max(0, kib("SwapTotal")-kib("SwapFree"))
}

// stalled is the share of the last ten seconds, in percent, from which waiting
// for memory counts as pressure.
const stalled = 1.0

// pressure reads proc/pressure/memory (PSI): "full avg10=0.00 …" is the share
// of time in which every task waited for memory.
func (t tree) pressure() string {
	for line := range strings.Lines(t.read("proc/pressure/memory")) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "full" {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimPrefix(f[1], "avg10="), 64)
		switch {
		case err != nil || math.IsNaN(v):
			return ""
		case v >= stalled:
			return "warning"
		}
		return "normal"
	}
	return ""
}

// makers are what virtual machines write in their DMI tables, as
// systemd-detect-virt(1) knows them.
var makers = [][2]string{
	{"KVM", "kvm"}, {"QEMU", "qemu"}, {"VMware", "vmware"}, {"VMW", "vmware"}, {"innotek", "virtualbox"},
	{"VirtualBox", "virtualbox"}, {"Xen", "xen"}, {"Bochs", "bochs"}, {"Parallels", "parallels"}, {"BHYVE", "bhyve"},
	{"Hyper-V", "hyper-v"}, {"Microsoft Corporation Virtual Machine", "hyper-v"}, {"Apple Virtualization", "apple"},
	{"Google Compute Engine", "google"}, {"OpenStack", "openstack"}, {"Firecracker", "firecracker"},
}

// containerGroups are parts of the names of control groups of containers.
var containerGroups = [][2]string{
	{"kubepods", "kubernetes"}, {"/docker/", "docker"}, {"/libpod", "podman"}, {"/lxc/", "lxc"},
}

// firstNamed is the second text of the first pair with a first text that s
// contains, "" if there is none.
func firstNamed(s string, pairs [][2]string) string {
	for _, p := range pairs {
		if strings.Contains(s, p[0]) {
			return p[1]
		}
	}
	return ""
}

// virtual names the hypervisor and the container that are seen, in this order.
func (t tree) virtual(flags string) string {
	kinds := []string{t.hypervisor(flags), t.container()}
	return strings.Join(slices.DeleteFunc(kinds, func(k string) bool { return k == "" }), ", ")
}

// hypervisor is the kind of virtual machine, "" for none.
func (t tree) hypervisor(flags string) string {
	// The privileged domain of Xen has the disks of the machine itself.
	k := t.text("sys/hypervisor/type")
	if k != "" && !strings.Contains(t.read("proc/xen/capabilities"), "control_d") {
		return strings.ReplaceAll(k, ",", " ")
	}
	dmi := t.text("sys/class/dmi/id/sys_vendor") + " " + t.text("sys/class/dmi/id/product_name") + " " +
		t.text("sys/class/dmi/id/bios_vendor")
	hasFlag := strings.Contains(" "+flags+" ", " hypervisor ")
	switch {
	case strings.Contains(strings.ToLower(t.read("proc/sys/kernel/osrelease")), "microsoft"):
		return "wsl"
	case firstNamed(dmi, makers) != "":
		return firstNamed(dmi, makers)
	case hasFlag && strings.Contains(dmi, "Amazon EC2"): // on its own machines they have no flag
		return "amazon"
	case strings.Contains(t.read("proc/device-tree/hypervisor/compatible"), "kvm"):
		return "kvm"
	}
	return choose(hasFlag, "virtual machine", "")
}

// container is the kind of container, "" for none.
func (t tree) container() string {
	switch kind := t.text("run/systemd/container"); {
	case t.exists("run/.containerenv"):
		return "podman"
	case t.exists(".dockerenv"):
		return "docker"
	case containers[kind]:
		return kind
	case kind != "":
		return "container"
	}
	return firstNamed(t.read("proc/1/cgroup"), containerGroups)
}

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
		out = append(out, result.Warning{Kind: "governor",
			Text: "the governor powersave held the processors at their lowest clock rate"})
	}
	if u.HugePages == "never" {
		out = append(out, result.Warning{Kind: "huge-pages", Text: "transparent huge pages are switched off: " +
			"direct transfers go out in small pieces, at a third of the rate on some disks"})
	}
	return out
}
