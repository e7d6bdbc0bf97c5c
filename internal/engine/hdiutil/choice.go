package hdiutil

import (
	"fmt"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/command"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/workload"
)

// format is the registry's row of a format; the zero value is an unknown
// format.
type format = diskimage.Format

// filesystem is a file system by the name that plans use.
type filesystem struct {
	name     string
	hdiutil  string   // of -fs; "": -layout NONE
	diskutil string   // of --fs; "": diskutil does not make it
	types    []string // in the mount table
	label    int      // longest volume name, bytes
	apple    bool     // Apple's tool makes it
	fsck     fsck     // on Linux
}

// fsck is how a file system is checked on Linux.
type fsck struct {
	program string // "": not checked
	check   string // arguments of a check
	repair  []repairCommand
}

// repairCommand is one run of the program that repairs; all of them run, one
// after the other.
type repairCommand struct {
	args  string
	fixed []int // statuses besides 0 that mean: errors were found and corrected
}

// repairs is a repair by one run with the statuses of fsck(8): 1 corrected, 2
// corrected and to be mounted anew.
func repairs(args string) []repairCommand { return []repairCommand{{args, []int{1, 2, 3}}} }

var (
	typesHFS = []string{"hfs", "hfsplus"}
	fsckHFS  = fsck{"fsck.hfsplus", "-fn", repairs("-fy")}
)

var filesystems = []filesystem{
	{name: "APFS", hdiutil: "APFS", diskutil: "APFS", types: []string{"apfs"}, label: 127, apple: true},
	{name: "Case-sensitive APFS", hdiutil: "Case-sensitive APFS", types: []string{"apfs"}, label: 127, apple: true},
	{name: "HFS+", hdiutil: "HFS+", types: typesHFS, label: 127, apple: true, fsck: fsckHFS},
	{name: "Journaled HFS+", hdiutil: "Journaled HFS+", types: typesHFS, label: 127, apple: true, fsck: fsckHFS},
	{name: "Case-sensitive HFS+", hdiutil: "Case-sensitive HFS+", types: typesHFS, label: 127, apple: true,
		fsck: fsckHFS},
	{name: "Case-sensitive Journaled HFS+", hdiutil: "Case-sensitive Journaled HFS+", types: typesHFS, label: 127,
		apple: true, fsck: fsckHFS},
	{name: "FAT32", hdiutil: "MS-DOS FAT32", diskutil: "MS-DOS", types: []string{"msdos", "vfat"}, label: 11,
		apple: true, fsck: fsck{"fsck.fat", "-n", repairs("-a")}},
	{name: "exFAT", hdiutil: "ExFAT", diskutil: "ExFAT", types: []string{"exfat"}, label: 11, apple: true,
		fsck: fsck{"fsck.exfat", "-n", repairs("-b -y")}},
	{name: "none", diskutil: "None", apple: true},
	{name: "ext4", hdiutil: "ext4", types: []string{"ext4"}, label: 16, fsck: fsck{"fsck.ext4", "-fn", repairs("-fy")}},
	{name: "XFS", hdiutil: "xfs", types: []string{"xfs"}, label: 12,
		fsck: fsck{"xfs_repair", "-n", []repairCommand{{"", nil}}}},
	// btrfs check opens no volume without the first superblock; super-recover
	// restores it from its copies (status 2), which e2fsck does without being
	// asked.
	{name: "btrfs", hdiutil: "btrfs", types: []string{"btrfs"}, label: 255, fsck: fsck{"btrfs", "check --readonly",
		[]repairCommand{{"rescue super-recover -y", []int{2}}, {"check --repair --force", nil}}}},
}

// synonyms are other names that people use.
var synonyms = map[string]string{
	"apfsx": "Case-sensitive APFS", "hfs+j": "Journaled HFS+", "jhfs+": "Journaled HFS+", "hfsx": "Case-sensitive HFS+",
	"jhfs+x": "Case-sensitive Journaled HFS+", "ms-dos fat32": "FAT32", "": "none",
}

// filesystemNamed finds a file system by its name in any case.
func filesystemNamed(name string) (filesystem, bool) {
	if s, ok := synonyms[strings.ToLower(name)]; ok {
		name = s
	}
	for _, f := range filesystems {
		if strings.EqualFold(f.name, name) {
			return f, true
		}
	}
	return filesystem{}, false
}

