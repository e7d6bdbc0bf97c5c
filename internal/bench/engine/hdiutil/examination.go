package hdiutil

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/system/hostio"
)

const (
	ExamineTime  = 3 * time.Minute // of an examination at most, without the clean-up
	ExamineSpace = 2 << 30         // bytes that its images take on the disk at most

	examinedSize = 48 << 20 // bytes of an image
	resizedSize  = 96 << 20
	fileName     = "file" // on the volumes
	fileSize     = 8 << 20

	// What trials return where the tools do as expected.
	readBack = "a file is read back"
	isDone   = "done"
	isFound  = "found"
	isListed = "listed"
)

// Observation is what was seen of one belief.
type Observation struct {
	Name, Expected, Verdict string
	Seen                    string // or why it cannot be looked at here
	Needed                  bool   // the figures of plans depend on it
}

// The verdicts of observations.
const (
	AsExpected  = "as expected"
	Differs     = "differs"
	NotPossible = "not possible here"
)

// belief is what this driver assumes of the tools.
type belief struct {
	name, expected string
	trial          trial
	state          state
	spec           engine.Spec // of the image
	what           string      // a command, a format or a property, as the trial needs it
}

// trial returns what the tools do. An [engine.UnsupportedError] means that this machine cannot show it.
type trial func(*examination, belief, *image) (string, error)

// state is how the image is when a trial starts.
type state int

const (
	missing  state = iota
	text           // a file that is no image
	detached       // made from the spec
	attached       // for writing, with a file that contains the image's name
	onMac          // attached by Apple's tools: others cannot show it
)

// examination looks at one belief after the other. At most one image is attached.
type examination struct {
	ctx    context.Context
	e      *Engine
	dir    *hostio.Dir
	images map[string]*image // by their names; beliefs share them
	failed map[string]error  // why an image could not be made, by its name
	at     *attachment       // the last one
}

// observe looks at one belief. The text names no folder of the user.
func (x *examination) observe(b belief) Observation {
	seen, err := x.try(b)
	verdict := Differs
	unsupported, isUnsupported := errors.AsType[*engine.UnsupportedError](err)
	switch {
	case x.ctx.Err() != nil:
		seen = fmt.Sprintf("not looked at: %s were over", ExamineTime)
	case isUnsupported:
		verdict, seen = NotPossible, unsupported.What
	case err != nil:
		seen = err.Error()
	case seen == b.expected:
		verdict = AsExpected
	}
	home, _ := os.UserHomeDir()
	names := strings.NewReplacer(resolve(x.dir.Path()), "FOLDER", x.dir.Path(), "FOLDER", x.e.o.WorkDir, "FOLDER",
		cmp.Or(home, "~"), "~")
	return Observation{Name: b.name, Expected: b.expected, Seen: names.Replace(seen), Verdict: verdict}
}

// try brings the image of a belief into the state that the trial needs, and runs it.
func (x *examination) try(b belief) (string, error) {
	i, err := x.prepare(b)
	if err != nil {
		return "", err
	}
	return b.trial(x, b, i)
}

func (x *examination) prepare(b belief) (*image, error) {
	switch {
	case b.state == missing:
		return &image{path: filepath.Join(x.dir.Path(), "missing.dmg")}, nil
	case b.state == text:
		i := &image{path: filepath.Join(x.dir.Path(), "text.dmg")}
		return i, x.dir.WriteFileAtomic("text.dmg", bytes.Repeat([]byte("no image."), 1000), 0o600)
	case b.state == onMac && !x.e.isApple():
		return nil, x.e.refuse(backendHdiutil, "what only macOS has", "")
	}
	i, err := x.made(b.spec)
	if err != nil {
		return nil, err
	}
	if b.state == detached {
		return i, x.detach()
	}
	if x.at == nil || x.at.c != i || x.at.vol == nil || x.at.readOnly {
		if err := x.attach(i, engine.AttachOptions{}); err != nil {
			return nil, err
		}
	}
	return i, x.at.root.WriteFileAtomic(fileName, []byte(nameOf(b.spec)), 0o600)
}

