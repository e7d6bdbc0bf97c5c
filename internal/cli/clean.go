package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/runner"
)

// clean is the command "clean". It waits for the lock of measuring where it
// removes files that an active run may use.
func (a *app) clean(ctx context.Context, _ []string) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	return runner.Clean(ctx, state, runner.CleanOptions{
		Release: a.detachBelow,
		Clock:   a.clock,
		Lock:    func() (func(), error) { return lockHost(ctx, runner.Config{StateDir: state, Clock: a.clock}, nil) },
		Also: func(ctx context.Context, w io.Writer) error {
			return errors.Join(a.cleanMountFolders(ctx, state, w), a.cleanPassphrases(ctx, state, w))
		},
	}, a.stdout)
}

// leftover describes the images of a run that is not active, with the command
// that continues or removes them.
type leftover struct {
	folder     string // the run folder
	text, hint string
	killed     bool // not paused, and not kept on purpose
}

// leftovers lists the images of runs that are not active, and which of them are
// attached. doctor prints all of them, run only those of killed runs.
func (a *app) leftovers(ctx context.Context, state string) (list []leftover) {
	for _, r := range runner.Leftovers(state) {
		name := quoted(shortPath(r.Folder))
		one := leftover{folder: r.Folder, text: "cannot be read", hint: "dmgbench clean deletes it"}
		switch {
		case r.Ended:
			one.text = "kept its images"
		case r.Paused:
			one.text = "is paused"
		case r.Resumes:
			one.text = "was killed"
		}
		one.killed = !r.Ended && !r.Paused
		if !r.Ended && (r.Paused || r.Resumes) {
			one.hint = "dmgbench resume " + name + " continues it; dmgbench clean deletes its images"
		}
		var images, attached []string
		for _, dir := range r.Images {
			images = append(images, quoted(shortPath(dir)))
			attached = append(attached, a.attachedBelow(ctx, dir)...)
		}
		where := "images in " + strings.Join(images, " and in ")
		one.text = name + " " + one.text + ": " + strings.Join(append([]string{where}, attached...), "; ")
		list = append(list, one)
	}
	return list
}

// attachedBelow describes the attached images below a folder. It is empty where
// they cannot be listed, because that must not keep a run from starting.
func (a *app) attachedBelow(ctx context.Context, dir string) (texts []string) {
	if runtime.GOOS != "linux" {
		o, err := a.hdiutilOptions()
		if err != nil {
			return nil
		}
		names, _ := hdiutil.Attached(ctx, o, dir)
		for _, name := range names {
			texts = append(texts, name+" is attached")
		}
		return texts
	}
	// The list has resolved paths.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	list, _ := attach.List(ctx)
	for _, at := range list {
		if rel, err := filepath.Rel(dir, at.Image); err != nil || !filepath.IsLocal(rel) || at.Dead {
			continue
		}
		text := filepath.Base(at.Image) + " is attached"
		if at.MountPoint != "" {
			text += " at " + quoted(at.MountPoint)
		}
		if at.HelperPID != 0 {
			text += fmt.Sprintf(", served by process %d", at.HelperPID)
		}
		texts = append(texts, text)
	}
	return texts
}

// warnLeftovers warns at the start of a run of the images of other runs that
// were killed: they take space, and attached images take memory. own is the
// folder of the run that starts.
func (a *app) warnLeftovers(ctx context.Context, state, own string) {
	own, _ = filepath.Abs(own)
	for _, l := range a.leftovers(ctx, state) {
		if l.killed && l.folder != own {
			a.warn("earlier run " + l.text + "\n  hint: " + l.hint)
		}
	}
}
