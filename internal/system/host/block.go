package host

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/result"
)

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
	d := result.Disk{Filesystem: clean(m.Type)}
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
	d.Bus = firstNamed("/"+dir, buses)
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
	ReadOnly     bool
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
			ReadOnly: strings.HasPrefix(mount[5]+",", "ro,")}
		if _, err := fmt.Sscanf(mount[2], "%d:%d", &m.Major, &m.Minor); err == nil {
			list = append(list, m)
		}
	}
	return list
}
