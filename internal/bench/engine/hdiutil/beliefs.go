package hdiutil

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dmgbench/internal/bench/engine"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/system/hostio"
)

// knownBuilds are the builds of macOS that have a capture in testdata/apple/captures.
var knownBuilds = []string{}

// IsKnown reports whether the answers of Apple's tools of a build of macOS are on file.
func IsKnown(build string) bool { return slices.Contains(knownBuilds, build) }

// Examine looks whether the tools behave as this driver assumes, with small
// images in an empty folder, and hands on each observation as soon as it is made.
// It detaches its images also when interrupted; the caller removes the folder.
func (e *Engine) Examine(ctx context.Context, dir *hostio.Dir, show func(Observation)) (err error) {
	limited, cancel := context.WithTimeout(ctx, ExamineTime)
	defer cancel()
	x := &examination{ctx: limited, e: e, dir: dir, images: map[string]*image{}, failed: map[string]error{}}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		x.ctx = clean
		detached := x.detach()
		_, released := e.Release(clean, dir.Path())
		err = errors.Join(err, detached, released)
	}()
	needed := e.neededBeliefs()
	for n, b := range slices.Concat(needed, openBeliefs) {
		o := x.observe(b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.Needed = n < len(needed)
		show(o)
	}
	return nil
}

// Images that beliefs share.
var (
	plainImage  = engine.Spec{Format: diskimage.UDRW}
	rawImage    = engine.Spec{Format: diskimage.UDRW, Backend: backendDiskutil}
	finderImage = engine.Spec{Format: diskimage.UDRW, Mount: engine.MountFinder}
	kernelImage = engine.Spec{Format: diskimage.UDRW, ServedBy: kernel}
	helperImage = engine.Spec{Format: diskimage.UDRW, ServedBy: helper}
	sparseImage = engine.Spec{Format: diskimage.UDSP}
	hfsImage    = engine.Spec{Format: diskimage.UDSP, Filesystems: []string{"Journaled HFS+"}}
	damageable  = engine.Spec{Format: diskimage.UDSP, Filesystems: []string{"APFS", "exFAT"}}
	namedImage  = engine.Spec{Format: diskimage.UDSP, VolumeName: "Ü b 日本"}
	namedBundle = engine.Spec{Format: diskimage.UDSB, VolumeName: "Ü b 日本", Backend: backendDiskutil}
	bundleImage = engine.Spec{Format: diskimage.UDSB, BandSize: 2 << 20}
	secretImage = engine.Spec{Format: diskimage.UDSB, Encryption: "AES-256"}
	asifImage   = engine.Spec{Format: diskimage.ASIF}
)

// neededBeliefs are what the figures of plans depend on, as far as these tools can have it.
func (e *Engine) neededBeliefs() []belief {
	all := slices.Clone(singleBeliefs)
	for _, s := range []engine.Spec{plainImage, sparseImage, bundleImage, asifImage, rawImage, secretImage,
		{Format: diskimage.UDSP, Encryption: "AES-128"}, {Format: diskimage.ASIF, Encryption: "AES-256"}} {
		all = append(all, belief{"image " + nameOf(s), readBack, readConverted, attached, s, ""})
	}
	for _, f := range filesystems {
		s := engine.Spec{Format: diskimage.UDSP, Filesystems: []string{f.name},
			Size: max(examinedSize, diskimage.FilesystemNamed(f.name).UsefulSize)}
		if f.name != none && (e.isApple() && f.apple || !e.isApple() && f.linux) {
			all = append(all, belief{"file system " + f.name, readBack, readConverted, attached, s, ""})
		}
	}
	for _, f := range diskimage.Formats {
		if f.ReadOnly {
			all = append(all, belief{"conversion to " + f.Name, readBack, readConverted, attached, plainImage, f.Name})
		}
	}
	return all
}

