package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/bench/workload"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

// format is the registry's row of a format; the zero value is an unknown
// format.
type format = diskimage.Format

// Values of the plan's keys backend and served_by.
const (
	backendHdiutil  = "hdiutil"
	backendDiskutil = "diskutil"
	auto            = "auto"
	kernel          = "kernel"
	helper          = "helper"
)

// capabilities are the features of the tools, as their answers and help texts
// name them.
type capabilities struct {
	present     map[string]bool            // by backend: the tool answers
	formats     map[string]map[string]bool // by backend and format: the tool makes it, empty or by converting
	filesystems map[string]bool            // by the names of plans: hdiutil makes it, diskutil where it is alone
	missing     map[string]string          // by the names of plans: what to install for a file system
	noFUSE      string                     // what helps where images cannot be served by FUSE
	encrypts    bool
	diskutilFS  bool // `diskutil image create` has --fs: that of macOS 15 makes only APFS
	noSpotlight bool // `hdiutil create` has -nospotlight
}

// newCapabilities are those of no tool.
func newCapabilities() capabilities {
	return capabilities{
		present: map[string]bool{}, filesystems: map[string]bool{}, missing: map[string]string{},
		formats: map[string]map[string]bool{backendHdiutil: {}, backendDiskutil: {}},
	}
}

// makes reports whether a tool makes images with a file system. diskutil always
// offers "none": the file system of a converted image comes with its content.
func (can capabilities) makes(backend string, f filesystem) bool {
	if backend == backendHdiutil {
		return can.filesystems[f.name]
	}
	offered := f.diskutil != "" && (can.diskutilFS || f.name == "APFS" || f.name == none)
	return offered && (can.filesystems[f.name] || !can.present[backendHdiutil])
}

// Ideal returns engines with the newest tools of each vendor on a machine with
// everything installed, Apple's last. They answer Supports and Allows and can
// do no more.
func Ideal() (out []*Engine) {
	for _, vendor := range []string{vendorOwn, vendorApple} {
		can := newCapabilities()
		can.encrypts, can.diskutilFS = true, true
		can.present[backendHdiutil], can.present[backendDiskutil] = true, true
		for _, f := range diskimage.Formats {
			can.formats[backendHdiutil][f.Name] = f.CreateType != "" || f.ReadOnly
			can.formats[backendDiskutil][f.Name] = f.ImageType != ""
		}
		for _, f := range filesystems {
			everywhere := slices.Contains([]string{"exFAT", "FAT32", none}, f.name)
			can.filesystems[f.name] = everywhere || f.apple == (vendor == vendorApple)
		}
		out = append(out, &Engine{o: Options{Vendor: vendor}, can: can})
	}
	return out
}

// probe asks the tools. In a help text that is plainly a list, what is missing
// is not supported. Any other text proves little: then the manual pages decide.
func (e *Engine) probe(ctx context.Context) error {
	e.can = newCapabilities()
	err := errors.Join(e.probeHdiutil(ctx), e.probeDiskutil(ctx))
	if ctx.Err() == nil && !e.can.present[backendHdiutil] && !e.can.present[backendDiskutil] {
		return fmt.Errorf("asking the disk image tools: %w", err)
	}
	return ctx.Err()
}

// probeHdiutil asks hdiutil for its vendor, its version and its features. If its
// list of images cannot be read, it counts as missing.
func (e *Engine) probeHdiutil(ctx context.Context) error {
	var info command.Info
	c := call{doing: "asking", object: "hdiutil info", cmd: command.New("hdiutil info", command.Args{}),
		check: func(out []byte) (err error) {
			info, err = command.ParseInfo(out)
			return err
		}}
	if err := e.run(ctx, &engine.Report{}, c); err != nil {
		return err
	}
	e.can.present[backendHdiutil] = true
	e.o.Vendor = cmp.Or(e.o.Vendor, info.Vendor)
	version := cmp.Or(info.Framework, info.Revision)
	if e.isApple() {
		version = strings.TrimSpace(e.o.System + " (DiskImages " + version + ")")
	}
	e.o.Version = cmp.Or(e.o.Version, version)
	create, _, _ := e.help(ctx, "hdiutil create")
	convert, _, _ := e.help(ctx, "hdiutil convert")
	e.readFormats(create, convert)
	e.readFilesystems(create)
	e.can.encrypts = e.isApple() || len(command.FindNames(create, []string{"AES-256"})) > 0
	e.can.noSpotlight = strings.Contains(create, "-nospotlight") || strings.Contains(create, "-[no]spotlight")
	return nil
}

