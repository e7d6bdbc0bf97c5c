package hdiutil

import (
	"dmgbench/internal/engine"
	"dmgbench/internal/workload"
)

// Allows refuses what the tools cannot do to an image of the spec.
func (e *Engine) Allows(s engine.Spec, a engine.Action) error {
	c, err := e.chooseKind(s, kinds[canonical(s.Format)])
	if err != nil {
		return err
	}
	return e.allows(c, a)
}

// allows refuses what cannot be done to an image that was chosen so.
func (e *Engine) allows(c choice, a engine.Action) error {
	switch a.Do {
	case "compact":
		switch {
		case c.kind.typ != "SPARSE" && c.kind.typ != "SPARSEBUNDLE":
			return e.refuse(c.backend, "compacting "+c.kind.format, "use UDSB or UDSP, or let attaching trim the image")
		case !e.can.hdiutil:
			return e.refuse(c.backend, "compacting", "only hdiutil compacts")
		}
	case "resize":
		apfs := len(c.fs.types) > 0 && c.fs.types[0] == "apfs"
		switch {
		case c.kind.fixed:
			return e.refuse(c.backend, "resizing "+c.kind.format, "convert it to UDRW first")
		case c.backend != backendDiskutil && !e.byHdiutil(c.fs) && !(apfs && e.can.diskutil):
			return e.refuse(c.backend, "resizing "+c.fs.name, "use APFS with diskutil, or HFS+")
		}
	case "convert":
		_, err := e.target(c, a.To)
		return err
	case "damage":
		if !damages(c.kind, a.Kind) {
			return e.refuse(c.backend, "damage "+a.Kind+" of "+c.kind.format,
				"the kinds are header, volume, truncated, band-missing for UDSB, and table for images that can be written to")
		}
	case "stream":
		if a.Kind == workload.CodecLZFSE && e.o.Vendor == "dmgbench" {
			return e.refuse(c.backend, "codec "+a.Kind+", which takes macOS", "use zstd, s2 or gzip")
		}
	}
	return nil
}

// damages says whether an image of the kind has what a kind of damage harms.
func damages(k kind, what string) bool {
	switch what {
	case "header", "truncated", "volume":
		return true
	case "table":
		return !k.sums
	}
	return what == "band-missing" && k.format == "UDSB"
}

// Ideal are engines with the newest tools of each vendor on a machine that lacks nothing. They can be asked
// what they support and allow, and can do nothing else. Apple's come last.
func Ideal() []*Engine {
	var out []*Engine
	for _, vendor := range []string{"dmgbench", "Apple"} {
		can := abilities{hdiutil: true, diskutil: true, encrypts: true, chooses: true,
			makes: map[string]bool{}, images: map[string]bool{}, filesystems: map[string]bool{}}
		for name, k := range kinds {
			can.makes[name], can.images[name] = k.typ != "" || k.fixed, k.image != ""
		}
		for _, f := range filesystems {
			can.filesystems[f.name] = f.apple == (vendor == "Apple") || f.name == "exFAT" || f.name == "FAT32" || f.name == "none"
		}
		out = append(out, &Engine{o: Options{Vendor: vendor}, can: can})
	}
	return out
}
