package hdiutil

import (
	"fmt"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/engine/hdiutil/argv"
)

const (
	backendHdiutil  = "hdiutil"
	backendDiskutil = "diskutil"
	auto            = "auto"
	kernel          = "kernel"
	helper          = "helper"
)

// kind is a format.
type kind struct {
	format string // Apple's four letters
	ext    string // of the file name
	typ    string // of `hdiutil create`, "" if it cannot make an empty one
	image  string // of `diskutil image`, "" if it does not know it
	grows  bool
	fixed  bool // read-only: made by converting
	sums   bool // stores a checksum, so that it can be verified
}

// kinds are all formats. diskutil says RAW for UDRW.
var kinds = map[string]kind{}

// Advice that several refusals give.
const (
	adviceFormats = "use UDRW, UDSB, UDSP or ASIF, or convert to UDRO, UDCO, UDZO, UDBZ, ULFO, ULMO, UFBI or UDTO"
	adviceOther   = "the help of this tool does not name it: use another format or a newer tool, or --engine inprocess"
	adviceASIF    = "nobody has published the layout of encrypted ASIF images: use UDSB, or Apple's diskutil on a Mac"
)

func init() {
	for _, k := range []kind{
		{format: "UDRW", ext: ".dmg", typ: "UDIF", image: "RAW"},
		{format: "UDSP", ext: ".sparseimage", typ: "SPARSE", grows: true},
		{format: "UDSB", ext: ".sparsebundle", typ: "SPARSEBUNDLE", image: "UDSB", grows: true},
		{format: "ASIF", ext: ".asif", image: "ASIF", grows: true},
		{format: "UDRO", ext: ".dmg", image: "UDRO", fixed: true, sums: true},
		{format: "UDCO", ext: ".dmg", fixed: true, sums: true},
		{format: "UDZO", ext: ".dmg", image: "UDZO", fixed: true, sums: true},
		{format: "UDBZ", ext: ".dmg", fixed: true, sums: true},
		{format: "ULFO", ext: ".dmg", image: "ULFO", fixed: true, sums: true},
		{format: "ULMO", ext: ".dmg", image: "ULMO", fixed: true, sums: true},
		{format: "UFBI", ext: ".dmg", fixed: true, sums: true},
		{format: "UDTO", ext: ".cdr", fixed: true},
	} {
		kinds[k.format] = k
	}
}

func canonical(format string) string {
	if f := strings.ToUpper(format); f != "RAW" {
		return f
	}
	return "UDRW"
}

// filesystem is a file system by the name that plans use.
type filesystem struct {
	name  string
	hd    string   // of -fs; "" is -layout NONE
	du    string   // of --fs; "" if diskutil does not make it
	types []string // in the mount table
	label int      // longest volume name, bytes
	apple bool     // Apple's tool makes it
	fsck  checker  // Linux
}

// checker is how a file system is checked on Linux.
type checker struct {
	program string // "" if it is not
	look    string // arguments
	repair  []mend // run one after the other
}

// mend is one run of the program that repairs.
type mend struct {
	args  string
	fixed []int // statuses besides 0 that say that errors were found and corrected
}

// fsck8 repairs with arguments, and says what it did as fsck(8) wants: 1 corrected, 2 corrected and to be mounted anew.
func fsck8(program, look, repair string) checker {
	return checker{program, look, []mend{{repair, []int{1, 2, 3}}}}
}

