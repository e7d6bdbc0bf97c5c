package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"dmgbench/internal/attach"
	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/runner"
)

// leftover is what a run left that no process is at, and the command that deals with it.
type leftover struct {
	text, hint string
	killed     bool // rather than paused or kept on purpose
}

// leftovers lists what runs left: images, and what of them is still attached.
func (a *app) leftovers(ctx context.Context, state string) (list []leftover) {
	for _, r := range runner.Leftovers(state) {
		one := leftover{hint: "dmgbench clean deletes it"}
		switch run := quoted(shorter(r.Folder)); {
		case r.Ended:
			one.text = run + " kept its images"
		case r.Paused:
			one.text = run + " is paused"
			one.hint = "dmgbench resume " + run + " goes on with it; dmgbench clean deletes its images"
		case r.Resumes:
			one.text, one.killed = run+" was killed", true
			one.hint = "dmgbench resume " + run + " goes on with it; dmgbench clean deletes its images"
		default:
			one.text, one.killed = run+" cannot be read", true
		}
		var images []string
		for _, dir := range r.Images {
			images = append(images, quoted(shorter(dir)))
		}
		one.text += ": images in " + strings.Join(images, " and in ")
		for _, dir := range r.Images {
			for _, at := range a.attachedBelow(ctx, dir) {
				one.text += "; " + at
			}
		}
		list = append(list, one)
	}
	return list
}

// attachedBelow describes the images below a folder that are attached.
func (a *app) attachedBelow(ctx context.Context, dir string) (texts []string) {
	if runtime.GOOS != "linux" {
		o, err := a.hdiutilOptions()
		if err != nil {
			return nil
		}
		names, _ := hdiutil.Attached(ctx, o, dir) // what cannot be listed is no reason not to run
		for _, name := range names {
			texts = append(texts, name+" is attached")
		}
		return texts
	}
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

// warnOfLeftovers tells at the start of a run what killed runs left; own is the folder of the run that begins or goes on.
func (a *app) warnOfLeftovers(ctx context.Context, state, own string) {
	at, _ := filepath.Abs(own)
	for _, l := range a.leftovers(ctx, state) {
		if l.killed && !strings.HasPrefix(l.text, quoted(shorter(at))+" ") {
			a.warn("earlier run " + l.text + "\n  hint: " + l.hint)
		}
	}
}

// shorter is an absolute path as seen from the working folder where it lies below that.
func shorter(path string) string {
	if here, err := filepath.Abs("."); err == nil {
		if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}
