package host

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/result"
)

// machine fills in the facts of the whole machine from a Linux tree. h.CPUs is
// set.
func (t tree) machine(h *result.Host) {
	// Quotes of os-release(5) are taken off; its escapes are rare and kept.
	rel := fields(strings.NewReplacer(`"`, "", `'`, "").Replace(t.read("etc/os-release")), "=")
	h.OSVersion = cmp.Or(clean(rel["PRETTY_NAME"]), clean(rel["NAME"]+" "+rel["VERSION_ID"]))
	h.OSBuild = clean(rel["BUILD_ID"])
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
	h.SwapUsed, h.MemoryPressure = max(0, t.meminfo("SwapTotal")-t.meminfo("SwapFree")), t.pressure()
	load, _, _ := strings.Cut(t.read("proc/loadavg"), " ")
	if v, err := strconv.ParseFloat(load, 64); err == nil && !math.IsInf(v, 0) {
		h.Busy = append(h.Busy, loadBusy(v, h.CPUs)...)
	}
}

// cores distinguishes processors of two levels: by Intel's hybrid units, or by
// the capacity that the kernel gives each processor (Arm).
func (t tree) cores() []result.Cores {
	p, e := cpuList(t.read("sys/devices/cpu_core/cpus")), cpuList(t.read("sys/devices/cpu_atom/cpus"))
	if p == 0 || e == 0 {
		var all []int64
		for _, dir := range t.list("sys/devices/system/cpu") {
			if c, ok := t.number(path.Join(dir, "cpu_capacity")); ok {
				all = append(all, c)
			}
		}
		e = len(slices.DeleteFunc(slices.Clone(all), func(c int64) bool { return c == slices.Max(all) }))
		p = len(all) - e
	}
	if p > 0 && e > 0 {
		return []result.Cores{{Level: "performance", Count: p}, {Level: "efficiency", Count: e}}
	}
	if n := cpuList(t.read("sys/devices/system/cpu/online")); n > 0 {
		return []result.Cores{{Count: n}}
	}
	return []result.Cores{}
}

// meminfo is a figure of /proc/meminfo, in bytes.
func (t tree) meminfo(key string) int64 {
	return size(strings.TrimSuffix(fields(t.read("proc/meminfo"), ":")[key], "kB"), 1024)
}

// memory is the physical memory and the limit of the control group, 0 for none.
func (t tree) memory() (physical, limit int64) {
	for _, text := range t.groupTexts("memory", "memory.max", "memory.limit_in_bytes") {
		limit = lesser(limit, size(text, 1))
	}
	// Version 1 writes "no limit" as the largest multiple of a page.
	if limit > 1<<60 {
		limit = 0
	}
	return t.meminfo("MemTotal"), limit
}

// cpuQuota is the processors' worth of time that control groups allow, 0 for no
// limit.
func (t tree) cpuQuota() float64 {
	var quota float64
	for _, text := range t.groupTexts("cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us") {
		allowed, period, _ := strings.Cut(text, " ")
		if q, p := size(allowed, 1), size(period, 1); q > 0 && p > 0 {
			quota = lesser(quota, float64(q)/float64(p))
		}
	}
	return quota
}

// throttled is for how long the limit of a control group has kept its processes
// from running: the longest of all groups.
func (t tree) throttled() (longest time.Duration) {
	for _, text := range t.groupTexts("cpu", "cpu.stat", "cpu.stat") {
		stat := fields(text, " ")
		longest = max(longest, time.Duration(size(stat["throttled_usec"], 1000)), time.Duration(size(stat["throttled_time"], 1)))
	}
	return longest
}

// groupTexts are the contents of a file in the folders of this process's control
// group and of those above it, since a limit of any of them binds: of version 2,
// and of the controller's files of version 1, separated by blanks.
func (t tree) groupTexts(controller, file string, files1 ...string) (texts []string) {
	for line := range strings.Lines(t.read("proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 || f[1] != "" && !slices.Contains(strings.Split(f[1], ","), controller) {
			continue
		}
		mount, names := "sys/fs/cgroup", []string{file}
		if f[1] != "" {
			mount, names = path.Join(mount, controller), files1
		}
		for dir := path.Clean("/" + f[2]); len(texts) < 256; dir = path.Dir(dir) {
			var parts []string
			for _, name := range names {
				parts = append(parts, strings.TrimSpace(t.read(path.Join(mount, dir, name))))
			}
			if texts = append(texts, strings.Join(parts, " ")); dir == "/" {
				break
			}
		}
	}
	return texts
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
	if online {
		return "ac"
	}
	return choose(discharging, "battery", "")
}

