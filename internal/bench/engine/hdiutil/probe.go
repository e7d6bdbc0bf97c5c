package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	diskimage "dmgbench/internal/image"
)

// probe asks the tools. In a help text that is plainly a list, what is missing
// is not supported. Any other text proves little: then the manual pages decide.
func (e *Engine) probe(ctx context.Context) error {
	e.can = newCapabilities()
	errHdiutil := e.probeHdiutil(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	errDiskutil := e.probeDiskutil(ctx)
	if !e.can.present[backendHdiutil] && !e.can.present[backendDiskutil] {
		return fmt.Errorf("asking the disk image tools: %w", errors.Join(errHdiutil, errDiskutil))
	}
	return ctx.Err()
}

// probeHdiutil asks hdiutil for its vendor, its version and its features. If its
// list of images cannot be read, it counts as missing.
func (e *Engine) probeHdiutil(ctx context.Context) error {
	var vendor, version string
	c := call{doing: "asking", object: "hdiutil info", cmd: command.New("hdiutil info", command.Args{}),
		check: func(out []byte) (err error) {
			_, vendor, version, err = command.ParseInfo(out)
			return err
		}}
	if err := e.run(ctx, &engine.Report{}, c); err != nil {
		return err
	}
	e.can.present[backendHdiutil] = true
	if e.o.Vendor == "" {
		e.o.Vendor = vendor
	}
	switch {
	case e.o.Version != "":
	case e.isApple():
		e.o.Version = strings.TrimSpace(e.o.System + " (DiskImages " + version + ")")
	default:
		e.o.Version = version
	}
	create, _, _ := e.help(ctx, "hdiutil create")
	convert, _, _ := e.help(ctx, "hdiutil convert")
	e.readHelp(create, convert)
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

// findListed are the names in the part of a help text about an option, or in all
// of it if the part has none.
func findListed(help, option string, names []string) []string {
	if found := command.FindNames(command.FindSection(help, option), names); len(found) > 0 {
		return found
	}
	return command.FindNames(help, names)
}

// readHelp looks for formats in the help of `hdiutil create` and `hdiutil
// convert`. Apple's makes all of them where the help lists none.
func (e *Engine) readHelp(create, convert string) {
	var types []string
	for _, f := range diskimage.Formats {
		if f.CreateType != "" && !f.ReadOnly {
			types = append(types, f.CreateType)
		}
	}
	types = command.FindNames(command.FindSection(create, "-type"), types)
	made := findListed(convert, "-format", diskimage.FormatNames(nil))
	for _, f := range diskimage.Formats {
		listed, all := slices.Contains(types, f.CreateType), len(types) == 0 && f.CreateType != ""
		if f.ReadOnly {
			listed, all = slices.Contains(made, f.Name), len(made) == 0 && e.isApple()
		}
		e.can.formats[backendHdiutil][f.Name] = listed || all
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
	listed := findListed(help, "-fs", names)
	for _, f := range filesystems {
		made := slices.Contains(listed, f.hdiutil) || f.name == none || len(listed) == 0 && f.apple && e.isApple()
		if !e.isApple() && e.host.MissingFor != nil {
			e.can.missing[f.name] = e.host.MissingFor(f.name)
			made = made && e.can.missing[f.name] == ""
		}
		e.can.filesystems[f.name] = made
	}
	if !e.isApple() && e.host.MissingForFUSE != nil {
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

// probeDiskutil looks for formats in the help of `diskutil image create`. An
// old diskutil does not recognize the verb.
func (e *Engine) probeDiskutil(ctx context.Context) error {
	if len(e.o.Diskutil) == 0 {
		return nil
	}
	for _, line := range []string{"diskutil image create blank", "diskutil image create from"} {
		help, ok, err := e.help(ctx, line)
		readOnly := strings.HasSuffix(line, "from")
		switch {
		case err != nil && !readOnly:
			return err
		case strings.Contains(help, "did not recognize"):
			return fmt.Errorf("asking diskutil: it has no verb image")
		}
		listed := e.readDiskutilHelp(help, ok, readOnly)
		if !readOnly {
			e.can.diskutilFS = strings.Contains(help, "-fs") || ok && !listed && e.macOS() >= withDiskutilFS
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(e.can.formats[backendDiskutil])), true) {
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

// readDiskutilHelp looks for formats, read-only ones or others, in a help text
// of `diskutil image create`, and reports whether it names any. If it succeeded
// without naming any, it takes those of the manual page: the command that makes
// an image decides.
func (e *Engine) readDiskutilHelp(help string, ok, readOnly bool) (listed bool) {
	formats := e.can.formats[backendDiskutil]
	for _, f := range diskimage.Formats {
		if f.ReadOnly == readOnly && f.ImageType != "" && len(command.FindNames(help, []string{f.ImageType})) > 0 {
			formats[f.Name], listed = true, true
		}
	}
	for _, f := range diskimage.Formats {
		if f.ReadOnly == readOnly && f.ImageType != "" && ok && !listed {
			formats[f.Name] = e.macOS() >= f.MacOS
		}
	}
	return listed
}
