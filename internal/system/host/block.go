package host

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/result"
)

// Unescape undoes the octal escapes (\040) of mount tables: proc(5) has blanks,
// tabs, line ends and backslashes so.
func Unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// remote are file systems with their data on another machine.
var remote = strings.Fields("nfs nfs4 cifs smb3 smbfs afpfs webdav ceph glusterfs fuse.sshfs fuse.glusterfs afs")

// under describes the disk of an absolute path without links: of the longest
// mount point, and the last one mounted there.
func (t tree) under(name string) result.Disk {
	var m Mount
	for _, one := range ParseMounts(t.read("proc/self/mountinfo")) {
		isBelow := one.Point == "/" || name == one.Point || strings.HasPrefix(name, one.Point+"/")
		if isBelow && len(one.Point) >= len(m.Point) {
			m = one
		}
	}
	d := result.Disk{Filesystem: clean(m.Type)}
	switch {
	case m.Type == "": // no mount
	case m.Type == "tmpfs" || m.Type == "ramfs":
		d.Medium = "memory"
	case slices.Contains(remote, m.Type):
		d.Medium, d.Bus = "network", "network"
	default:
		// A file system of several devices (btrfs) has a number that is not a
		// block device.
		dir := t.blockDir(fmt.Sprintf("sys/dev/block/%d:%d", m.Major, m.Minor))
		if dir == "" && strings.HasPrefix(m.Source, "/dev/") {
			name := strings.TrimPrefix(path.Clean(m.Source), "/dev/")
			dir = t.blockDir("sys/class/block/" + strings.ReplaceAll(name, "/", "!"))
		}
		t.block(&d, dir, 8)
	}
	return d
}

// blockDir follows the link of a block device to its folder under the tree.
func (t tree) blockDir(link string) string {
	root, err := filepath.EvalSymlinks(string(t))
	if err != nil {
		return ""
	}
	dir, err := filepath.EvalSymlinks(t.path(link))
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// block describes a device from its sysfs folder, going from a partition to its
// disk and from a mapping to what it maps, at most depth times.
func (t tree) block(d *result.Disk, dir string, depth int) {
	if dir == "" || depth == 0 {
		return
	}
	if t.exists(path.Join(dir, "partition")) {
		dir = path.Dir(dir)
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
	name := path.Base(dir)
	d.Bus = firstNamed("/"+dir, buses)
	if d.Bus == "usb" || t.text(path.Join(dir, "removable")) == "1" {
		d.Location = "external" // what is not known to be so, may be so by Thunderbolt
	}
	switch rotational, ok := t.number(path.Join(dir, "queue/rotational")); {
	case strings.HasPrefix(name, "zram") || strings.HasPrefix(name, "ram"):
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
		major, minor, _ := strings.Cut(mount[2], ":")
		a, err1 := strconv.ParseUint(major, 10, 32)
		b, err2 := strconv.ParseUint(minor, 10, 32)
		if err1 == nil && err2 == nil {
			list = append(list, Mount{
				Major: uint32(a), Minor: uint32(b), Point: Unescape(mount[4]), Type: system[0],
				Source: Unescape(system[1]), ReadOnly: strings.HasPrefix(mount[5]+",", "ro,"),
			})
		}
	}
	return list
}
