package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dmgbench/internal/engine"
	"dmgbench/internal/runner"
	"dmgbench/plans"
)

// writeEngines says of every engine whether it works, and of the first that does what it can measure.
func (a *app) writeEngines(ctx context.Context, s *sheet) error {
	var chosen engine.Engine
	var errs []error
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	for _, c := range a.candidates() {
		e, err := c.make(ctx, kit{state: state, auto: true})
		title := c.title
		if err == nil {
			title = e.Info().Title
			err = a.works(ctx, e, state)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
			s.line("engine", title+" is not used: "+err.Error())
			if h := hint(err); h != "" {
				s.line("", "hint: "+h)
			}
		case chosen == nil:
			chosen = e
			s.line("engine", title+" works, and --engine auto uses it: it made, attached, wrote to and detached a small image")
		default:
			s.line("engine", title+" works")
		}
	}
	a.writeAttaching(ctx, s)
	if chosen == nil {
		return fmt.Errorf("picking an engine: none works here: %w", errors.Join(errs...))
	}
	s.line("measures", "native folders; "+abilities(chosen))
	writeWitnesses(ctx, s, chosen)
	return writePlans(s, chosen)
}

// abilities are the images that an engine makes, and why not the others.
func abilities(e engine.Engine) string {
	var can, cannot []string
	ask := func(name string, spec engine.Spec) bool {
		if err := e.Supports(spec); err != nil {
			cannot = append(cannot, name)
			return false
		}
		can = append(can, name)
		return true
	}
	format := ""
	for _, f := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		if ask(f, engine.Spec{Format: f}) && format == "" {
			format = f
		}
	}
	for _, c := range []string{"AES-128", "AES-256"} {
		ask(c, engine.Spec{Format: format, Encryption: c})
	}
	for _, fs := range []string{"APFS", "HFS+", "exFAT", "FAT32", "ext4", "XFS", "btrfs"} {
		ask(fs, engine.Spec{Format: format, Filesystems: []string{fs}})
	}
	return strings.Join(can, ", ") + ". Not: " + strings.Join(cannot, ", ")
}

// writePlans sorts the built-in plans by how many of their cases the engine can measure.
func writePlans(s *sheet, e engine.Engine) error {
	var full, part, none []string
	for _, name := range plans.Names() {
		p, _, err := load(name)
		if err != nil {
			return err
		}
		cannot, can := len(runner.UnsupportedCases(p, e)), 0
		for _, c := range p.Cases() {
			if !c.Baseline {
				can++
			}
		}
		can -= cannot
		switch {
		case cannot == 0:
			full = append(full, name)
		case can == 0:
			none = append(none, name)
		default:
			part = append(part, fmt.Sprintf("%s (%d of %d)", name, can, can+cannot))
		}
	}
	for _, l := range []struct {
		name  string
		plans []string
	}{{"plans in full", full}, {"plans in part", part}, {"plans not", none}} {
		if len(l.plans) > 0 {
			s.line(l.name, strings.Join(l.plans, ", "))
		}
	}
	return nil
}

// aid is a program of the system that opens or checks the images that --keep leaves.
type aid struct {
	name, does, debian string
	others             []string // names that do as well
}

var aids = map[string][]aid{
	"linux": {
		{name: "7zz", does: "lists and unpacks images", debian: "7zip", others: []string{"7z"}},
		{name: "mount", does: "mounts images (as root)", debian: "mount"},
		{name: "losetup", does: "attaches images for checks (as root)", debian: "mount"},
		{name: "fsck.exfat", does: "checks the volume", debian: "exfatprogs"},
		{name: "mount.exfat-fuse", does: "mounts exFAT where the kernel cannot", debian: "exfat-fuse", others: []string{"mount.exfat"}},
		{name: "fusermount3", does: "mounts without root", debian: "fuse3", others: []string{"fusermount"}},
	},
	"darwin": {
		{name: "hdiutil", does: "attaches images"},
		{name: "diskutil", does: "checks volumes"},
	},
}

// writeTools lists what is there to open and check images, and which packages bring what is not.
func writeTools(s *sheet, path string) {
	var missing, packages []string
	for _, t := range aids[runtime.GOOS] {
		switch at := locate(path, append([]string{t.name}, t.others...)); {
		case at != "":
			s.line("tool", at+": "+t.does)
		default:
			missing = append(missing, fmt.Sprintf("%s (%s)", t.name, t.does))
			if t.debian != "" && !slices.Contains(packages, t.debian) {
				packages = append(packages, t.debian)
			}
		}
	}
	if len(missing) > 0 {
		s.line("tools missing", strings.Join(missing, ", "))
	}
	if len(packages) > 0 {
		s.line("", "hint: apt install "+strings.Join(packages, " ")+" (Debian, Ubuntu); measuring needs none of them")
	}
}

// locate finds a program in path or where programs for root are kept, which the
// paths of ordinary users leave out; "" if it is in neither.
func locate(path string, names []string) string {
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