var filesystems = []filesystem{
	{name: "APFS", hd: "APFS", du: "APFS", types: []string{"apfs"}, label: 127, apple: true},
	{name: "Case-sensitive APFS", hd: "Case-sensitive APFS", types: []string{"apfs"}, label: 127, apple: true},
	{name: "HFS+", hd: "HFS+", types: []string{"hfs", "hfsplus"}, label: 127, apple: true, fsck: fsck8("fsck.hfsplus", "-fn", "-fy")},
	{name: "Journaled HFS+", hd: "Journaled HFS+", types: []string{"hfs", "hfsplus"}, label: 127, apple: true, fsck: fsck8("fsck.hfsplus", "-fn", "-fy")},
	{name: "Case-sensitive HFS+", hd: "Case-sensitive HFS+", types: []string{"hfs", "hfsplus"}, label: 127, apple: true, fsck: fsck8("fsck.hfsplus", "-fn", "-fy")},
	{name: "Case-sensitive Journaled HFS+", hd: "Case-sensitive Journaled HFS+", types: []string{"hfs", "hfsplus"}, label: 127, apple: true, fsck: fsck8("fsck.hfsplus", "-fn", "-fy")},
	{name: "FAT32", hd: "MS-DOS FAT32", du: "MS-DOS", types: []string{"msdos", "vfat"}, label: 11, apple: true, fsck: fsck8("fsck.fat", "-n", "-a")},
	{name: "exFAT", hd: "ExFAT", du: "ExFAT", types: []string{"exfat"}, label: 11, apple: true, fsck: fsck8("fsck.exfat", "-n", "-b -y")},
	{name: "none", du: "None", apple: true},
	{name: "ext4", hd: "ext4", types: []string{"ext4"}, label: 16, fsck: fsck8("fsck.ext4", "-fn", "-fy")},
	{name: "XFS", hd: "xfs", types: []string{"xfs"}, label: 12, fsck: checker{"xfs_repair", "-n", []mend{{"", nil}}}},
	{name: "btrfs", hd: "btrfs", types: []string{"btrfs"}, label: 255, // A check opens nothing without the first superblock, which super-recover writes anew from its copies (status 2), as e2fsck
		// does by itself.
		fsck: checker{"btrfs", "check --readonly", []mend{{"rescue super-recover -y", []int{2}}, {"check --repair --force", nil}}}},
}

// synonyms are other names that people use.
var synonyms = map[string]string{
	"apfsx": "Case-sensitive APFS", "hfs+j": "Journaled HFS+", "jhfs+": "Journaled HFS+", "hfsx": "Case-sensitive HFS+",
	"jhfs+x": "Case-sensitive Journaled HFS+", "ms-dos fat32": "FAT32", "": "none",
}

// filesystemNamed finds a file system, by any case.
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

