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

// capabilities are the features of the tools.
type capabilities struct {
	present     map[string]bool            // by backend: the tool answers
	formats     map[string]map[string]bool // by backend and format: the tool makes it, empty or by converting
	filesystems map[string]bool            // by the names of plans: hdiutil makes it
	missing     map[string]string          // by the names of plans: what to install for a file system
	noFUSE      string                     // what helps where images cannot be served by FUSE
	diskutilFS  bool                       // `diskutil image create` has --fs: that of macOS 15 makes only APFS
	noSpotlight bool                       // `hdiutil create` has -nospotlight
}

// newestTools are the features of Apple's newest tools, or of those of
// dmgbench, on a machine with everything installed.
func newestTools(apple bool) capabilities {
	can := capabilities{
		present: map[string]bool{backendHdiutil: true, backendDiskutil: true}, diskutilFS: true,
		formats:     map[string]map[string]bool{backendHdiutil: {}, backendDiskutil: {}},
		filesystems: map[string]bool{}, missing: map[string]string{},
	}
	for _, f := range diskimage.Formats {
		can.formats[backendHdiutil][f.Name] = f.CreateType != "" || f.ReadOnly
		can.formats[backendDiskutil][f.Name] = f.ImageType != ""
	}
	for _, f := range filesystems {
		can.filesystems[f.name] = apple && f.apple || !apple && f.linux
	}
	return can
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
func Ideal() []*Engine {
	return []*Engine{
		{o: Options{Vendor: vendorOwn}, can: newestTools(false)},
		{o: Options{Vendor: vendorApple}, can: newestTools(true)},
	}
}

// probe asks hdiutil for its vendor and its version, then Apple's tools for
// their features. Those of dmgbench's own are the newest, as far as this machine
// has what they need.
func (e *Engine) probe(ctx context.Context) error {
	var info command.Info
	err := e.run(ctx, &engine.Report{}, call{doing: "asking", object: "hdiutil info",
		cmd: command.New("hdiutil info", command.Args{}), check: func(out []byte) (err error) {
			info, err = command.ParseInfo(out)
			return err
		}})
	e.o.Vendor = cmp.Or(e.o.Vendor, info.Vendor)
	version := info.Framework
	if e.isApple() && version != "" {
		version = strings.TrimSpace(e.o.System + " (DiskImages " + version + ")")
	}
	e.o.Version = cmp.Or(e.o.Version, version)
	e.can = newestTools(e.isApple())
	e.can.present[backendHdiutil], e.can.present[backendDiskutil] = err == nil, err == nil
	switch {
	case e.isApple():
		if err == nil {
			e.readHdiutilHelp(ctx)
		}
		noDiskutil := e.readDiskutilHelp(ctx)
		e.can.present[backendDiskutil] = noDiskutil == nil
		err = errors.Join(err, noDiskutil)
	case e.host.MissingFor != nil:
		e.can.noFUSE = e.host.MissingForFUSE()
		for name, made := range e.can.filesystems {
			e.can.missing[name] = e.host.MissingFor(name)
			e.can.filesystems[name] = made && e.can.missing[name] == ""
		}
	}
	if ctx.Err() == nil && !e.can.present[backendHdiutil] && !e.can.present[backendDiskutil] {
		return fmt.Errorf("asking the disk image tools: %w", err)
	}
	return ctx.Err()
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

// keepListed removes from can what a help text does not list. names are what the
// text calls it, by the keys of can. A text that lists none of them proves
// nothing: then it reports false and removes nothing.
func keepListed(can map[string]bool, help string, names map[string]string) bool {
	listed := command.FindNames(help, slices.Collect(maps.Values(names)))
	for key, name := range names {
		can[key] = can[key] && (len(listed) == 0 || slices.Contains(listed, name))
	}
	return len(listed) > 0
}

// readHdiutilHelp looks for formats and file systems in the help of `hdiutil
// create` and `hdiutil convert`.
func (e *Engine) readHdiutilHelp(ctx context.Context) {
	create, _, _ := e.help(ctx, "hdiutil create")
	convert, _, _ := e.help(ctx, "hdiutil convert")
	types, converted, names := map[string]string{}, map[string]string{}, map[string]string{}
	for _, f := range diskimage.Formats {
		if f.ReadOnly {
			converted[f.Name] = f.Name
		} else if f.CreateType != "" {
			types[f.Name] = f.CreateType
		}
	}
	for _, f := range filesystems {
		if f.apple && f.hdiutil != "" {
			names[f.name] = f.hdiutil
		}
	}
	keepListed(e.can.formats[backendHdiutil], create, types)
	keepListed(e.can.formats[backendHdiutil], convert, converted)
	keepListed(e.can.filesystems, create, names)
	e.can.noSpotlight = strings.Contains(create, "-nospotlight") || strings.Contains(create, "-[no]spotlight")
}

// withDiskutilFS is the macOS from which diskutil(8) has --fs.
const withDiskutilFS = 26

// readDiskutilHelp looks for formats in the help of `diskutil image create`. If
// it succeeded without naming any, those of the manual page count: the command
// that makes an image decides. An old diskutil does not recognize the verb.
func (e *Engine) readDiskutilHelp(ctx context.Context) error {
	macOS := math.MaxInt // without a version the newest is assumed
	_, _ = fmt.Sscanf(e.o.System, "macOS %d", &macOS)
	formats := e.can.formats[backendDiskutil]
	for _, line := range []string{"diskutil image create blank", "diskutil image create from"} {
		isBlank := strings.HasSuffix(line, "blank")
		help, ok, err := e.help(ctx, line)
		if err == nil && strings.Contains(help, "did not recognize") {
			err = errors.New("asking diskutil: it has no verb image")
		}
		if err != nil {
			return err
		}
		types := map[string]string{}
		for _, f := range diskimage.Formats {
			if f.ReadOnly != isBlank && f.ImageType != "" {
				types[f.Name] = f.ImageType
			}
		}
		isListed := keepListed(formats, help, types)
		for name := range types {
			f, _ := diskimage.FormatNamed(name)
			formats[name] = formats[name] && (isListed || ok && macOS >= f.MacOS)
		}
		if isBlank {
			e.can.diskutilFS = strings.Contains(help, "-fs") || ok && !isListed && macOS >= withDiskutilFS
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(formats)), true) {
		return errors.New("asking diskutil: its help names no format")
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
	for _, backend := range backends {
		list := e.refusals(backend, s, f)
		if i := slices.IndexFunc(list, func(r refusal) bool { return r.applies }); i >= 0 {
			err = cmp.Or(err, e.refuse(backend, list[i].what, list[i].hint))
			continue
		}
		unit := int64(command.Sector)
		if backend == backendDiskutil {
			unit = command.DiskutilUnit
		}
		fs, refused := e.chooseFilesystem(backend, s.Filesystems)
		if refused == nil {
			return choice{backend, f, fs, units.RoundUp(s.Size, unit)}, nil
		}
		err = cmp.Or(err, refused)
	}
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
	switch {
	case err != nil:
		return err
	case a.Do == "damage" && a.Kind == engine.Killed && (s.ServedBy == kernel || e.can.noFUSE != ""):
		return e.refuse(c.backend, "killing what serves an image without a process of its own",
			cmp.Or(e.can.noFUSE, "served_by = \"helper\""))
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
	case a.Do == "convert":
		_, err := e.chooseTarget(c, a.To)
		return err
	case a.Do == "damage" && !engine.CanDamage(f, a.Kind, a.Band):
		return e.refuse(c.backend, "damage "+a.Kind+" of "+f.Name, engine.DamageHint)
	case a.Do == "damage" && a.Kind == "volume" && !f.ReadOnly && c.size < repairable:
		return e.refuse(c.backend, fmt.Sprintf("damage volume of %s below %s", c.fs.name, units.Bytes(repairable)),
			"make the image larger: a smaller volume has no copy of its first blocks and cannot be repaired")
	case a.Do == "stream" && a.Kind == workload.CodecLZFSE && !e.isApple():
		return e.refuse(c.backend, "codec "+a.Kind+", which takes macOS", "use zstd, s2 or gzip")
	}
	return nil
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