// help is a help text and whether its status was 0: tools print it to either
// output, and with any status. The error is that of a tool that did not answer.
func (e *Engine) help(ctx context.Context, line string) (text string, ok bool, err error) {
	r, err := e.runOnce(ctx, call{doing: "asking", object: line, cmd: command.Help(line)})
	if c := classOf(err); c != Missing && c != Deadline {
		err = nil
	}
	return string(r.Stdout) + "\n" + string(r.Stderr), r.Status == 0, err
}

// findListed finds the names in the part of a help text about an option, or in
// all of it if the part has none. The result tests whether a name is listed; if
// none is, it is otherwise.
func findListed(help, option string, names []string, otherwise bool) func(name string) bool {
	found := command.FindNames(command.FindSection(help, option), names)
	if len(found) == 0 {
		found = command.FindNames(help, names)
	}
	return func(name string) bool {
		return slices.Contains(found, name) || name != "" && len(found) == 0 && otherwise
	}
}

// readFormats looks for formats in the help of `hdiutil create` and `hdiutil
// convert`. Apple's makes all of them where the help lists none.
func (e *Engine) readFormats(create, convert string) {
	var types []string
	for _, f := range diskimage.Formats {
		if f.CreateType != "" && !f.ReadOnly {
			types = append(types, f.CreateType)
		}
	}
	hasType := findListed(create, "-type", types, true)
	hasFormat := findListed(convert, "-format", diskimage.FormatNames(nil), e.isApple())
	for _, f := range diskimage.Formats {
		e.can.formats[backendHdiutil][f.Name] = f.ReadOnly && hasFormat(f.Name) || !f.ReadOnly && hasType(f.CreateType)
	}
}

// readFilesystems looks for file systems in the help of `hdiutil create`.
// Apple's makes all of its own where the help lists none.
func (e *Engine) readFilesystems(help string) {
	var names []string
	for _, f := range filesystems {
		if f.hdiutil != "" {
			names = append(names, f.hdiutil)
		}
	}
	isListed, own := findListed(help, "-fs", names, e.isApple()), !e.isApple()
	for _, f := range filesystems {
		made := f.name == none || isListed(f.hdiutil) && (own || f.apple)
		if own && e.host.MissingFor != nil {
			e.can.missing[f.name] = e.host.MissingFor(f.name)
			made = made && e.can.missing[f.name] == ""
		}
		e.can.filesystems[f.name] = made
	}
	if own && e.host.MissingForFUSE != nil {
		e.can.noFUSE = e.host.MissingForFUSE()
	}
}

// withDiskutilFS is the macOS from which diskutil(8) has --fs.
const withDiskutilFS = 26

// macOS is the major version in the system's name; without one the newest is
// assumed.
func (e *Engine) macOS() int {
	var major int
	if _, err := fmt.Sscanf(e.o.System, "macOS %d", &major); err != nil {
		return math.MaxInt
	}
	return major
}

// probeDiskutil looks for formats in the help of `diskutil image create`. If it
// succeeded without naming any, it takes those of the manual page: the command
// that makes an image decides. An old diskutil does not recognize the verb.
func (e *Engine) probeDiskutil(ctx context.Context) error {
	if len(e.o.Diskutil) == 0 {
		return nil
	}
	formats := e.can.formats[backendDiskutil]
	for _, readOnly := range []bool{false, true} {
		line := "diskutil image create blank"
		if readOnly {
			line = "diskutil image create from"
		}
		help, ok, err := e.help(ctx, line)
		if err == nil && strings.Contains(help, "did not recognize") {
			err = fmt.Errorf("asking diskutil: it has no verb image")
		}
		if err != nil {
			return err
		}
		var types []string
		for _, f := range diskimage.Formats {
			if f.ReadOnly == readOnly && f.ImageType != "" {
				types = append(types, f.ImageType)
			}
		}
		listed := command.FindNames(help, types)
		isUnlisted := ok && len(listed) == 0
		for _, name := range types {
			f, _ := diskimage.FormatNamed(name)
			formats[f.Name] = slices.Contains(listed, name) || isUnlisted && e.macOS() >= f.MacOS
		}
		if !readOnly {
			e.can.diskutilFS = strings.Contains(help, "-fs") || isUnlisted && e.macOS() >= withDiskutilFS
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(formats)), true) {
		return fmt.Errorf("asking diskutil: its help names no format")
	}
	e.can.present[backendDiskutil] = true
	if !e.can.present[backendHdiutil] {
		e.can.encrypts = true
		for _, name := range []string{"APFS", "exFAT", "FAT32", none} {
			e.can.filesystems[name] = true
		}
	}
	return nil
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
	return e.chooseFormat(s)
}

