package imagetool

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/gpt"
)

// entity is one device of an attached image, as both tools list them.
type entity struct {
	device, hint, guid string // hint for people, guid of the partition type
	volume             bool   // has the file system
}

// rawHint is the hint of the info list: GUIDs as they are on the disk.
func (e entity) rawHint() string {
	if e.guid != "" && e.guid != (gpt.GUID{}).String() {
		return e.guid
	}
	return e.hint
}

// entities are the devices of an attached image, the whole disk first. Where neither the device nor the image can be
// read, or another file has the image's name by now, they lack hints and GUIDs. i is the image if it is known already.
func (c *call) entities(a attach.Attached, i *image) []entity {
	var regions []region
	var scheme string
	if i != nil {
		regions, scheme = i.regions, i.scheme
	} else {
		regions, scheme = c.attachedRegions(a)
	}
	disk := entity{device: deviceName(a)}
	disk.volume = a.Partition == "" || a.Partition == disk.device || a.Mode == attach.ModeFUSE
	if scheme == "none" {
		disk.hint = regions[0].hint
	}
	for _, other := range otherSchemes {
		if other.name == scheme {
			disk.hint, disk.guid = other.hint, other.hint
		}
	}
	list := []entity{disk}
	if scheme == "GUID" {
		list[0] = entity{device: disk.device, hint: "GUID_partition_scheme", guid: "GUID_partition_scheme",
			volume: disk.device == a.Partition}
		for _, r := range regions {
			if r.part != nil {
				device := fmt.Sprintf("%sp%d", disk.device, r.number)
				list = append(list, entity{device, r.hint, r.part.Type.String(), device == a.Partition})
			}
		}
		if len(list) > 1 && (a.Partition == "" || a.Mode == attach.ModeFUSE) {
			list[len(list)-1].volume = true
		}
	}
	hasVolume := func(e entity) bool { return e.volume }
	if a.Mode != attach.ModeFUSE && a.Partition != "" && !slices.ContainsFunc(list, hasVolume) {
		list = append(list, entity{device: a.Partition, volume: true})
	}
	return list
}

// attachedRegions finds the regions of an attached image. Of an encrypted one, or one that was deleted or renamed, it
// reads the device, which shows the content; without a device it needs the keys, if the command got the passphrase.
func (c *call) attachedRegions(a attach.Attached) ([]region, string) {
	if a.Encrypted {
		if regions, scheme, err := deviceRegions(a.Device); err == nil {
			return regions, scheme
		}
	}
	if p, err := at(a.Image); err == nil {
		defer p.close()
		o := container.OpenOptions{ReadOnly: true, Keys: c.secrets.keys[p.path]}
		if img, err := container.Open(p.dir, p.name, o); err == nil {
			defer img.Close()
			regions, scheme, _ := readRegions(img)
			return regions, scheme
		}
	}
	regions, scheme, _ := deviceRegions(a.Device)
	return regions, scheme
}

// deviceRegions reads the regions of the device of an attached image.
func deviceRegions(path string) ([]region, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, "", err
	}
	return readRegions(blockdev.ReadOnly(f, size))
}

// deviceName is the device of the whole image. Without a loop device only a process serves the image, which is then
// named by its number.
func deviceName(a attach.Attached) string {
	if a.Mode != attach.ModeFUSE {
		return a.Device
	}
	return fmt.Sprintf("/dev/fuse%d", a.HelperPID)
}

// shortName is a device in messages.
func shortName(a attach.Attached) string { return strings.TrimPrefix(deviceName(a), "/dev/") }

// printAttached prints the result of attach: a line for each device, or the list in the tool's dialect.
func (c *call) printAttached(a attach.Attached, i *image) error {
	entities := c.entities(a, i)
	var list []dict
	var text strings.Builder
	for n, e := range entities {
		if c.tool == "hdiutil" {
			list = append(list, hdiutilEntity(a, e))
			text.WriteString(formatEntity(a, e, e.hint))
		} else {
			list = append(list, diskutilEntity(a, e, n == 0))
			fmt.Fprintln(&text, e.device)
		}
	}
	return c.printResult(dict{"system-entities": list}, "%s", text.String())
}

// formatEntity is the line of a device in attach and info. Programs cut it at the TABs; hints are cut at 31 characters.
func formatEntity(a attach.Attached, e entity, hint string) string {
	point := ""
	if e.volume {
		point = a.MountPoint
	}
	return fmt.Sprintf("%-20s\t%-31.31s\t%s\n", e.device, hint, point)
}