// singleBeliefs are those that are not made from a table of formats.
var singleBeliefs = []belief{
	{"hdiutil attach of a missing file", "not found, status 1", fail, missing, engine.Spec{}, "hdiutil attach"},
	{"hdiutil detach of a missing device", "not found, status 1", fail, missing, engine.Spec{}, "hdiutil detach"},
	{"hdiutil imageinfo of a text", "not an image, status 1", fail, text, engine.Spec{}, "hdiutil imageinfo"},
	{"hdiutil create over a file", "exists, status 1", fail, text, engine.Spec{}, "hdiutil create"},
	{"conversion to ASIF", readBack, readConverted, attached, plainImage, diskimage.ASIF},
	{"conversion to UDZO by diskutil", readBack, readConverted, attached, rawImage, diskimage.UDZO},
	{"size of a band", fmt.Sprint(bundleImage.BandSize), see, attached, bundleImage, "band"},
	{"disk and mount point in the list, by hdiutil", isListed, see, attached, namedImage, "list"},
	{"disk and mount point in the list, by diskutil", isListed, see, attached, namedBundle, "list"},
	{"disk and mount point in the list, of ASIF", isListed, see, attached, asifImage, "list"},
	{"ASIF in the I/O registry", isListed, see, onMac, asifImage, "registry"},
	{"owners of files, by hdiutil", engine.OwnersIgnored, see, onMac, plainImage, "owners"},
	{"owners of files, by diskutil", engine.OwnersIgnored, see, onMac, rawImage, "owners"},
	{"mount for this program alone, by diskutil", engine.MountPrivate, see, onMac, rawImage, "mount"},
	{"mount as Finder does it, by hdiutil", engine.MountFinder, see, onMac, finderImage, "mount"},
	{"fsck_apfs of an image of this user", isDone, see, onMac, plainImage, "fsck"},
	{"hdiutil resize of an attached image", "locked, status 35", fail, attached, plainImage, "hdiutil resize"},
	{"hdiutil convert of an attached image", "locked, status 1", fail, attached, plainImage, "hdiutil convert"},
	{"hdiutil compact of an attached image", "locked, status 1", fail, attached, bundleImage, "hdiutil compact"},
	{"hdiutil detach while a file is open", "busy, status 16", detachOpen, attached, plainImage, "hdiutil detach"},
	{"detach with force while a file is open", isDone, detachOpen, attached, plainImage, "force"},
	{"diskutil eject", isDone, ejectDisk, attached, plainImage, "diskutil eject"},
	{"wrong passphrase, hdiutil", "wrong passphrase, status 1", fail, detached, secretImage, "hdiutil attach"},
	{"wrong passphrase, diskutil", "wrong passphrase, status 1", fail, detached, secretImage, "diskutil image attach"},
	{"space of a deleted file back after compact, UDSB", isDone, deleteAndSee, attached, bundleImage, "compact"},
	{"space of a deleted file back after compact, UDSP", isDone, deleteAndSee, attached, sparseImage, "compact"},
	{"resize of UDSP", isDone, resizeAndSee, detached, sparseImage, ""},
	{"resize of ASIF", isDone, resizeAndSee, detached, asifImage, ""},
	{"resize of HFS+", isDone, resizeAndSee, detached, hfsImage, ""},
	{"damaged data of an image with a checksum", isFound, damageAndCheck, attached, plainImage, diskimage.UDZO},
	{"a damaged volume", readBack, damageAndCheck, attached, damageable, diskimage.UDRW},
}

// openBeliefs are questions: what no figure depends on, or what only some systems have shown.
var openBeliefs = []belief{
	{"attaching by the kernel alone", readBack, readConverted, attached, kernelImage, ""},
	{"attaching by a helper process", readBack, readConverted, attached, helperImage, ""},
	{"diskutil resize of an attached image", "busy, status 1", fail, attached, rawImage, "diskutil image resize"},
	{"space of a deleted file back after an attach, UDRW", isDone, deleteAndSee, attached, plainImage, "attach"},
	{"space of a deleted file back after an attach, ASIF", isDone, deleteAndSee, attached, asifImage, "attach"},
	{"trims in the system's log", isListed, see, onMac, plainImage, "trims"},
	{"Spotlight on a volume with nobrowse", "no index", see, onMac, plainImage, "index"},
}
