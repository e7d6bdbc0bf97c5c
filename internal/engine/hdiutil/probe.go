package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/engine/hdiutil/command"
	diskimage "dmgbench/internal/image"
)

// probe asks the tools. In a help text that is plainly a list, what is missing
// is not supported. Any other text proves little: then the manual pages decide.
func (e *Engine) probe(ctx context.Context) error {
	e.can = capabilities{hdiutilFormats: map[string]bool{}, diskutilFormats: map[string]bool{},
		filesystems: map[string]bool{}, missing: map[string]string{}}
	errHdiutil := e.probeHdiutil(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	errDiskutil := e.probeDiskutil(ctx)
	if !e.can.hdiutil && !e.can.diskutil {
		return fmt.Errorf("asking the disk image tools: %w", errors.Join(errHdiutil, errDiskutil))
	}
	return ctx.Err()
}

func (e *Engine) probeHdiutil(ctx context.Context) error {
	var vendor, version string
	c := call{doing: "asking", object: "hdiutil info", cmd: command.Info(), check: func(out []byte) (err error) {
		vendor, version, err = command.ParseVendor(out)
		return err
	}}
	if _, err := e.d.run(ctx, &reportBuilder{}, c); err != nil {
		return err
	}
	e.can.hdiutil = true
	if e.o.Vendor == "" {
		e.o.Vendor = vendor
	}
	if e.o.Version == "" && e.isApple() {
		version = strings.TrimSpace(e.o.System + " (DiskImages " + version + ")")
	}
	if e.o.Version == "" {
		e.o.Version = version
	}
	e.readCreateHelp(e.help(ctx, "create"))
	e.readConvertHelp(e.help(ctx, "convert"))
	return nil
}

// help is a help text of hdiutil; tools print it to either output, and with any
// status.
func (e *Engine) help(ctx context.Context, verb string) string {
	r, _ := e.d.runOnce(ctx, call{doing: "asking", object: "help", cmd: command.Help(verb)})
	return string(r.Stdout) + "\n" + string(r.Stderr)
}

func (e *Engine) readCreateHelp(help string) {
	all := []string{"UDIF", "SPARSE", "SPARSEBUNDLE"}
	types := command.FindNames(command.FindSection(help, "-type"), all)
	if len(types) == 0 {
		types = all
	}
	for _, f := range diskimage.Formats {
		e.can.hdiutilFormats[f.Name] = e.can.hdiutilFormats[f.Name] || slices.Contains(types, f.CreateType)
	}
	listed := findFilesystems(command.FindSection(help, "-fs"))
	if len(listed) == 0 {
		listed = findFilesystems(help)
	}
	for _, f := range filesystems {
		made := slices.Contains(listed, f.name) || f.name == "none" || len(listed) == 0 && f.apple && e.isApple()
		if !e.isApple() && e.host.MissingFor != nil {
			e.can.missing[f.name] = e.host.MissingFor(f.name)
			made = made && e.can.missing[f.name] == ""
		}
		e.can.filesystems[f.name] = made
	}
	if !e.isApple() && e.host.MissingForFUSE != nil {
		e.can.noFUSE = e.host.MissingForFUSE()
	}
	e.can.encrypts = e.isApple() || len(command.FindNames(help, []string{"AES-256"})) > 0
	e.can.noSpotlight = strings.Contains(help, "-nospotlight") || strings.Contains(help, "-[no]spotlight")
}

// findFilesystems are the file systems that a text names.
func findFilesystems(text string) (list []string) {
	for _, f := range filesystems {
		if f.hdiutil != "" && len(command.FindNames(text, []string{f.hdiutil})) > 0 {
			list = append(list, f.name)
		}
	}
	return list
}

func (e *Engine) readConvertHelp(help string) {
	var names []string
	for _, f := range diskimage.Formats {
		names = append(names, f.Name)
	}
	listed := command.FindNames(command.FindSection(help, "-format"), names)
	if len(listed) == 0 {
		listed = command.FindNames(help, names)
	}
	for _, f := range diskimage.Formats {
		if f.ReadOnly {
			e.can.hdiutilFormats[f.Name] = slices.Contains(listed, f.Name) || len(listed) == 0 && e.isApple()
		}
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

// probeDiskutil looks for formats in the help of `diskutil image create`. An
// old diskutil does not recognize the verb.
func (e *Engine) probeDiskutil(ctx context.Context) error {
	if len(e.o.Diskutil) == 0 {
		return nil
	}
	help, ok, err := e.helpDiskutil(ctx, "image create blank")
	if err != nil {
		return err
	}
	if strings.Contains(help, "did not recognize") {
		return fmt.Errorf("asking diskutil: it has no verb image")
	}
	e.can.diskutilFS = strings.Contains(help, "-fs")
	if !e.readDiskutilHelp(help, false) && ok {
		e.assumeDiskutil(false)
		e.can.diskutilFS = e.macOS() >= withDiskutilFS
	}
	help, ok, _ = e.helpDiskutil(ctx, "image create from")
	if !e.readDiskutilHelp(help, true) && ok {
		e.assumeDiskutil(true)
	}
	if e.can.diskutil = slices.Contains(slices.Collect(maps.Values(e.can.diskutilFormats)), true); !e.can.diskutil {
		return fmt.Errorf("asking diskutil: its help names no format")
	}
	if !e.can.hdiutil {
		e.can.encrypts = true
		for _, name := range []string{"APFS", "exFAT", "FAT32", "none"} {
			e.can.filesystems[name] = true
		}
	}
	return nil
}

// helpDiskutil is a help text of diskutil and whether its status was 0. The
// error is that of a tool that did not answer.
func (e *Engine) helpDiskutil(ctx context.Context, verb string) (help string, ok bool, err error) {
	r, err := e.d.runOnce(ctx, call{doing: "asking", object: "diskutil image", cmd: command.HelpDiskutil(verb)})
	if c := classOf(err); c != Missing && c != Deadline {
		err = nil
	}
	return string(r.Stdout) + "\n" + string(r.Stderr), r.Status == 0, err
}

// readDiskutilHelp looks for formats, read-only ones or others, in a help text
// of `diskutil image create`, and reports whether it names any.
func (e *Engine) readDiskutilHelp(help string, readOnly bool) (found bool) {
	for _, f := range diskimage.Formats {
		if f.ReadOnly == readOnly && f.ImageType != "" && len(command.FindNames(help,
			[]string{f.ImageType})) > 0 {
			e.can.diskutilFormats[f.Name], found = true, true
		}
	}
	return found
}

// assumeDiskutil takes the formats of the manual page, since the help succeeded
// without naming any: the command that makes an image decides.
func (e *Engine) assumeDiskutil(readOnly bool) {
	for _, f := range diskimage.Formats {
		if f.ReadOnly == readOnly && f.ImageType != "" && e.macOS() >= f.MacOS {
			e.can.diskutilFormats[f.Name] = true
		}
	}
}
