package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"dmgbench/internal/attach"
	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
	"dmgbench/internal/image"
	"dmgbench/internal/runner"
	"dmgbench/plans"
)

// doctorEngines probes every engine and prints what the first one that works
// can measure.
func (a *app) doctorEngines(ctx context.Context, t *factTable) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	var chosen engine.Engine
	var errs []error
	for _, choice := range engineChoices {
		e, title, err := a.makeEngine(ctx, choice, engineConfig{state: state, auto: true})
		switch {
		case err != nil:
			errs = append(errs, err)
			t.add("engine", title+" is not used: "+err.Error())
			t.addHint(hint(err))
		case chosen == nil:
			chosen = e
			t.add("engine", title+" works, and --engine auto uses it: it "+probed)
		default:
			t.add("engine", title+" works")
		}
	}
	if runtime.GOOS == "linux" {
		doctorAttaching(ctx, t)
	}
	if chosen == nil {
		return noEngineError(errs)
	}
	t.add("measures", "native folders; "+supportedImages(chosen))
	doctorCounters(ctx, t, chosen)
	return doctorPlans(t, chosen)
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
	return strings.Join(yes, ", ") + ". Not: " + strings.Join(no, ", ")
}

// doctorCounters prints which figures of the system a run can record in
// addition to its own.
func doctorCounters(ctx context.Context, t *factTable, e engine.Engine) {
	if _, _, err := hostio.DeviceBytes(existing(".")); err != nil {
		t.add("disk counters", "cannot read the number of bytes that the disk transferred: "+err.Error())
	} else {
		t.add("disk counters", "can read the number of bytes that the disk transferred, which shows cached reads")
	}
	log, ok := e.(interface{ ReadsLog(context.Context) error })
	if !ok {
		t.add("APFS log", "none: only macOS logs trims of APFS")
		return
	}
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := log.ReadsLog(limited); err != nil {
		t.add("APFS log", "cannot read the trims of APFS: "+err.Error())
		return
	}
	t.add("APFS log", "can read the trims of APFS at each attach")
}

// doctorPlans groups the built-in plans by how many of their cases the engine
// supports. Native baselines, which every engine measures, are not counted.
func doctorPlans(t *factTable, e engine.Engine) error {
	var full, part, none []string
	for _, name := range plans.Names() {
		p, _, err := loadPlan(name)
		if err != nil {
			return err
		}
		// Baselines are native folders, which every engine measures.
		unsupported, all := len(runner.UnsupportedCases(p, e)), 0
		for _, c := range p.Cases() {
			if !c.Baseline {
				all++
			}
		}
		switch unsupported {
		case 0:
			full = append(full, name)
		case all:
			none = append(none, name)
		default:
			part = append(part, fmt.Sprintf("%s (%d of %d)", name, all-unsupported, all))
		}
	}
	for _, group := range []struct {
		name  string
		plans []string
	}{{"plans in full", full}, {"plans in part", part}, {"plans not", none}} {
		if len(group.plans) > 0 {
			t.add(group.name, strings.Join(group.plans, ", "))
		}
	}
	return nil
}

// doctorAttaching prints what hdiutil for Linux can use: loop devices, FUSE and
// file systems.
func doctorAttaching(ctx context.Context, t *factTable) {
	loops := "this user cannot use them: they need root and /dev/loop-control"
	if attach.Loops() {
		loops = "this user can use them"
	}
	t.add("loop devices", loops)
	fuse := "/dev/fuse can be opened" // opening it mounts no volume
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		fuse = "not available: " + err.Error()
	} else {
		f.Close()
	}
	t.add("FUSE", fuse)
	doctorFilesystems(t)
	if list, err := attach.List(ctx); err != nil {
		t.add("attached", "unknown: "+err.Error())
	} else if len(list) > 0 {
		t.add("attached", count(len(list), "image")+"; dmgbench hdiutil info lists them")
	}
}

// doctorFilesystems prints which file systems can be made and mounted here, and
// which program, package or driver is missing for the others.
func doctorFilesystems(t *factTable) {
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
	text := strings.Join(yes, ", ")
	if len(no) > 0 {
		text += ". Not: " + strings.Join(no, ", ")
	}
	t.add("file systems", text)
	t.addPackages(unique(packages), "")
}

// imageTool is a program of the system that opens or checks images that --keep
// left.
type imageTool struct {
	names       []string // of which one is enough
	use, debian string   // what it does, and its Debian package
}

// imageTools are the programs to look for, by operating system.
var imageTools = map[string][]imageTool{
	"linux": {
		{[]string{"7zz", "7z"}, "lists and unpacks images", "7zip"},
		{[]string{"mount"}, "mounts images (as root)", "mount"},
		{[]string{"losetup"}, "attaches images for checks (as root)", "mount"},
		{[]string{"fsck.exfat"}, "checks the volume", "exfatprogs"},
		{[]string{"mount.exfat-fuse", "mount.exfat"}, "mounts exFAT where the kernel cannot", "exfat-fuse"},
		{[]string{"fusermount3", "fusermount"}, "mounts without root", "fuse3"},
	},
	"darwin": {
		{[]string{"hdiutil"}, "attaches images", ""},
		{[]string{"diskutil"}, "checks volumes", ""},
	},
}

// doctorTools prints the programs that open and check images, and the packages
// of those that are missing. path is the variable PATH.
func doctorTools(t *factTable, path string) {
	var missing, packages []string
	for _, tool := range imageTools[runtime.GOOS] {
		if at := findProgram(path, tool.names); at != "" {
			t.add("tool", at+": "+tool.use)
			continue
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", tool.names[0], tool.use))
		packages = append(packages, tool.debian)
	}
	if len(missing) > 0 {
		t.add("tools missing", strings.Join(missing, ", "))
	}
	t.addPackages(unique(packages), "; measuring needs none of them")
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
