package hdiutil

import (
	"bytes"
	"cmp"
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
	fileName = "file" // on the volumes
	fileSize = 8 << 20
)

// Trials of an attached image, and of a detached one.
type (
	attachedTrial func(*examination, *attachment) (string, error)
	imageTrial    func(*examination, *image) (string, error)
)

// withAttached attaches the image of a spec and looks at it.
func withAttached(s engine.Spec, l attachedTrial) trial {
	return func(x *examination) (string, error) {
		a, err := x.attached(s)
		if err != nil {
			return "", err
		}
		return l(x, a)
	}
}

// withImage makes the image of a spec and looks at it.
func withImage(s engine.Spec, l imageTrial) trial {
	return func(x *examination) (string, error) {
		i, err := x.made(s)
		if err != nil {
			return "", err
		}
		return l(x, i)
	}
}

// onMac looks at what only Apple's tools have.
func onMac(l trial) trial {
	return func(x *examination) (string, error) {
		if !x.e.isApple() {
			return "", x.e.refuse(backendHdiutil, "what only macOS has", "")
		}
		return l(x)
	}
}

// helpNames are the words that a help text lists.
func helpNames(line string, words ...string) trial {
	return func(x *examination) (string, error) {
		text, _, err := x.e.help(x.ctx, line)
		return strings.Join(command.FindNames(text, words), ", "), err
	}
}

// writeAndRead writes a file, attaches the image again and reads the file.
func writeAndRead(s engine.Spec) trial {
	return withAttached(s, func(x *examination, a *attachment) (string, error) {
		if err := a.root.WriteFileAtomic(fileName, []byte(nameOf(s)), 0o600); err != nil {
			return "", err
		}
		return x.read(a.c, nameOf(s))
	})
}

// read attaches an image for reading and compares its file.
func (x *examination) read(i *image, want string) (string, error) {
	a, err := x.attach(i, engine.AttachOptions{ReadOnly: true})
	if err != nil {
		return "", err
	}
	got, err := a.root.ReadFile(fileName, fileSize)
	switch kind := a.mounted.Type; {
	case err != nil:
		return "", err
	case string(got) != want:
		return fmt.Sprintf("the file has other bytes: %q", got), nil
	case len(i.fs.types) > 0 && !slices.Contains(i.fs.types, kind) && !strings.HasPrefix(kind, "fuse"):
		return "mounted as " + kind, nil
	}
	return readBack, nil
}

// converted is an image with a file in another format.
func (x *examination) converted(from, to engine.Spec) (*image, error) {
	if text, err := writeAndRead(from)(x); text != readBack {
		return nil, cmp.Or(err, fmt.Errorf("reading %q: %s", nameOf(from), text))
	}
	source, err := x.made(from)
	if err != nil {
		return nil, err
	}
	return x.once(nameOf(from)+" to "+nameOf(to), func(name string) (engine.Container, error) {
		return source.Convert(x.ctx, x.dir, name, to)
	})
}

// convertTo makes another format of an image with a file, checks it, and reads
// the file.
func convertTo(from, to engine.Spec) trial {
	return func(x *examination) (string, error) {
		i, err := x.converted(from, to)
		if err != nil {
			return "", err
		}
		r, err := i.Check(x.ctx, engine.CheckOptions{What: "container"})
		if err != nil || len(r.Findings) > 0 {
			return strings.Join(r.Findings, "; "), err
		}
		return x.read(i, nameOf(from))
	}
}

// seeDeviceSize is the size of the device, as the tool describes the image.
func seeDeviceSize(x *examination, i *image) (string, error) {
	r, err := i.Check(x.ctx, engine.CheckOptions{What: "container"})
	return r.Reported["size"], err
}

// seeBandSize is the size of the bands of a new bundle.
func seeBandSize(_ *examination, i *image) (string, error) { return fmt.Sprint(i.info.BandSize), nil }

// seeScheme is the partition scheme in the answer of attach.
func seeScheme(x *examination, i *image) (string, error) {
	a, err := x.attach(i, engine.AttachOptions{NoMount: true})
	if err != nil {
		return "", err
	}
	return a.report.Reported["scheme"], nil
}

