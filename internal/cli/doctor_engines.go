package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/attach"
	"dmgbench/internal/engine"
	"dmgbench/internal/host"
	"dmgbench/internal/image"
	"dmgbench/internal/plan"
	"dmgbench/internal/runner"
	"dmgbench/plans"
)

// Engines probes every engine. The first one that works is the one that
// --engine auto uses.
func (d *doctor) Engines() (facts []fact) {
	var errs []error
	state, err := d.stateDir()
	if err != nil {
		d.err = err
		return nil
	}
	for _, choice := range engineChoices {
		e, title, err := d.makeEngine(d.ctx, choice, engineConfig{state: state, auto: true})
		switch {
		case err != nil:
			errs = append(errs, err)
			facts = append(facts, fact{"engine", title + " is not used: " + err.Error(), hint(err)})
		case d.chosen == nil:
			d.chosen = e
			facts = append(facts, fact{"engine", title + " works, and --engine auto uses it: it " + probed, ""})
		default:
			facts = append(facts, fact{"engine", title + " works", ""})
		}
	}
	if d.chosen == nil {
		d.err = noEngineError(errs)
	}
	return facts
}

// Attaching is what hdiutil for Linux can use: loop devices, FUSE and file
// systems.
func (d *doctor) Attaching() []fact {
	if runtime.GOOS != "linux" {
		return nil
	}
	loops, fuse := "this user cannot use them: they need root and /dev/loop-control", "/dev/fuse can be opened"
	if attach.Loops() {
		loops = "this user can use them"
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil { // opening it mounts no volume
		fuse = "not available: " + err.Error()
	} else {
		f.Close()
	}
	facts := []fact{{"loop devices", loops, ""}, {"FUSE", fuse, ""}, filesystemsFact()}
	if list, err := attach.List(d.ctx); err != nil {
		facts = append(facts, fact{"attached", "unknown: " + err.Error(), ""})
	} else if len(list) > 0 {
		facts = append(facts, fact{"attached", count(len(list), "image") + "; dmgbench hdiutil info lists them", ""})
	}
	return facts
}

// filesystemsFact is which file systems can be made and mounted here, and which
// program, package or driver is missing for the others.
func filesystemsFact() fact {
	var yes, no, packages []string
	for _, f := range attach.Filesystems() {
		mounts := f.MountableByKernel || f.Kernel == "exfat" // exFAT has a FUSE server of ours
		switch {
		case f.Present && mounts:
			yes = append(yes, f.Name)
		case mounts:
			no = append(no, fmt.Sprintf("%s (%s is not installed)", f.Name, f.Tool))
			packages = append(packages, f.Package)
		default:
			no = append(no, fmt.Sprintf("%s (the kernel has no driver %s)", f.Name, f.Kernel))
		}
	}
	return fact{"file systems", withMissing(yes, no), installHint(packages)}
}

// withMissing is "a, b. Not: c".
func withMissing(yes, no []string) string {
	if len(no) == 0 {
		return strings.Join(yes, ", ")
	}
	return strings.Join(yes, ", ") + ". Not: " + strings.Join(no, ", ")
}

// installHint is the command that installs packages, "" for none.
func installHint(packages []string) string {
	if packages = unique(packages); len(packages) == 0 {
		return ""
	}
	return "apt install " + strings.Join(packages, " ") + " (Debian, Ubuntu)"
}

// Measures is what the first engine that works can measure here.
func (d *doctor) Measures() []fact {
	if d.chosen == nil {
		return nil
	}
	facts := []fact{{"measures", "native folders; " + supportedImages(d.chosen), ""}}
	return slices.Concat(facts, d.counters(), d.plans())
}

// supportedImages lists the formats, ciphers and file systems that an engine
// supports, and those that it does not. Ciphers and file systems are tried with
// the first supported format.
func supportedImages(e engine.Engine) string {
	var yes, no []string
	add := func(name string, spec engine.Spec) {
		if e.Supports(spec) == nil {
			yes = append(yes, name)
		} else {
			no = append(no, name)
		}
	}
	for _, f := range image.FormatNames(image.Format.Writable) {
		add(f, engine.Spec{Format: f})
	}
	format := strings.Join(yes[:min(len(yes), 1)], "")
	for _, c := range image.Encryptions[1:] { // the first is "none"
		add(c, engine.Spec{Format: format, Encryption: c})
	}
	for _, fs := range image.FilesystemNames() {
		add(fs, engine.Spec{Format: format, Filesystems: []string{fs}})
	}
	return withMissing(yes, no)
}

// counters are the figures of the system that a run can record in addition to
// its own.
func (d *doctor) counters() []fact {
	disk := "can read the number of bytes that the disk transferred, which shows cached reads"
	if _, _, err := host.DeviceBytes(existing(".")); err != nil {
		disk = "cannot read the number of bytes that the disk transferred: " + err.Error()
	}
	apfs := "none: only macOS logs trims of APFS"
	if log, ok := d.chosen.(interface{ ReadsLog(context.Context) error }); ok {
		apfs = "can read the trims of APFS at each attach"
		limited, cancel := context.WithTimeout(d.ctx, 20*time.Second)
		defer cancel()
		if err := log.ReadsLog(limited); err != nil {
			apfs = "cannot read the trims of APFS: " + err.Error()
		}
	}
	return []fact{{"disk counters", disk, ""}, {"APFS log", apfs, ""}}
}

// plans groups the built-in plans by how many of their cases the engine
// supports. Native baselines, which every engine measures, are not counted.
func (d *doctor) plans() (facts []fact) {
	groups := map[string][]string{}
	for _, name := range plans.Names() {
		p, _, err := loadPlan(name)
		if err != nil {
			d.err = err
			return nil
		}
		cases := slices.DeleteFunc(p.Cases(), func(c plan.Case) bool { return c.Baseline })
		switch unsupported := len(runner.UnsupportedCases(p, d.chosen)); unsupported {
		case 0:
			groups["plans in full"] = append(groups["plans in full"], name)
		case len(cases):
			groups["plans not"] = append(groups["plans not"], name)
		default:
			part := fmt.Sprintf("%s (%d of %d)", name, len(cases)-unsupported, len(cases))
			groups["plans in part"] = append(groups["plans in part"], part)
		}
	}
	for _, group := range []string{"plans in full", "plans in part", "plans not"} {
		if len(groups[group]) > 0 {
			facts = append(facts, fact{group, strings.Join(groups[group], ", "), ""})
		}
	}
	return facts
}

// imageTools are the programs that open or check images which --keep left: the
// operating system, the names of which one is enough, what it does, and its
// Debian package.
var imageTools = [][4]string{
	{"linux", "7zz 7z", "lists and unpacks images", "7zip"},
	{"linux", "mount", "mounts images (as root)", "mount"},
	{"linux", "losetup", "attaches images for checks (as root)", "mount"},
	{"linux", "fsck.exfat", "checks the volume", "exfatprogs"},
	{"linux", "mount.exfat-fuse mount.exfat", "mounts exFAT where the kernel cannot", "exfat-fuse"},
	{"linux", "fusermount3 fusermount", "mounts without root", "fuse3"},
	{"darwin", "hdiutil", "attaches images", ""},
	{"darwin", "diskutil", "checks volumes", ""},
}

// Tools are the programs that open and check images, and the packages of those
// that are missing.
func (d *doctor) Tools() (facts []fact) {
	var missing, packages []string
	for _, tool := range imageTools {
		if tool[0] != runtime.GOOS {
			continue
		}
		names := strings.Fields(tool[1])
		if at := findProgram(d.env["PATH"], names); at != "" {
			facts = append(facts, fact{"tool", at + ": " + tool[2], ""})
			continue
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", names[0], tool[2]))
		packages = append(packages, nonempty(tool[3])...)
	}
	if len(missing) > 0 {
		hint := strings.TrimPrefix(installHint(packages)+"; measuring needs none of them", "; ")
		facts = append(facts, fact{"tools missing", strings.Join(missing, ", "), hint})
	}
	return facts
}

// findProgram searches path, and the folders of programs for root, which the
// paths of users lack; "" if not found.
func findProgram(path string, names []string) string {
	for _, name := range names {
		for _, dir := range append(filepath.SplitList(path), "/usr/local/sbin", "/usr/sbin", "/sbin") {
			at := filepath.Join(dir, name)
			if fi, err := os.Stat(at); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
				return at
			}
		}
	}
	return ""
}