// isType reports whether the file system has this type in the mount table.
func (f filesystem) isType(kind string) bool { return len(f.types) > 0 && f.types[0] == kind }

// labelFor shortens a volume name to what the file system accepts, at a whole
// character.
func (f filesystem) labelFor(name string) string {
	if name == "" {
		name = "dmgbench"
	}
	for i, r := range name {
		if i+len(string(r)) > f.label {
			return name[:i]
		}
	}
	return name
}

// Hints of several refusals.
const (
	hintOther        = "the help of this tool does not name it: use another format or a newer tool, or --engine inprocess"
	hintNotPublished = "the layout of such images is not published: use UDSB, or Apple's diskutil on a Mac"
)

// hintFormats names the formats that the tools make.
func hintFormats() string {
	return "use " + strings.Join(diskimage.FormatNames(format.Writable), ", ") + ", or convert to " +
		strings.Join(diskimage.FormatNames(func(f format) bool { return f.ReadOnly }), ", ")
}

// choice is how an image of a spec is made.
type choice struct {
	backend string
	format  format
	fs      filesystem
	size    int64 // bytes, as the tool accepts it
}

// choose finds the tool and the file system for a spec of an empty image. With
// backend auto it tries hdiutil first, since hdiutil makes nearly all formats;
// only diskutil makes ASIF.
func (e *Engine) choose(s engine.Spec) (choice, error) {
	f, _ := diskimage.FormatNamed(s.Format)
	if f.ReadOnly {
		return choice{}, e.refuse(backendHdiutil, "making an empty "+f.Name+" image",
			"make a UDRW image and convert it")
	}
	return e.chooseFormat(s, f)
}

