package hdiutil

import (
	"dmgbench/internal/engine"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/workload"
)

// Allows refuses what the tools cannot do to an image of the spec.
func (e *Engine) Allows(s engine.Spec, a engine.Action) error {
	f, _ := diskimage.FormatNamed(s.Format)
	c, err := e.chooseFormat(s, f)
	if err != nil {
		return err
	}
	return e.allows(c, a)
}

// allows is Allows for an image that is chosen.
func (e *Engine) allows(c choice, a engine.Action) error {
	switch a.Do {
	case "compact":
		switch {
		case c.format.CreateType != "SPARSE" && c.format.CreateType != "SPARSEBUNDLE":
			return e.refuse(c.backend, "compacting "+c.format.Name, "use UDSB or UDSP, or let attaching trim the image")
		case !e.can.hdiutil:
			return e.refuse(c.backend, "compacting", "only hdiutil compacts")
		}
	case "resize":
		switch {
		case c.format.ReadOnly:
			return e.refuse(c.backend, "resizing "+c.format.Name, "convert it to UDRW first")
		case c.backend != backendDiskutil && !e.resizesByHdiutil(c.fs) && !(c.fs.isType("apfs") && e.can.diskutil):
			return e.refuse(c.backend, "resizing "+c.fs.name, "use APFS with diskutil, or HFS+")
		}
	case "convert":
		_, err := e.chooseTarget(c, a.To)
		return err
	case "damage":
		if !canDamage(c.format, a.Kind) {
			return e.refuse(c.backend, "damage "+a.Kind+" of "+c.format.Name,
				"the kinds are header, volume, truncated, band-missing for UDSB, and table for images that can be written to")
		}
	case "stream":
		if a.Kind == workload.CodecLZFSE && !e.isApple() {
			return e.refuse(c.backend, "codec "+a.Kind+", which takes macOS", "use zstd, s2 or gzip")
		}
	}
	return nil
}

// resizesByHdiutil reports whether hdiutil resizes images with this file system.
func (e *Engine) resizesByHdiutil(f filesystem) bool {
	return !e.isApple() || f.name == "none" || f.isType("hfs")
}

// canDamage reports whether an image of the format contains what this kind of damage changes.
func canDamage(f format, kind string) bool {
	switch kind {
	case "header", "truncated", "volume":
		return true
	case "table":
		return !f.UDIF
	}
	return kind == "band-missing" && f.Folder
}

// Ideal returns engines with the newest tools of each vendor on a machine with everything installed, Apple's last.
// They answer Supports and Allows and can do no more.
func Ideal() []*Engine {
	var out []*Engine
	for _, vendor := range []string{vendorOwn, vendorApple} {
		can := capabilities{hdiutil: true, diskutil: true, encrypts: true, diskutilFS: true,
			hdiutilFormats: map[string]bool{}, diskutilFormats: map[string]bool{}, filesystems: map[string]bool{}}
		for _, f := range diskimage.Formats {
			can.hdiutilFormats[f.Name], can.diskutilFormats[f.Name] = f.CreateType != "" || f.ReadOnly, f.ImageType != ""
		}
		for _, f := range filesystems {
			can.filesystems[f.name] = f.apple == (vendor == vendorApple) || f.name == "exFAT" || f.name == "FAT32" || f.name == "none"
		}
		out = append(out, &Engine{o: Options{Vendor: vendor}, can: can})
	}
	return out
}