// inList looks at what the list of attached images has of an image.
func inList(s engine.Spec, text func(command.Attached, *attachment) string) trial {
	return withAttached(s, func(x *examination, a *attachment) (string, error) {
		at, ok, err := a.c.findAttached(x.ctx, &engine.Report{}, a.disk)
		if err != nil || !ok {
			return "not listed", err
		}
		return text(at, a), nil
	})
}

// seeMounts is whether the list has disk and mount point of the attachment.
func seeMounts(at command.Attached, a *attachment) string {
	disk := diskOf(at)
	if disk != a.disk || !slices.ContainsFunc(at.MountPoints(), a.isPoint) {
		return fmt.Sprintf("listed on %q with mounts %q", disk, at.MountPoints())
	}
	return isListed
}

// seeServer is whether the list names the process that serves the image.
func seeServer(at command.Attached, _ *attachment) string {
	if at.Server == 0 {
		return "no process"
	}
	return isListed
}

// seeFirst is whether the whole disk of the image is the first device in the list.
func seeFirst(at command.Attached, a *attachment) string {
	if at.Entities[0].Device == a.disk {
		return isListed
	}
	return fmt.Sprintf("it comes after one with the hint %q", at.Entities[0].Hint)
}

// askAbout is the failure of a command about a file: "junk" or a missing one.
func askAbout(line, file string) trial {
	return func(x *examination) (string, error) {
		if err := x.dir.WriteFileAtomic("junk.dmg", bytes.Repeat([]byte("no image."), 1000), 0o600); err != nil {
			return "", err
		}
		path := filepath.Join(x.dir.Path(), file+".dmg")
		return x.failure(line, command.Args{Image: path, Size: examinedSize, Format: "UDIF", Device: "/dev/disk987654"})
	}
}

// whileAttached is the failure of a command about an attached image.
func whileAttached(s engine.Spec, line string) trial {
	return withAttached(s, func(x *examination, a *attachment) (string, error) {
		return x.failure(line, command.Args{Image: a.c.path, Target: filepath.Join(x.dir.Path(), "refused.dmg"),
			Format: "UDRO", Size: resizedSize, Battery: true})
	})
}

// whileOpen looks while a file of the volume is open.
func whileOpen(l attachedTrial) trial {
	return withAttached(plainImage, func(x *examination, a *attachment) (string, error) {
		f, err := a.root.Open("open", hostio.OpenOptions{Write: true, Create: true, Perm: 0o600})
		if err != nil {
			return "", err
		}
		defer f.Close()
		return l(x, a)
	})
}

// detachOnce is the failure of one detach.
func detachOnce(x *examination, a *attachment) (string, error) {
	return x.failure("hdiutil detach", command.Args{Device: a.disk})
}

// detachByForce detaches as the clean-up of a run does.
func detachByForce(x *examination, a *attachment) (string, error) {
	_, err := a.Detach(x.ctx, true)
	x.at = nil
	return isDone, err
}

// detachPolitely is what the driver had to do until the image was detached.
func detachPolitely(x *examination, a *attachment) (string, error) {
	r, err := a.Detach(x.ctx, false)
	x.at = nil
	return cmp.Or(strings.Join(r.Warnings, "; "), isDone), err
}

// ejectDisk detaches by diskutil.
func ejectDisk(x *examination, a *attachment) (string, error) {
	a.closeVolume()
	if text, err := x.failure("diskutil eject", command.Args{Device: a.disk}); text != isDone {
		return text, err
	}
	return isDone, a.checkGone(x.ctx)
}

// wrongPassphrase is the failure of a command with a passphrase that is not the image's.
func wrongPassphrase(line string) trial {
	return withImage(secretImage, func(x *examination, i *image) (string, error) {
		return x.failure(line, command.Args{Image: i.path, Secrets: [][]byte{[]byte("wrong")}})
	})
}

// readByDiskutil attaches by diskutil what hdiutil encrypted.
func readByDiskutil(x *examination, i *image) (string, error) {
	other := *i
	other.backend = backendDiskutil
	return x.read(&other, nameOf(secretImage))
}

// compactImage compacts an image.
func compactImage(x *examination, i *image) (string, error) {
	_, err := i.Compact(x.ctx, engine.CompactOptions{AllowBattery: true})
	return isDone, err
}

