package host

import "strings"

// makers are what virtual machines write in their DMI tables, as
// systemd-detect-virt(1) knows them.
var makers = []struct{ mark, kind string }{
	{"KVM", "kvm"}, {"QEMU", "qemu"}, {"VMware", "vmware"}, {"VMW", "vmware"}, {"innotek", "virtualbox"}, {"VirtualBox", "virtualbox"},
	{"Xen", "xen"}, {"Bochs", "bochs"}, {"Parallels", "parallels"}, {"BHYVE", "bhyve"}, {"Hyper-V", "hyper-v"},
	{"Microsoft Corporation Virtual Machine", "hyper-v"}, {"Apple Virtualization", "apple"}, {"Google Compute Engine", "google"},
	{"OpenStack", "openstack"}, {"Firecracker", "firecracker"},
}

// virtual names the hypervisor and the container that are seen, in this order.
func (t tree) virtual(flags string) string {
	var kinds []string
	if k := t.hypervisor(flags); k != "" {
		kinds = append(kinds, k)
	}
	if k := t.container(); k != "" {
		kinds = append(kinds, k)
	}
	return strings.Join(kinds, ", ")
}

func (t tree) hypervisor(flags string) string {
	// The privileged domain of Xen has the disks of the machine itself.
	if k := t.text("sys/hypervisor/type"); k != "" && !strings.Contains(t.read("proc/xen/capabilities"), "control_d") {
		return strings.ReplaceAll(k, ",", " ")
	}
	if strings.Contains(strings.ToLower(t.read("proc/sys/kernel/osrelease")), "microsoft") {
		return "wsl"
	}
	dmi := t.text("sys/class/dmi/id/sys_vendor") + " " + t.text("sys/class/dmi/id/product_name") + " " + t.text("sys/class/dmi/id/bios_vendor")
	for _, m := range makers {
		if strings.Contains(dmi, m.mark) {
			return m.kind
		}
	}
	seen := strings.Contains(" "+flags+" ", " hypervisor ")
	switch {
	case seen && strings.Contains(dmi, "Amazon EC2"):
		return "amazon"
	case strings.Contains(t.read("proc/device-tree/hypervisor/compatible"), "kvm"):
		return "kvm"
	case seen:
		return "virtual machine"
	}
	return ""
}

func (t tree) container() string {
	switch {
	case t.exists("run/.containerenv"):
		return "podman"
	case t.exists(".dockerenv"):
		return "docker"
	}
	if k := t.text("run/systemd/container"); containers[k] {
		return k
	} else if k != "" {
		return "container"
	}
	groups := t.read("proc/1/cgroup")
	for _, m := range [][2]string{{"kubepods", "kubernetes"}, {"/docker/", "docker"}, {"/libpod", "podman"}, {"/lxc/", "lxc"}} {
		if strings.Contains(groups, m[0]) {
			return m[1]
		}
	}
	return ""
}
