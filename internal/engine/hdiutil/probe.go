package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
)

// abilities are what the tools said they can do.
type abilities struct {
	hdiutil, diskutil bool              // the tool answers
	makes             map[string]bool   // formats that `hdiutil create` and convert make
	images            map[string]bool   // formats that `diskutil image create` makes
	filesystems       map[string]bool   // by the names of plans
	lacks             map[string]string // by the names of plans: what a file system that is not there would take
	noFUSE            string            // what would help where images cannot be served
	encrypts          bool
	chooses           bool // `diskutil image create` knows --fs: that of macOS 15 makes APFS alone
	noSpotlight       bool // `hdiutil create` knows -nospotlight
}

// probe asks the tools. Help texts are free text: what is not found in one that
// is plainly a list counts as not there; a text that is no list proves nothing,
// and then what Apple's manual says is assumed.
func (e *Engine) probe(ctx context.Context) error {
	e.can = abilities{makes: map[string]bool{}, images: map[string]bool{}, filesystems: map[string]bool{}, lacks: map[string]string{}}
	hd := e.probeHdiutil(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	du := e.probeDiskutil(ctx)
	if !e.can.hdiutil && !e.can.diskutil {
		return fmt.Errorf("asking the disk image tools: %w", errors.Join(hd, du))
	}
	return ctx.Err()
}

func (e *Engine) probeHdiutil(ctx context.Context) error {
	var t tale
	r, err := e.d.run(ctx, &t, call{doing: "asking", object: "hdiutil info", build: argv.Info{}, check: func(r proc.Result) error {
		_, _, err := parse.Info(r.Stdout)
		return err
	}})
	if err != nil {
		return err
	}
	e.can.hdiutil = true
	vendor, version, _ := parse.Vendor(r.Stdout)
	if e.o.Vendor == "" {
		e.o.Vendor = vendor
	}
	if e.o.Version == "" {
		e.o.Version = strings.TrimSpace(e.o.System + " (DiskImages " + version + ")")
		if e.o.Vendor == "dmgbench" {
			e.o.Version = version
		}
	}
	e.readCreateHelp(e.help(ctx, argv.Help{Verb: "create"}))
	e.readConvertHelp(e.help(ctx, argv.Help{Verb: "convert"}))
	return nil
}

// help is a help text, wherever and with whatever status the tool prints it.
func (e *Engine) help(ctx context.Context, b builder) string {
	r, _, _ := e.d.once(ctx, call{doing: "asking", object: "help", build: b})
	return string(r.Stdout) + "\n" + string(r.Stderr)
}

func (e *Engine) readCreateHelp(help string) {
	apple := e.o.Vendor != "dmgbench"
	types := parse.Names(parse.Section(help, "-type"), []string{"UDIF", "SPARSE", "SPARSEBUNDLE"})
	if len(types) == 0 {
		types = []string{"UDIF", "SPARSE", "SPARSEBUNDLE"}
	}
	for _, k := range kinds {
		for _, t := range types {
			if k.typ == t {
				e.can.makes[k.format] = true
			}
		}
	}
	listed := named(parse.Section(help, "-fs"))
	if len(listed) == 0 {
		listed = named(help)
	}
	for _, f := range filesystems {
		e.can.filesystems[f.name] = len(listed) == 0 && f.apple && apple || f.name == "none"
	}
	for _, name := range listed {
		e.can.filesystems[name] = true
	}
	for _, f := range filesystems {
		if !apple && e.host.Lacks != nil {
			e.can.lacks[f.name] = e.host.Lacks(f.name)
			e.can.filesystems[f.name] = e.can.filesystems[f.name] && e.can.lacks[f.name] == ""
		}
	}
	if !apple && e.host.NoFUSE != nil {
		e.can.noFUSE = e.host.NoFUSE()
	}
	e.can.encrypts = apple || len(parse.Names(help, []string{"AES-256"})) > 0
	e.can.noSpotlight = strings.Contains(help, "-nospotlight") || strings.Contains(help, "-[no]spotlight")
}

// named are the file systems that a text lists.
func named(text string) (list []string) {
	for _, f := range filesystems {
		if f.hd != "" && len(parse.Names(text, []string{f.hd})) > 0 {
			list = append(list, f.name)
		}
	}
	return list
}

func (e *Engine) readConvertHelp(help string) {
	var formats []string
	for f := range kinds {
		formats = append(formats, f)
	}
	listed := parse.Names(parse.Section(help, "-format"), formats)
	if len(listed) == 0 {
		listed = parse.Names(help, formats)
	}
	for f, k := range kinds {
		if k.fixed && len(listed) == 0 {
			e.can.makes[f] = e.o.Vendor != "dmgbench"
		}
	}
	for _, f := range listed {
		if kinds[f].fixed {
			e.can.makes[f] = true
		}
	}
}

// readImageHelp looks for formats, read-only ones or others, in a help text of `diskutil image create`, and says whether it names any.
func (e *Engine) readImageHelp(help string, fixed bool) (named bool) {
	for f, k := range kinds {
		if k.fixed == fixed && k.image != "" && len(parse.Names(help, []string{k.image})) > 0 {
			e.can.images[f], e.can.diskutil, named = true, true, true
		}
	}
	return named
}

// assumeImages takes the formats of the manual page, since the help succeeded and names none: the call that makes an image decides.
func (e *Engine) assumeImages(fixed bool) {
	for f, k := range kinds {
		if k.fixed == fixed && k.image != "" && (f != "ASIF" || e.macOS() >= withASIF) {
			e.can.images[f], e.can.diskutil = true, true
		}
	}
}

// withASIF is the macOS from which diskutil(8) has ASIF and --fs.
const withASIF = 26

// macOS is the major version in the system's name, or that of the newest where the name has none.
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
	r, _, err := e.d.once(ctx, call{doing: "asking", object: "diskutil image", build: argv.HelpDU{Verb: "image create blank"}})
	if classOf(err) == Missing || classOf(err) == Deadline {
		return err
	}
	blank := string(r.Stdout) + "\n" + string(r.Stderr)
	if strings.Contains(blank, "did not recognize") {
		return fmt.Errorf("asking diskutil: it has no verb image")
	}
	e.can.chooses = strings.Contains(blank, "-fs")
	if !e.readImageHelp(blank, false) && r.Status == 0 {
		e.assumeImages(false)
		e.can.chooses = e.macOS() >= withASIF
	}
	r, _, _ = e.d.once(ctx, call{doing: "asking", object: "diskutil image", build: argv.HelpDU{Verb: "image create from"}})
	if !e.readImageHelp(string(r.Stdout)+"\n"+string(r.Stderr), true) && r.Status == 0 {
		e.assumeImages(true)
	}
	if !e.can.diskutil {
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