// chooseFormat is choose also for formats that are made by converting.
func (e *Engine) chooseFormat(s engine.Spec) (c choice, err error) {
	f, ok := diskimage.FormatNamed(s.Format)
	if !ok {
		return c, e.refuse(backendHdiutil, "format "+s.Format,
			"use "+strings.Join(diskimage.FormatNames(nil), ", "))
	}
	backends := []string{backendHdiutil, backendDiskutil}
	switch {
	case s.Backend != "" && s.Backend != auto:
		backends = []string{s.Backend}
	case f.CreateType == "" && !f.ReadOnly:
		backends = []string{backendDiskutil}
	}
	for _, b := range backends {
		found, refused := e.chooseBackend(b, s, f)
		if refused == nil {
			return found, nil
		}
		err = cmp.Or(err, refused)
	}
	return c, err
}

// chooseBackend is what one backend would make of the spec.
func (e *Engine) chooseBackend(backend string, s engine.Spec, f format) (c choice, err error) {
	for _, r := range e.refusals(backend, s, f) {
		if r.applies {
			return c, e.refuse(backend, r.what, r.hint)
		}
	}
	unit := int64(command.Sector)
	if backend == backendDiskutil {
		unit = command.DiskutilUnit
	}
	c = choice{backend: backend, format: f, size: units.RoundUp(s.Size, unit)}
	c.fs, err = e.chooseFilesystem(backend, s.Filesystems)
	return c, err
}

// refusal is a reason why a backend cannot make an image, with what helps.
type refusal struct {
	applies    bool
	what, hint string
}

// refusals are the reasons why a backend cannot make images of a format, or
// attach them as requested: by the kernel alone, through a helper process, or
// as the tool does it.
func (e *Engine) refusals(backend string, s engine.Spec, f format) []refusal {
	byDiskutil, encrypted, by := backend == backendDiskutil, s.Encrypted(), s.ServedBy
	raw := f.Name == diskimage.UDRW && !encrypted
	kernelServes, served := raw, "plain UDRW"
	if e.isApple() {
		kernelServes, served = !f.Folder, "UDRW, UDRO, UDZO, ULFO and UDSP"
	}
	makers := "the help of this tool does not name it: use another format or a newer tool, or --engine inprocess"
	switch {
	case f.CreateType == "" && !f.ReadOnly && !byDiskutil:
		makers = "backend = \"diskutil\" or \"auto\""
	case f.MacOS > 0:
		makers = fmt.Sprintf("macOS %d or later makes it", f.MacOS)
	}
	cipher := "encryption " + s.Encryption
	return []refusal{
		{!e.can.present[backend], "backend " + backend, "this machine has no such tool, or an old one"},
		{!e.can.formats[backend][f.Name], "format " + f.Name, makers},
		{encrypted && !slices.Contains(diskimage.Encryptions, s.Encryption), cipher, "AES-128 or AES-256"},
		{encrypted && !f.Encrypted && !e.isApple(), "encryption of " + f.Name + " images",
			"the layout of such images is not published: use UDSB, or Apple's diskutil on a Mac"},
		{encrypted && !e.can.encrypts, cipher,
			"the help of this tool does not name AES-256: use a newer one, or --engine inprocess"},
		{encrypted && byDiskutil && s.Encryption != "AES-256", cipher, "AES-256, or backend = \"hdiutil\""},
		{byDiskutil && f.Folder && s.BandSize != 0, "a band size of one's own", "backend = \"hdiutil\""},
		{e.can.noFUSE != "" && (!raw || by == helper), "attaching through a helper process here", e.can.noFUSE},
		{byDiskutil && by != "" && by != auto, "choosing what serves an image",
			"backend = \"hdiutil\", or served_by = \"auto\""},
		{by == kernel && !kernelServes, "attaching this image without a helper process",
			"served_by = \"helper\"; the kernel alone serves " + served},
	}
}