// labelled cuts a volume name to what the file system takes, at a whole character.
func (f filesystem) labelled(name string) string {
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

// choice is what is made of a spec, and by which tool.
type choice struct {
	backend string
	kind    kind
	fs      filesystem
	size    int64 // bytes, as the tool takes it
}

// choose finds the tool and the file system for a spec. With auto, hdiutil is
// asked first, since it makes nearly everything; ASIF is diskutil's alone.
func (e *Engine) choose(s engine.Spec) (choice, error) {
	k, ok := kinds[canonical(s.Format)]
	switch {
	case !ok:
		return choice{}, e.refuse(backendHdiutil, "format "+s.Format, adviceFormats)
	case k.fixed:
		return choice{}, e.refuse(backendHdiutil, "making an empty "+k.format+" image", "make a UDRW image and convert it")
	}
	return e.chooseKind(s, k)
}

func (e *Engine) chooseKind(s engine.Spec, k kind) (choice, error) {
	if k.format == "" {
		return choice{}, e.refuse(backendHdiutil, "format "+s.Format, adviceFormats)
	}
	var first error
	for _, b := range candidates(s.Backend, k) {
		c, err := e.with(b, s, k)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return choice{}, first
}

func candidates(backend string, k kind) []string {
	switch {
	case backend != "" && backend != auto:
		return []string{backend}
	case k.format == "ASIF":
		return []string{backendDiskutil}
	}
	return []string{backendHdiutil, backendDiskutil}
}

// with says what one backend would make of the spec.
func (e *Engine) with(backend string, s engine.Spec, k kind) (choice, error) {
	c := choice{backend: backend, kind: k, size: roundUp(s.Size, argv.Sector)}
	if err := e.makes(backend, k); err != nil {
		return c, err
	}
	encrypted := s.Encryption != "" && s.Encryption != "none"
	switch {
	case encrypted && s.Encryption != "AES-128" && s.Encryption != "AES-256":
		return c, e.refuse(backend, "encryption "+s.Encryption, "AES-128 or AES-256")
	case encrypted && k.format == "ASIF" && e.o.Vendor == "dmgbench":
		return c, e.refuse(backend, "encryption of ASIF images", adviceASIF)
	case encrypted && !e.can.encrypts:
		return c, e.refuse(backend, "encryption "+s.Encryption, "the help of this tool does not name AES-256: use a newer one, or --engine inprocess")
	case encrypted && backend == backendDiskutil && s.Encryption != "AES-256":
		return c, e.refuse(backend, "encryption "+s.Encryption, "AES-256, or backend = \"hdiutil\"")
	case backend == backendDiskutil && s.BandSize != 0 && k.format == "UDSB":
		return c, e.refuse(backend, "a band size of one's own", "backend = \"hdiutil\"")
	case k.format == "UDSB" && s.BandSize != 0 && (s.BandSize < argv.MinBand || s.BandSize > argv.MaxBand || s.BandSize%argv.Sector != 0):
		return c, e.refuse(backend, fmt.Sprintf("bands of %d bytes", s.BandSize), "1 MiB to 8 GiB")
	}
	if backend == backendDiskutil {
		c.size = roundUp(s.Size, 4096)
	}
	err := e.serves(backend, s, k, encrypted)
	if err != nil {
		return c, err
	}
	c.fs, err = e.pick(backend, s.Filesystems, k)
	return c, err
}

// serves says whether the image can be attached in the way that is asked for: by the kernel alone, through a helper process, or as
// the tool does it.
func (e *Engine) serves(backend string, s engine.Spec, k kind, encrypted bool) error {
	plain := k.format == "UDRW" && !encrypted
	able, known := plain, "plain UDRW"
	if e.o.Vendor != "dmgbench" {
		able, known = k.format != "UDSB", "UDRW, UDRO, UDZO, ULFO and UDSP"
	}
	switch by := s.ServedBy; {
	case e.can.noFUSE != "" && (!plain || by == helper):
		return e.refuse(backend, "attaching through a helper process here", e.can.noFUSE)
	case by == "" || by == auto:
		return nil
	case backend == backendDiskutil:
		return e.refuse(backend, "choosing what serves an image", "backend = \"hdiutil\", or served_by = \"auto\"")
	case by == kernel && !able:
		return e.refuse(backend, "attaching this image without a helper process", "served_by = \"helper\"; the kernel alone serves "+known)
	}
	return nil
}

// makes says whether the backend knows the format.
func (e *Engine) makes(backend string, k kind) error {
	known, is := false, false
	switch backend {
	case backendHdiutil:
		is, known = e.can.hdiutil, e.can.makes[k.format]
	case backendDiskutil:
		is, known = e.can.diskutil, e.can.images[k.format]
	default:
		return e.refuse(backendHdiutil, "backend "+backend, "hdiutil, diskutil or auto")
	}
	switch {
	case !is:
		return &engine.UnsupportedError{Engine: e.title(backendHdiutil), What: "backend " + backend, Hint: "this machine has no such tool, or an old one"}
	case !known && k.format == "ASIF" && backend == backendHdiutil:
		return e.refuse(backend, "format ASIF", "backend = \"diskutil\" or \"auto\"")
	case !known && k.format == "ASIF":
		return e.refuse(backend, "format ASIF", "macOS 26 or later makes it")
	case !known:
		return e.refuse(backend, "format "+k.format, adviceOther)
	}
	return nil
}

// pick is the first file system of the preference that the backend can make; none stands for APFS, else ext4, else exFAT.
func (e *Engine) pick(backend string, preference []string, k kind) (filesystem, error) {
	if len(preference) == 0 {
		preference = []string{"APFS", "ext4", "exFAT"}
	}
	for _, name := range preference {
		f, ok := filesystemNamed(name)
		switch {
		case !ok:
		case backend == backendHdiutil && e.can.filesystems[f.name]:
			return f, nil
		case backend == backendDiskutil && e.chosen(f) && (e.can.filesystems[f.name] || !e.can.hdiutil):
			return f, nil
		}
	}
	hint := "it makes " + strings.Join(e.filesystemNames(backend), ", ")
	for _, name := range preference {
		if f, ok := filesystemNamed(name); ok && e.can.lacks[f.name] != "" {
			hint += "; for " + f.name + ": " + e.can.lacks[f.name]
		}
	}
	return filesystem{}, e.refuse(backend, "file system "+strings.Join(preference, ", "), hint)
}

// chosen says whether diskutil makes images with this file system, "none" being what an image has that is made out of another.
func (e *Engine) chosen(f filesystem) bool {
	return f.du != "" && (e.can.chooses || f.name == "APFS" || f.name == "none")
}

func (e *Engine) filesystemNames(backend string) []string {
	var list []string
	for _, f := range filesystems {
		if e.can.filesystems[f.name] && (backend == backendHdiutil || e.chosen(f)) {
			list = append(list, f.name)
		}
	}
	return list
}

func (e *Engine) refuse(backend, what, hint string) error {
	return &engine.UnsupportedError{Engine: e.title(backend), What: what, Hint: hint}
}

func roundUp(v, unit int64) int64 { return (v + unit - 1) / unit * unit }

func withExtension(name, ext string) string {
	if strings.HasSuffix(name, ext) {
		return name
	}
	return name + ext
}
