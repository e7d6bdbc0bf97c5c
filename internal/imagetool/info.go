package imagetool

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// info lists what is attached.
func (c *call) info() error {
	all, err := c.env.Attacher.List(c.ctx)
	if err != nil {
		return err
	}
	if !c.has("-plist") {
		return c.infoText(all)
	}
	var lost []list
	images := []list{}
	for _, a := range all {
		if a.Dead {
			lost = append(lost, list{"image-path": a.Image, "dev-entry": whole(a), "hdid-pid": a.HelperPID})
			continue
		}
		images = append(images, c.infoImageList(a))
	}
	d := list{"framework": c.env.Version, "revision": c.env.Version, "vendor": "dmgbench", "images": images}
	if lost != nil {
		d["dmgbench-lost"] = lost
	}
	return c.printPlist(d)
}

func (c *call) infoImageList(a Attached) list {
	var entities []list
	for _, e := range c.entities(a) {
		d := list{"dev-entry": e.device, "content-hint": e.rawHint()}
		if e.volume && a.MountPoint != "" {
			d["mount-point"] = a.MountPoint
		}
		entities = append(entities, d)
	}
	return list{
		"autodiskmount": true, "blockcount": a.Size / sector, "blocksize": sector, "diskimages2": false, "hdid-pid": a.HelperPID,
		"image-encrypted": a.Encrypted, "image-path": a.Image, "image-type": infoOf(a.Format).attached, "owner-uid": c.env.UID, "removable": true,
		"system-entities": entities, "writeable": !a.ReadOnly,
	}
}

func (c *call) infoText(all []Attached) error {
	fmt.Fprintf(c.out, "framework       : %s\ndriver          : dmgbench\n", c.env.Version)
	for _, a := range all {
		fmt.Fprintln(c.out, strings.Repeat("=", 48))
		if a.Dead {
			fmt.Fprintf(c.out, "image-path      : %s\nlost            : %s\n", a.Image, died(a))
			continue
		}
		for _, l := range [][2]string{
			{"image-path", a.Image}, {"image-alias", a.Image}, {"shadow-path", "<none>"}, {"icon-path", "<none>"},
			{"image-type", infoOf(a.Format).attached}, {"system-image", "FALSE"}, {"blockcount", strconv.FormatInt(a.Size/sector, 10)},
			{"blocksize", strconv.Itoa(sector)}, {"writeable", shout(!a.ReadOnly)}, {"autodiskmount", "TRUE"}, {"removable", "TRUE"},
			{"image-encrypted", shout(a.Encrypted)}, {"mounting user", userName(c.env.UID)}, {"served by", a.Mode},
			{"process ID", strconv.Itoa(a.HelperPID)},
		} {
			fmt.Fprintf(c.out, "%-16s: %s\n", l[0], l[1])
		}
		for _, e := range c.entities(a) {
			c.printLine(a, e, e.rawHint())
		}
	}
	return nil
}

func died(a Attached) string {
	if a.Unfinished {
		return "the command that attached it was ended before it was done; what it left was removed"
	}
	return "the process that served " + whole(a) + " died; device and mount were released, what was not flushed is gone"
}

func shout(b bool) string { return strings.ToUpper(strconv.FormatBool(b)) }

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