// thermal is "throttled" while a zone is at its passive or hot trip point,
// where the kernel slows the processors, "nominal" if zones with such points
// are below them.
func (t tree) thermal() string {
	state := ""
	for _, zone := range t.list("sys/class/thermal") {
		temp, isKnown := t.number(path.Join(zone, "temp"))
		for i := 0; i < 16 && isKnown; i++ {
			trip := path.Join(zone, "trip_point_"+strconv.Itoa(i))
			at, _ := t.number(trip + "_temp")
			if kind := t.text(trip + "_type"); at <= 0 || kind != "passive" && kind != "hot" {
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

// stalled is the share of the last ten seconds, in percent, from which waiting
// for memory counts as pressure.
const stalled = 1.0

// pressure reads proc/pressure/memory (PSI): "full avg10=0.00 …" is the share
// of time in which every task waited for memory.
func (t tree) pressure() string {
	_, rest, _ := strings.Cut(t.read("proc/pressure/memory"), "full avg10=")
	text, _, _ := strings.Cut(rest, " ")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		return ""
	}
	return choose(v >= stalled, "warning", "normal")
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

// virtual names the hypervisor and the container that are seen, in this order.
func (t tree) virtual(flags string) string {
	dmi := t.text("sys/class/dmi/id/sys_vendor") + " " + t.text("sys/class/dmi/id/product_name") + " " +
		t.text("sys/class/dmi/id/bios_vendor")
	release := strings.ToLower(t.read("proc/sys/kernel/osrelease"))
	machine := cmp.Or(
		strings.ReplaceAll(t.text("sys/hypervisor/type"), ",", " "),
		choose(strings.Contains(release, "microsoft"), "wsl", ""),
		firstMatch(dmi, makers),
		choose(slices.Contains(strings.Fields(flags), "hypervisor"), "virtual machine", ""),
		choose(strings.Contains(t.read("proc/device-tree/hypervisor/compatible"), "kvm"), "kvm", ""))
	// The privileged domain of Xen has the disks of the machine itself.
	if strings.Contains(t.read("proc/xen/capabilities"), "control_d") {
		machine = ""
	}
	kind := t.text("run/systemd/container")
	switch {
	case t.exists("run/.containerenv"):
		kind = "podman"
	case t.exists(".dockerenv"):
		kind = "docker"
	case kind == "":
		kind = firstMatch(t.read("proc/1/cgroup"), containerGroups)
	case !containers[kind]:
		kind = "container"
	}
	return strings.Join(slices.DeleteFunc([]string{machine, kind}, func(s string) bool { return s == "" }), ", ")
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
		out.Driver = cmp.Or(out.Driver, t.text(path.Join(cpu, "cpufreq/scaling_driver")))
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

// tree reads facts below a root folder: "/" of the machine, or a made-up tree.
type tree string

func (t tree) path(name string) string { return filepath.Join(string(t), filepath.FromSlash(name)) }

// read is the content of a file as it is, "" if it cannot be had.
func (t tree) read(name string) string {
	p, _ := os.ReadFile(t.path(name))
	return string(p)
}

// text is the content of a file made fit for a result.
func (t tree) text(name string) string { return clean(t.read(name)) }

func (t tree) exists(name string) bool {
	_, err := os.Stat(t.path(name))
	return err == nil
}

// list is the names in a folder, sorted, with the folder before them.
func (t tree) list(dir string) (out []string) {
	entries, _ := os.ReadDir(t.path(dir))
	for _, e := range entries {
		out = append(out, path.Join(dir, e.Name()))
	}
	return out
}

// number is a whole number that a file consists of.
func (t tree) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(t.read(name)), 10, 64)
	return n, err == nil
}

// fields finds the values of "key<sep>value" lines; the first of a key counts.
func fields(content, sep string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(content) {
		k, v, ok := strings.Cut(line, sep)
		if k = strings.TrimSpace(k); ok && out[k] == "" {
			out[k] = strings.TrimSpace(v)
		}
	}
	return out
}

// maxCPUs bounds processor numbers that are believed.
const maxCPUs = 1 << 16

// cpuList counts the processors of a list like "0-3,8,10-11"; 0 if it is none.
func cpuList(s string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseUint(from, 10, 32)
		b, err2 := strconv.ParseUint(to, 10, 32)
		if err1 != nil || err2 != nil || a > b || b >= maxCPUs || n > maxCPUs {
			return 0
		}
		n += int(b-a) + 1
	}
	return n
}

// size is a count of units as bytes; 0 if it is not a positive number that
// fits.
func size(s string, unit int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0
	}
	return n * unit
}

// unescape undoes the escapes of mount tables, in which the kernel writes these
// five characters so (show_mountinfo in fs/proc_namespace.c).
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#").Replace

// remote are file systems with their data on another machine.
var remote = strings.Fields("nfs nfs4 cifs smb3 smbfs afpfs webdav ceph glusterfs fuse.sshfs fuse.glusterfs afs")

// mount is the one that an absolute path without links is on: that with the
// longest mount point, and the last one mounted there.
func (t tree) mount(name string) (m Mount) {
	for _, one := range ParseMounts(t.read("proc/self/mountinfo")) {
		isBelow := one.Point == "/" || name == one.Point || strings.HasPrefix(name, one.Point+"/")
		if isBelow && len(one.Point) >= len(m.Point) {
			m = one
		}
	}
	return m
}

// under describes the disk of an absolute path without links.
func (t tree) under(name string) result.Disk {
	m := t.mount(name)
	d := result.Disk{Filesystem: clean(m.Type), Compressed: strings.Contains(m.Options, "compress")}
	switch {
	case m.Type == "tmpfs" || m.Type == "ramfs":
		d.Medium = "memory"
	case slices.Contains(remote, m.Type):
		d.Medium, d.Bus = "network", "network"
	default:
		t.block(&d, t.mounted(m), 8)
	}
	return d
}

// mounted is the sysfs folder of the disk of a mount, "" if it is on none.
func (t tree) mounted(m Mount) string {
	// A file system of several devices (btrfs) has a number that is not a block
	// device.
	dir := t.blockDir(fmt.Sprintf("sys/dev/block/%d:%d", m.Major, m.Minor))
	if dir == "" && strings.HasPrefix(m.Source, "/dev/") {
		source := m.Source
		if to, err := os.Readlink(t.path(source)); err == nil { // /dev/mapper/NAME is one to ../dm-N
			source = path.Join(path.Dir(source), to)
		}
		dir = t.blockDir("sys/class/block/" + strings.ReplaceAll(strings.TrimPrefix(source, "/dev/"), "/", "!"))
	}
	return dir
}

// blockDir follows the link of a block device to its folder in the tree; from a
// partition it goes on to the disk.
func (t tree) blockDir(link string) string {
	to, err := os.Readlink(t.path(link))
	if err != nil {
		return ""
	}
	dir := path.Join("/", path.Dir(link), to)[1:]
	if t.exists(path.Join(dir, "partition")) {
		dir = path.Dir(dir)
	}
	return dir
}

// block describes a device from its sysfs folder, going from a mapping to what
// it maps, at most depth times.
func (t tree) block(d *result.Disk, dir string, depth int) {
	if dir == "" || depth == 0 {
		return
	}
	if strings.HasPrefix(t.read(path.Join(dir, "dm/uuid")), "CRYPT-") {
		d.Encrypted = "dm-crypt"
	}
	switch slaves := t.list(path.Join(dir, "slaves")); {
	case len(slaves) == 1:
		t.block(d, t.blockDir(slaves[0]), depth-1)
		return
	case len(slaves) > 1:
		d.Bus = "several disks"
		return
	}
	d.Device = t.model(path.Join(dir, "device"))
	d.Bus = firstMatch("/"+dir, buses)
	if d.Bus == "usb" || t.text(path.Join(dir, "removable")) == "1" {
		d.Location = "external" // what is not known to be so, may be so by Thunderbolt
	}
	switch rotational, ok := t.number(path.Join(dir, "queue/rotational")); {
	case strings.HasPrefix(path.Base(dir), "zram") || strings.HasPrefix(path.Base(dir), "ram"):
		d.Medium = "memory"
	case d.Bus == "nbd" || d.Bus == "rbd":
		d.Medium = "network"
	case !ok || d.Bus == "virtio" || d.Bus == "xen" || d.Bus == "loop":
		// The rotation that a paravirtual disk reports is a default of the
		// hypervisor and not a fact about the medium.
		d.Medium = "unknown"
	case rotational == 0:
		d.Medium = "ssd"
	default:
		d.Medium = "hdd"
	}
}

// model is vendor and model of a device. Of a virtio device the vendor is a
// number (0x1af4), which is not a name; "ATA" is the layer that speaks to the
// disk.
func (t tree) model(dir string) string {
	vendor := t.text(path.Join(dir, "vendor"))
	if strings.HasPrefix(vendor, "0x") || vendor == "ATA" {
		vendor = ""
	}
	return clean(vendor + " " + t.text(path.Join(dir, "model")))
}

// buses are how devices are connected, by what the path of their sysfs folder
// contains.
var buses = [][2]string{
	{"/usb", "usb"}, {"/virtio", "virtio"}, {"/ata", "sata"}, {"/mmc", "mmc"}, {"/nvme", "nvme"}, {"/loop", "loop"},
	{"/nbd", "nbd"}, {"/rbd", "rbd"}, {"/xvd", "xen"}, {"/target", "scsi"},
}

// Mount is one line of the table of mounts.
type Mount struct {
	Major, Minor uint32 // device number
	Point        string // the folder
	Type         string // of the file system
	Source       string // such as a device
	Options      string // of the file system, separated by commas
	ReadOnly     bool
	// Of macOS only: Finder and Spotlight see it, and files belong to whoever asks.
	Browsable, IgnoresOwners bool
}

// ParseMounts reads /proc/self/mountinfo, see proc_pid_mountinfo(5), in the
// order of mounting. Malformed lines are left out.
func ParseMounts(table string) (list []Mount) {
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		mount, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 6 || len(system) < 2 {
			continue
		}
		m := Mount{Point: unescape(mount[4]), Type: system[0], Source: unescape(system[1]),
			Options: strings.Join(system[2:], ","), ReadOnly: strings.HasPrefix(mount[5]+",", "ro,")}
		if _, err := fmt.Sscanf(mount[2], "%d:%d", &m.Major, &m.Minor); err == nil {
			list = append(list, m)
		}
	}
	return list
}