// hdiutilEntity is an entry of system-entities in hdiutil's dialect.
func hdiutilEntity(a attach.Attached, e entity) dict {
	d := dict{"dev-entry": e.device, "content-hint": e.hint, "unmapped-content-hint": e.guid,
		"potentially-mountable": e.volume && a.Filesystem != ""}
	if e.volume && a.Filesystem != "" {
		d["volume-kind"], _ = attach.AppleNames(a.Filesystem)
	}
	if e.volume && a.MountPoint != "" {
		d["mount-point"] = a.MountPoint
	}
	return d
}

// diskutilEntity is the same in diskutil's dialect: no /dev/, other keys.
func diskutilEntity(a attach.Attached, e entity, first bool) dict {
	d := dict{"dev-entry": filepath.Base(e.device), "content-hint": e.hint}
	if first && a.Size > 0 {
		d["size"] = a.Size
	}
	if e.volume && a.Filesystem != "" {
		d["filesystem-type"], d["filesystem-name"] = attach.AppleNames(a.Filesystem)
	}
	if e.volume && a.VolumeName != "" {
		d["volume-name"] = a.VolumeName
	}
	if e.volume && a.MountPoint != "" {
		d["mount-point"] = a.MountPoint
	}
	return d
}

// info lists the attached images.
func (c *call) info() error {
	all, err := c.env.Attacher.List(c.ctx)
	if err != nil {
		return err
	}
	var lost []dict
	var text strings.Builder
	images := []dict{}
	fmt.Fprintf(&text, "framework       : %s\ndriver          : dmgbench\n", c.env.Version)
	for _, a := range all {
		text.WriteString(strings.Repeat("=", 48) + "\n")
		if a.Dead {
			fmt.Fprintf(&text, "image-path      : %s\nlost            : %s\n", a.Image, describeDeath(a))
			lost = append(lost, dict{"image-path": a.Image, "dev-entry": deviceName(a), "hdid-pid": a.HelperPID})
			continue
		}
		entities := c.entities(a, nil)
		images = append(images, c.infoOfImage(a, entities))
		c.formatInfoOfImage(&text, a)
		for _, e := range entities {
			text.WriteString(formatEntity(a, e, e.rawHint()))
		}
	}
	d := dict{"framework": c.env.Version, "revision": c.env.Version, "vendor": "dmgbench", "images": images}
	if lost != nil {
		d["dmgbench-lost"] = lost
	}
	return c.printResult(d, "%s", text.String())
}

// infoOfImage is the dictionary of one image in info -plist. Keys without a meaning on Linux have Apple's usual values.
func (c *call) infoOfImage(a attach.Attached, entities []entity) dict {
	var list []dict
	for _, e := range entities {
		d := dict{"dev-entry": e.device, "content-hint": e.rawHint()}
		if e.volume && a.MountPoint != "" {
			d["mount-point"] = a.MountPoint
		}
		list = append(list, d)
	}
	return dict{
		"autodiskmount": true, "blockcount": a.Size / sector, "blocksize": sector, "diskimages2": false,
		"hdid-pid": a.HelperPID, "image-encrypted": a.Encrypted, "image-path": a.Image,
		"image-type": formatInfoOf(a.Format).attached, "owner-uid": c.env.UID, "removable": true,
		"system-entities": list, "writeable": !a.ReadOnly,
	}
}

// formatInfoOfImage writes the text of one image in info.
func (c *call) formatInfoOfImage(text io.Writer, a attach.Attached) {
	upper := func(b bool) string { return strings.ToUpper(strconv.FormatBool(b)) }
	name := strconv.Itoa(c.env.UID)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	for _, l := range [][2]string{
		{"image-path", a.Image}, {"image-alias", a.Image}, {"shadow-path", "<none>"}, {"icon-path", "<none>"},
		{"image-type", formatInfoOf(a.Format).attached}, {"system-image", "FALSE"},
		{"blockcount", strconv.FormatInt(a.Size/sector, 10)}, {"blocksize", strconv.Itoa(sector)},
		{"writeable", upper(!a.ReadOnly)}, {"autodiskmount", "TRUE"}, {"removable", "TRUE"},
		{"image-encrypted", upper(a.Encrypted)}, {"mounting user", name}, {"served by", a.Mode},
		{"process ID", strconv.Itoa(a.HelperPID)},
	} {
		fmt.Fprintf(text, "%-16s: %s\n", l[0], l[1])
	}
}

// describeDeath describes what a dead process has left of an attachment.
func describeDeath(a attach.Attached) string {
	if a.Unfinished {
		return "the command that attached it was ended before it was done; what it left was removed"
	}
	return "the process that served " + deviceName(a) + " died; device and mount were released, unflushed data is lost"
}