// attachImage attaches an image: macOS trims a volume when it mounts it.
func attachImage(x *examination, i *image) (string, error) {
	_, err := x.attach(i, engine.AttachOptions{})
	return isDone, err
}

// deleteAndSee is whether the host gets the space of a deleted file back by the
// action.
func deleteAndSee(s engine.Spec, action imageTrial) trial {
	return withAttached(s, func(x *examination, a *attachment) (string, error) {
		data := make([]byte, fileSize)
		_, _ = rand.Read(data) // it never fails
		if err := a.root.WriteFileAtomic("deleted", data, 0o600); err != nil {
			return "", err
		}
		if _, err := a.Trim(x.ctx); err != nil {
			return "", err
		}
		before, err := a.c.Usage(x.ctx)
		if err != nil {
			return "", err
		}
		if err := errors.Join(a.root.Unlink("deleted"), a.vol.Sync()); err != nil {
			return "", err
		}
		if _, err := a.Trim(x.ctx); err != nil {
			return "", err
		}
		if err := x.detach(); err != nil {
			return "", err
		}
		if text, err := action(x, a.c); err != nil {
			return text, err
		}
		after, err := a.c.Usage(x.ctx)
		if freed := before.Allocated - after.Allocated; freed < fileSize/2 {
			return fmt.Sprintf("%d of %d bytes", freed, fileSize), err
		}
		return isDone, err
	})
}

// resizeAndSee enlarges an image. It returns the share of the new size that the
// volume has at the next attach.
func resizeAndSee(s engine.Spec) trial {
	s.VolumeName = "resized"
	return withImage(s, func(x *examination, i *image) (string, error) {
		if _, err := i.Resize(x.ctx, resizedSize); err != nil {
			return "", err
		}
		if i.fs.name == none {
			return isDone, nil
		}
		a, err := x.attach(i, engine.AttachOptions{})
		if err != nil {
			return "", err
		}
		_, total, _, err := a.root.FreeSpace()
		if total < resizedSize*3/4 {
			return fmt.Sprintf("the volume has %d of %d bytes", total, resizedSize), err
		}
		return isDone, err
	})
}

// damageAndCheck damages a copy of a converted image and checks it; with repair once more,
// after the repair.
func damageAndCheck(from, to engine.Spec, what string, repair bool) trial {
	return func(x *examination) (string, error) {
		i, err := x.converted(from, to)
		if err != nil {
			return "", err
		}
		copied, err := i.Transfer(x.ctx, x.dir, fmt.Sprint("damaged ", what, " ", repair))
		if err != nil {
			return "", err
		}
		if err := copied.Damage(x.ctx, engine.Damage{Kind: "volume"}); err != nil {
			return "", err
		}
		r, err := copied.Check(x.ctx, engine.CheckOptions{What: what, Repair: repair})
		if err != nil || !repair {
			return seeFindings(r), err
		}
		r, err = copied.Check(x.ctx, engine.CheckOptions{What: what})
		return cmp.Or(strings.Join(r.Findings, "; "), isDone), err
	}
}

// seeFindings is whether a check has findings.
func seeFindings(r engine.Report) string {
	if len(r.Findings) == 0 {
		return "not found"
	}
	return isFound
}

// seeOwner is the user to whom the root of a new volume belongs.
func seeOwner(_ *examination, a *attachment) (string, error) {
	fi, err := os.Stat(a.point)
	if err != nil {
		return "", err
	}
	if uid := hostio.StatOf(fi).UID; uid != os.Geteuid() {
		return fmt.Sprintf("user %d", uid), nil
	}
	return "this user", nil
}

// seeOwners is what macOS makes of the owners of files, and seeMount who sees the
// volume.
func seeOwners(_ *examination, a *attachment) (string, error) { return a.c.owners, nil }

func seeMount(_ *examination, a *attachment) (string, error) { return a.c.mount, nil }