// chooseFormat is choose also for formats that are made by converting. The zero
// format is refused.
func (e *Engine) chooseFormat(s engine.Spec, f format) (choice, error) {
	if f.Name == "" {
		return choice{}, e.refuse(backendHdiutil, "format "+s.Format, hintFormats())
	}
	backends := []string{backendHdiutil, backendDiskutil}
	switch {
	case s.Backend != "" && s.Backend != auto:
		backends = []string{s.Backend}
	case f.CreateType == "" && !f.ReadOnly:
		backends = []string{backendDiskutil}
	}
	var first error
	for _, b := range backends {
		c, err := e.chooseBackend(b, s, f)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return choice{}, first
}

// chooseBackend is what one backend would make of the spec.
func (e *Engine) chooseBackend(backend string, s engine.Spec, f format) (choice, error) {
	c := choice{backend: backend, format: f, size: roundUp(s.Size, command.Sector)}
	if backend == backendDiskutil {
		c.size = roundUp(s.Size, command.DiskutilUnit)
	}
	err := e.checkFormat(backend, f)
	if err == nil {
		err = e.checkEncryption(backend, s, f)
	}
	switch {
	case err != nil || !f.Folder || s.BandSize == 0:
	case backend == backendDiskutil:
		err = e.refuse(backend, "a band size of one's own", "backend = \"hdiutil\"")
	case diskimage.CheckBandSize(s.BandSize) != nil:
		err = e.refuse(backend, fmt.Sprintf("bands of %d bytes", s.BandSize), "1 MiB to 8 GiB")
	}
	if err == nil {
		err = e.checkServedBy(backend, s, f)
	}
	if err != nil {
		return c, err
	}
	c.fs, err = e.chooseFilesystem(backend, s.Filesystems)
	return c, err
}

// checkFormat refuses a format that the backend cannot make.
func (e *Engine) checkFormat(backend string, f format) error {
	known, present := false, false
	switch backend {
	case backendHdiutil:
		present, known = e.can.hdiutil, e.can.hdiutilFormats[f.Name]
	case backendDiskutil:
		present, known = e.can.diskutil, e.can.diskutilFormats[f.Name]
	default:
		return e.refuse(backendHdiutil, "backend "+backend, "hdiutil, diskutil or auto")
	}
	switch {
	case !present:
		return e.refuse(backendHdiutil, "backend "+backend, "this machine has no such tool, or an old one")
	case known:
		return nil
	case f.CreateType == "" && !f.ReadOnly && backend == backendHdiutil:
		return e.refuse(backend, "format "+f.Name, "backend = \"diskutil\" or \"auto\"")
	case f.MacOS > 0:
		return e.refuse(backend, "format "+f.Name, fmt.Sprintf("macOS %d or later makes it", f.MacOS))
	}
	return e.refuse(backend, "format "+f.Name, hintOther)
}

func isEncrypted(s engine.Spec) bool { return s.Encryption != "" && s.Encryption != "none" }

func (e *Engine) checkEncryption(backend string, s engine.Spec, f format) error {
	what := "encryption " + s.Encryption
	switch {
	case !isEncrypted(s):
		return nil
	case s.Encryption != "AES-128" && s.Encryption != "AES-256":
		return e.refuse(backend, what, "AES-128 or AES-256")
	case !f.Encrypted && !e.isApple():
		return e.refuse(backend, "encryption of "+f.Name+" images", hintNotPublished)
	case !e.can.encrypts:
		return e.refuse(backend, what,
			"the help of this tool does not name AES-256: use a newer one, or --engine inprocess")
	case backend == backendDiskutil && s.Encryption != "AES-256":
		return e.refuse(backend, what, "AES-256, or backend = \"hdiutil\"")
	}
	return nil
}

// checkServedBy refuses images that cannot be attached as requested: by the
// kernel alone, through a helper process, or as the tool does it.
func (e *Engine) checkServedBy(backend string, s engine.Spec, f format) error {
	raw := f.Name == diskimage.UDRW && !isEncrypted(s)
	kernelServes, names := raw, "plain UDRW"
	if e.isApple() {
		kernelServes, names = !f.Folder, "UDRW, UDRO, UDZO, ULFO and UDSP"
	}
	switch by := s.ServedBy; {
	case e.can.noFUSE != "" && (!raw || by == helper):
		return e.refuse(backend, "attaching through a helper process here", e.can.noFUSE)
	case by == "" || by == auto:
	case backend == backendDiskutil:
		return e.refuse(backend, "choosing what serves an image", "backend = \"hdiutil\", or served_by = \"auto\"")
	case by == kernel && !kernelServes:
		return e.refuse(backend, "attaching this image without a helper process",
			"served_by = \"helper\"; the kernel alone serves "+names)
	}
	return nil
}

// chooseFilesystem is the first file system of the preference that the backend
// can make; without a preference the first of APFS, ext4 and exFAT.
func (e *Engine) chooseFilesystem(backend string, preference []string) (filesystem, error) {
	if len(preference) == 0 {
		preference = []string{"APFS", "ext4", "exFAT"}
	}
	hint := ""
	for _, name := range preference {
		f, ok := filesystemNamed(name)
		if ok && e.makesFilesystem(backend, f) {
			return f, nil
		}
		if ok && e.can.missing[f.name] != "" {
			hint += "; for " + f.name + ": " + e.can.missing[f.name]
		}
	}
	var names []string
	for _, f := range filesystems {
		if e.can.filesystems[f.name] && (backend == backendHdiutil || e.offersFilesystem(f)) {
			names = append(names, f.name)
		}
	}
	return filesystem{}, e.refuse(backend, "file system "+strings.Join(preference, ", "),
		"it makes "+strings.Join(names, ", ")+hint)
}

func (e *Engine) makesFilesystem(backend string, f filesystem) bool {
	if backend == backendHdiutil {
		return e.can.filesystems[f.name]
	}
	return e.offersFilesystem(f) && (e.can.filesystems[f.name] || !e.can.hdiutil)
}

// offersFilesystem reports whether diskutil makes images with this file system.
// "none" is always offered: the file system of a converted image comes with its
// content.
func (e *Engine) offersFilesystem(f filesystem) bool {
	return f.diskutil != "" && (e.can.diskutilFS || f.name == "APFS" || f.name == "none")
}

func (e *Engine) refuse(backend, what, hint string) error {
	return &engine.UnsupportedError{Engine: e.title(backend), What: what, Hint: hint}
}

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

// resizesByHdiutil reports whether hdiutil resizes images with this file
// system.
func (e *Engine) resizesByHdiutil(f filesystem) bool {
	return !e.isApple() || f.name == "none" || f.isType("hfs")
}

// canDamage reports whether an image of the format contains what this kind of
// damage changes.
func canDamage(f format, kind string) bool {
	switch kind {
	case "header", "truncated", "volume":
		return true
	case "table":
		return !f.UDIF
	}
	return kind == "band-missing" && f.Folder
}

// Ideal returns engines with the newest tools of each vendor on a machine with
// everything installed, Apple's last. They answer Supports and Allows and can
// do no more.
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