// chooseFilesystem is the first file system of the preference that the backend
// can make; without a preference the first of APFS, ext4 and exFAT.
func (e *Engine) chooseFilesystem(backend string, preference []string) (filesystem, error) {
	if len(preference) == 0 {
		preference = []string{"APFS", "ext4", "exFAT"}
	}
	var names []string
	for _, f := range filesystems {
		if e.can.makes(backend, f) {
			names = append(names, f.name)
		}
	}
	hint := "it makes " + strings.Join(names, ", ")
	for _, name := range preference {
		f := filesystemNamed(name)
		if slices.Contains(names, f.name) {
			return f, nil
		}
		if e.can.missing[f.name] != "" {
			hint += "; for " + f.name + ": " + e.can.missing[f.name]
		}
	}
	return filesystem{}, e.refuse(backend, "file system "+strings.Join(preference, ", "), hint)
}

// refuse is the error for something that a backend cannot do, with a hint.
func (e *Engine) refuse(backend, what, hint string) error {
	return &engine.UnsupportedError{Engine: e.title(backend), What: what, Hint: hint}
}

// Allows refuses what the tools cannot do to an image of the spec.
func (e *Engine) Allows(s engine.Spec, a engine.Action) error {
	c, err := e.chooseFormat(s)
	if err != nil {
		return err
	}
	return e.allows(c, a)
}

// allows is Allows for an image that is chosen.
func (e *Engine) allows(c choice, a engine.Action) error {
	f, repairable := c.format, diskimage.FilesystemNamed(c.fs.name).RepairableSize
	switch {
	case a.Do == "compact" && (!f.Grows() || f.CreateType == ""):
		return e.refuse(c.backend, "compacting "+f.Name, "use UDSB or UDSP, or let attaching trim the image")
	case a.Do == "compact" && !e.can.present[backendHdiutil]:
		return e.refuse(c.backend, "compacting", "only hdiutil compacts")
	case a.Do == "resize" && f.ReadOnly:
		return e.refuse(c.backend, "resizing "+f.Name, "convert it to UDRW first")
	case a.Do == "resize" && c.backend == backendHdiutil && !e.resizesByHdiutil(c.fs) &&
		!(c.fs.isType("apfs") && e.can.present[backendDiskutil]):
		return e.refuse(c.backend, "resizing "+c.fs.name, "use APFS with diskutil, or HFS+")
	case a.Do == "convert":
		_, err := e.chooseTarget(c, a.To)
		return err
	case a.Do == "damage" && !engine.CanDamage(f, a.Kind):
		return e.refuse(c.backend, "damage "+a.Kind+" of "+f.Name, engine.DamageHint)
	case a.Do == "damage" && a.Kind == "volume" && !f.ReadOnly && c.size < repairable:
		return e.refuse(c.backend, fmt.Sprintf("damage volume of %s below %s", c.fs.name, units.Bytes(repairable)),
			"make the image larger: a smaller volume has no copy of its first blocks and cannot be repaired")
	case a.Do == "stream" && a.Kind == workload.CodecLZFSE && !e.isApple():
		return e.refuse(c.backend, "codec "+a.Kind+", which takes macOS", "use zstd, s2 or gzip")
	}
	return nil
}

// resizesByHdiutil reports whether hdiutil resizes images with this file
// system.
func (e *Engine) resizesByHdiutil(f filesystem) bool {
	return !e.isApple() || f.name == none || f.isType("hfs")
}

// chooseTarget chooses the tool of a conversion. The file system comes with the
// content, whether or not the tool could make it. hdiutil cannot read ASIF.
func (e *Engine) chooseTarget(from choice, s engine.Spec) (choice, error) {
	f, _ := diskimage.FormatNamed(s.Format)
	s.Filesystems = []string{none}
	switch isASIF := from.format.Name == diskimage.ASIF || f.Name == diskimage.ASIF; {
	case isASIF && s.Backend == backendHdiutil:
		return choice{}, e.refuse(backendHdiutil, "converting ASIF", "backend = \"auto\"")
	case isASIF:
		s.Backend = backendDiskutil
	case (s.Backend == "" || s.Backend == auto) && e.can.formats[from.backend][f.Name]:
		s.Backend = from.backend
	}
	to, err := e.chooseFormat(s)
	to.fs, to.size = from.fs, from.size
	return to, err
}