// inRegistry is whether the I/O registry lists the image with its disk.
func inRegistry(x *examination, a *attachment) (string, error) {
	r, err := x.e.runOnce(x.ctx, call{doing: "asking", object: "the I/O registry", cmd: command.Registry()})
	if err != nil {
		return "", err
	}
	list, err := command.ParseRegistry(r.Stdout)
	for _, at := range list {
		if sameFile(at.Image, a.c.path) && diskOf(at) == a.disk {
			return isListed, nil
		}
	}
	return fmt.Sprintf("not among %d images", len(list)), err
}

// checkQuickly checks the volume of an image that is attached without a mount.
func checkQuickly(x *examination, i *image) (string, error) {
	a, err := x.attach(i, engine.AttachOptions{NoMount: true})
	if err != nil {
		return "", err
	}
	_, err = x.e.runOnce(x.ctx, call{doing: "checking", object: i.File, cmd: command.QuickCheck(a.device.Device)})
	return failureOf(err)
}

// renameFile is whether an attached image is listed by the name that its file had.
func renameFile(x *examination, a *attachment) (string, error) {
	if err := x.dir.Rename(a.c.File, "renamed.dmg"); err != nil {
		return "", err
	}
	hasName := func(at command.Attached) bool { return filepath.Base(at.Image) == a.c.File }
	list, err := x.e.listAttached(x.ctx, &engine.Report{}, hasName, hasName)
	err = errors.Join(err, x.dir.Rename("renamed.dmg", a.c.File))
	if len(list) == 0 {
		return "not listed", err
	}
	return isListed, err
}

// seeTrims is what APFS logged of trimming the volume.
func seeTrims(x *examination, a *attachment) (string, error) {
	if err := x.detach(); err != nil {
		return "", err
	}
	r := a.ReportAfterDetach(x.ctx)
	if r.Reported["trim_log"] == "" {
		return r.Reported["trim_log_unknown"], nil
	}
	return isListed, nil
}

// seeIndex is whether Spotlight makes an index on the volume.
func seeIndex(x *examination, a *attachment) (string, error) {
	if err := a.root.WriteFileAtomic("indexed.txt", []byte("words to index"), 0o600); err != nil {
		return "", err
	}
	if err := x.e.o.Clock.Sleep(x.ctx, 2*time.Second); err != nil {
		return "", err
	}
	if _, err := a.root.Lstat(".Spotlight-V100"); err == nil {
		return "an index", nil
	}
	return "no index", nil
}

// renameCopy attaches an image under the extension of another format.
func renameCopy(x *examination, i *image) (string, error) {
	const file = "foreign.dmg"
	if err := i.CopyTo(x.ctx, x.dir, file); err != nil {
		return "", err
	}
	foreign := *i
	foreign.path = filepath.Join(x.dir.Path(), file)
	var err error
	if foreign.HostFile, err = engine.OpenHostFile(x.dir, file); err != nil {
		return "", err
	}
	return attachImage(x, &foreign)
}

// askIn is the language of a message, with words before and after the command.
// Without any it is that of this system; if that is English, the others show
// nothing.
func askIn(before string, after ...string) trial {
	return func(x *examination) (string, error) {
		line := slices.Concat(x.e.o.Hdiutil, []string{"imageinfo", filepath.Join(x.dir.Path(), "missing.dmg")})
		asks := func(words []string) (string, error) {
			r, err := x.e.runProgram(x.ctx, "imageinfo", 0, "/usr/bin/env", words, nil)
			if strings.Contains(string(r.Stderr), "No such file or directory") {
				return inEnglish, err
			}
			return command.ParseMessages(string(r.Stderr)).Last(), err
		}
		language, err := asks(line)
		if before == "" || err != nil {
			return language, err
		}
		if language == inEnglish {
			return "", x.e.refuse(backendHdiutil, "asking for English where it is the language", "")
		}
		if err := x.dir.MkdirAll("Library/Preferences"); err != nil {
			return "", err
		}
		const preferences = "Library/Preferences/.GlobalPreferences.plist"
		if err := x.dir.WriteFileAtomic(preferences, []byte(englishFirst), 0o600); err != nil {
			return "", err
		}
		return asks(slices.Concat([]string{strings.Replace(before, "FOLDER", x.dir.Path(), 1)}, line, after))
	}
}

// englishFirst are preferences with the language English.
const englishFirst = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>AppleLanguages</key><array><string>en</string></array></dict></plist>
`