// nameOf is the name of the image of a spec.
func nameOf(s engine.Spec) string {
	words := append([]string{s.Format, s.Encryption, s.Backend, s.ServedBy, s.Mount, s.VolumeName}, s.Filesystems...)
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// made is the image of a spec. If it cannot be made, it is not tried again.
func (x *examination) made(s engine.Spec) (*image, error) {
	name := nameOf(s)
	if i, ok := x.images[name]; ok {
		return i, x.failed[name]
	}
	s.Size, s.Passphrase = cmp.Or(s.Size, examinedSize), []byte("examined")
	c, err := x.e.Create(x.ctx, x.dir, name, s)
	i, _ := c.(*image)
	x.images[name], x.failed[name] = i, err
	return i, err
}

// attach attaches an image instead of the one that is attached.
func (x *examination) attach(i *image, o engine.AttachOptions) error {
	if err := x.detach(); err != nil {
		return err
	}
	a, err := i.Attach(x.ctx, o)
	if err != nil {
		return err
	}
	x.at = a.(*attachment)
	return nil
}

// detach detaches the image that is attached.
func (x *examination) detach() error {
	if x.at == nil || x.at.detached {
		return nil
	}
	_, err := x.at.Detach(x.ctx, false)
	if err != nil {
		_, err = x.at.Detach(x.ctx, true)
	}
	return err
}

// fail runs a command that has to fail, for the state of the image or a wrong passphrase.
func fail(x *examination, b belief, i *image) (string, error) {
	a := command.Args{Image: i.path, Device: "/dev/disk987654", Size: resizedSize, Battery: true,
		Format: "UDRO", Target: filepath.Join(x.dir.Path(), "refused.dmg")}
	switch {
	case b.state == text:
		a.Format = "UDIF"
	case b.state == attached:
		a.Device = x.at.disk
	case i.spec.Encryption != "":
		a.Secrets = [][]byte{[]byte("wrong")}
	}
	return x.run(b.what, command.New(b.what, a))
}

// run runs a command one time. It returns the class and status of a failure.
func (x *examination) run(object string, cmd command.Command) (string, error) {
	_, err := x.e.runOnce(x.ctx, call{doing: "asking", object: object, cmd: cmd})
	t, ok := errors.AsType[*ToolError](err)
	if !ok {
		return isDone, err
	}
	return fmt.Sprintf("%s, status %d", t.Class.name, t.Status), nil
}

// detachOpen detaches while a file of the volume is open.
func detachOpen(x *examination, b belief, i *image) (string, error) {
	f, err := x.at.root.Open("open", hostio.OpenOptions{Write: true, Create: true, Perm: 0o600})
	if err != nil {
		return "", err
	}
	defer f.Close()
	if b.what != "force" {
		return fail(x, b, i)
	}
	_, err = x.at.Detach(x.ctx, true)
	return isDone, err
}

// ejectDisk detaches by diskutil.
func ejectDisk(x *examination, b belief, i *image) (string, error) {
	x.at.closeVolume()
	seen, err := fail(x, b, i)
	if err != nil || seen != isDone {
		return seen, err
	}
	return isDone, x.at.checkGone(x.ctx)
}

// readFile attaches an image for reading and compares its file.
func readFile(x *examination, b belief, i *image) (string, error) {
	if err := x.attach(i, engine.AttachOptions{ReadOnly: true}); err != nil {
		return "", err
	}
	got, err := x.at.root.ReadFile(fileName, fileSize)
	kind := x.at.mounted.Type
	switch {
	case err != nil:
		return "", err
	case string(got) != nameOf(b.spec):
		return fmt.Sprintf("the file has other bytes: %q", got), nil
	case len(i.fs.types) > 0 && !slices.Contains(i.fs.types, kind) && !strings.HasPrefix(kind, "fuse"):
		return "mounted as " + kind, nil
	}
	return readBack, nil
}

// converted is the image in the format that a belief names, if it does, detached.
func (x *examination) converted(b belief, i *image) (*image, error) {
	if err := x.detach(); err != nil || b.what == "" {
		return i, err
	}
	c, err := i.Convert(x.ctx, x.dir, b.name, engine.Spec{Format: b.what})
	i, _ = c.(*image)
	return i, err
}

// readConverted converts an image, checks the new one, and reads its file.
func readConverted(x *examination, b belief, i *image) (string, error) {
	i, err := x.converted(b, i)
	if err != nil {
		return "", err
	}
	r, err := i.Check(x.ctx, engine.CheckOptions{What: "container"})
	if err != nil || len(r.Findings) > 0 {
		return strings.Join(r.Findings, "; "), err
	}
	return readFile(x, b, i)
}

// see is a property of an attached image, or whether a list has it.
func see(x *examination, b belief, i *image) (string, error) {
	switch b.what {
	case "band":
		return fmt.Sprint(i.info.BandSize), nil
	case "owners":
		return i.owners, nil
	case "mount":
		return i.mount, nil
	case "index":
		if _, err := x.at.root.Lstat(".Spotlight-V100"); err == nil {
			return "an index", nil
		}
		return "no index", nil
	case "fsck": // of a volume that is not mounted
		if err := x.attach(i, engine.AttachOptions{NoMount: true}); err != nil {
			return "", err
		}
		return x.run(i.File, command.QuickCheck(x.at.device.Device))
	case "trims":
		if err := x.detach(); err != nil {
			return "", err
		}
		r := x.at.ReportAfterDetach(x.ctx)
		if r.Reported["trim_log"] == "" {
			return r.Reported["trim_log_unknown"], nil
		}
		return isListed, nil
	}
	return x.seeListed(b, i)
}

// seeListed is whether the I/O registry or the list of hdiutil has the image with its disk.
func (x *examination) seeListed(b belief, i *image) (string, error) {
	if b.what == "registry" {
		r, failed := x.e.runOnce(x.ctx, call{doing: "asking", object: "the I/O registry", cmd: command.Registry()})
		list, err := command.ParseRegistry(r.Stdout)
		isOurs := func(at command.Attached) bool { return sameFile(at.Image, i.path) && diskOf(at) == x.at.disk }
		if !slices.ContainsFunc(list, isOurs) {
			return "not listed", errors.Join(failed, err)
		}
		return isListed, nil
	}
	at, ok, err := i.findAttached(x.ctx, &engine.Report{}, x.at.disk)
	switch {
	case err != nil || !ok:
		return "not listed", err
	case diskOf(at) != x.at.disk || !slices.ContainsFunc(at.MountPoints(), x.at.isPoint):
		return fmt.Sprintf("listed on %q with mounts %q", diskOf(at), at.MountPoints()), nil
	}
	return isListed, nil
}

// deleteAndSee is whether the space of a deleted file comes back by compact or by attach, which trims on macOS.
func deleteAndSee(x *examination, b belief, i *image) (string, error) {
	data := make([]byte, fileSize)
	_, _ = rand.Read(data) // it never fails
	written := x.at.root.WriteFileAtomic("deleted", data, 0o600)
	before, err := i.Usage(x.ctx)
	if err := errors.Join(written, err, x.at.root.Unlink("deleted"), x.at.vol.Sync()); err != nil {
		return "", err
	}
	_, err = x.at.Trim(x.ctx)
	if err := errors.Join(err, x.detach()); err != nil {
		return "", err
	}
	if b.what == "compact" {
		_, err = i.Compact(x.ctx, engine.CompactOptions{AllowBattery: true})
	} else {
		err = x.attach(i, engine.AttachOptions{})
	}
	if err != nil {
		return "", err
	}
	after, err := i.Usage(x.ctx)
	if freed := before.Allocated - after.Allocated; freed < fileSize/2 {
		return fmt.Sprintf("%d of %d bytes", freed, fileSize), err
	}
	return isDone, err
}

// resizeAndSee enlarges an image. The volume has the new size at the next attach.
func resizeAndSee(x *examination, _ belief, i *image) (string, error) {
	_, err := i.Resize(x.ctx, resizedSize)
	if err := errors.Join(err, x.attach(i, engine.AttachOptions{})); err != nil {
		return "", err
	}
	_, total, _, err := x.at.root.FreeSpace()
	if total < resizedSize*3/4 {
		return fmt.Sprintf("the volume has %d of %d bytes", total, resizedSize), err
	}
	return isDone, err
}

// damageAndCheck damages a converted image: the checksum finds it, or the volume is repaired.
func damageAndCheck(x *examination, b belief, i *image) (string, error) {
	i, err := x.converted(b, i)
	if err != nil {
		return "", err
	}
	if err := i.Damage(x.ctx, engine.Damage{Kind: "volume"}); err != nil {
		return "", err
	}
	what := "volume"
	if i.format.UDIF {
		what = "container"
	}
	r, err := i.Check(x.ctx, engine.CheckOptions{What: what})
	switch {
	case err != nil || len(r.Findings) == 0:
		return "not found", err
	case i.format.UDIF:
		return isFound, nil
	}
	if _, err := i.Check(x.ctx, engine.CheckOptions{What: what, Repair: true}); err != nil {
		return "", err
	}
	return readFile(x, b, i)
}
