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

// knownBuilds are the builds of macOS of which the answers of the tools are on
// file, in testdata/apple/captures.
var knownBuilds = []string{}

// IsKnown reports whether the answers of Apple's tools of a build of macOS are on
// file.
func IsKnown(build string) bool { return slices.Contains(knownBuilds, build) }

// Examine looks whether the tools behave as this driver assumes, with small
// images in an empty folder, and hands on each observation as soon as it is made.
// It detaches its images also when it is interrupted; the caller removes the
// folder.
func (e *Engine) Examine(ctx context.Context, dir *hostio.Dir, show func(Observation)) (err error) {
	limited, cancel := context.WithTimeout(ctx, ExamineTime)
	defer cancel()
	x := &examination{ctx: limited, e: e, dir: dir, images: map[string]*image{}, failed: map[string]error{}}
	defer func() { err = errors.Join(err, x.end(context.WithoutCancel(ctx))) }()
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

// neededBeliefs are what the figures of plans depend on, as far as these tools can
// have it.
func (e *Engine) neededBeliefs() []belief {
	var list []belief
	for _, s := range []engine.Spec{plainImage, sparseImage, bundleImage, asifImage, rawImage, secretImage,
		{Format: diskimage.UDSB, Backend: backendDiskutil}, {Format: diskimage.UDRW, Encryption: "AES-256"},
		{Format: diskimage.UDSP, Encryption: "AES-128"}, {Format: diskimage.ASIF, Encryption: "AES-256"}} {
		list = append(list, belief{"image " + nameOf(s), readBack, writeAndRead(s)})
	}
	for _, f := range filesystems {
		s := engine.Spec{Format: diskimage.UDSP, Filesystems: []string{f.name},
			Size: max(examinedSize, diskimage.FilesystemNamed(f.name).UsefulSize)}
		if f.name != none && (e.isApple() && f.apple || !e.isApple() && f.linux) {
			list = append(list, belief{"file system " + f.name, readBack, writeAndRead(s)})
		}
	}
	for _, f := range diskimage.Formats {
		if f.ReadOnly {
			list = append(list, belief{"conversion to " + f.Name, readBack,
				convertTo(plainImage, engine.Spec{Format: f.Name})})
		}
	}
	return slices.Concat(toolRefusals, list, imageBeliefs)
}

// toolRefusals are beliefs about what is no image.
var toolRefusals = []belief{
	{"hdiutil attach of a missing file", "not found, status 1", askAbout("hdiutil attach", "missing")},
	{"diskutil image attach of a missing file", "not found, status 1", askAbout("diskutil image attach", "missing")},
	{"hdiutil attach of a text", "not an image, status 1", askAbout("hdiutil attach", "junk")},
	{"hdiutil imageinfo of a text", "not an image, status 1", askAbout("hdiutil imageinfo", "junk")},
	{"hdiutil create over a file", "exists, status 1", askAbout("hdiutil create", "junk")},
	{"hdiutil detach of a device that does not exist", "not found, status 1", askAbout("hdiutil detach", "missing")},
}

// imageBeliefs are beliefs about single images.
var imageBeliefs = []belief{
	{"conversion to UDSB", readBack, convertTo(plainImage, bundleImage)},
	{"conversion to ASIF", readBack, convertTo(plainImage, asifImage)},
	{"conversion to UDZO by diskutil", readBack, convertTo(rawImage, engine.Spec{Format: diskimage.UDZO})},
	{"size of a device, by hdiutil", fmt.Sprint(examinedSize), withImage(plainImage, seeDeviceSize)},
	{"size of a device, by diskutil", fmt.Sprint(examinedSize), withImage(rawImage, seeDeviceSize)},
	{"size of a band", fmt.Sprint(bundleImage.BandSize), withImage(bundleImage, seeBandSize)},
	{"partition scheme in the answer of attach", "GUID_partition_scheme", withImage(plainImage, seeScheme)},
	{"disk and mount point in the list, of UDRW", isListed, inList(plainImage, seeMounts)},
	{"disk and mount point in the list, of ASIF", isListed, inList(asifImage, seeMounts)},
	{"names with blanks, umlauts and ideographs, by hdiutil", isListed,
		inList(engine.Spec{Format: diskimage.UDSP, VolumeName: "Ü b 日本"}, seeMounts)},
	{"names with blanks, umlauts and ideographs, by diskutil", isListed,
		inList(engine.Spec{Format: diskimage.UDSB, VolumeName: "Ü b 日本", Backend: backendDiskutil}, seeMounts)},
	{"UDRW in the I/O registry", isListed, onMac(withAttached(plainImage, inRegistry))},
	{"ASIF in the I/O registry", isListed, onMac(withAttached(asifImage, inRegistry))},
	{"owners of files, by hdiutil", engine.OwnersIgnored, onMac(withAttached(plainImage, seeOwners))},
	{"owners of files, by diskutil", engine.OwnersIgnored, onMac(withAttached(rawImage, seeOwners))},
	{"mount for this program alone, by hdiutil", engine.MountPrivate, onMac(withAttached(plainImage, seeMount))},
	{"mount for this program alone, by diskutil", engine.MountPrivate, onMac(withAttached(rawImage, seeMount))},
	{"mount as Finder does it, by hdiutil", engine.MountFinder, onMac(withAttached(finderImage, seeMount))},
	{"fsck_apfs of an image of this user", isDone, onMac(withImage(plainImage, checkQuickly))},
	{"hdiutil resize of an attached image", "locked, status 35", whileAttached(plainImage, "hdiutil resize")},
	{"hdiutil convert of an attached image", "locked, status 1", whileAttached(plainImage, "hdiutil convert")},
	{"hdiutil compact of an attached image", "locked, status 1", whileAttached(bundleImage, "hdiutil compact")},
	{"hdiutil detach while a file is open", "busy, status 16", whileOpen(detachOnce)},
	{"detach with force while a file is open", isDone, whileOpen(detachByForce)},
	{"diskutil eject", isDone, withAttached(plainImage, ejectDisk)},
	{"hdiutil attach with a wrong passphrase", "wrong passphrase, status 1", wrongPassphrase("hdiutil attach")},
	{"diskutil image attach with a wrong passphrase", "wrong passphrase, status 1",
		wrongPassphrase("diskutil image attach")},
	{"passphrase of hdiutil, given to diskutil", readBack, withImage(secretImage, readByDiskutil)},
	{"hdiutil compact of UDSB", isDone, withImage(bundleImage, compactImage)},
	{"hdiutil compact of UDSP", isDone, withImage(sparseImage, compactImage)},
	{"resize of UDRW", isDone, resizeAndSee(plainImage)},
	{"resize of UDSP", isDone, resizeAndSee(sparseImage)},
	{"resize of UDSB", isDone, resizeAndSee(bundleImage)},
	{"resize of ASIF", isDone, resizeAndSee(asifImage)},
	{"resize of HFS+", isDone, resizeAndSee(engine.Spec{Format: diskimage.UDSP, Filesystems: []string{"Journaled HFS+"}})},
	{"resize without a file system", isDone,
		resizeAndSee(engine.Spec{Format: diskimage.UDSP, Filesystems: []string{none}})},
	{"damaged data of an image with a checksum", isFound,
		damageAndCheck(plainImage, engine.Spec{Format: diskimage.UDZO}, "container", false)},
	{"a damaged volume", isFound, damageAndCheck(repairableImage, plainImage, "volume", false)},
	{"a damaged volume, repaired", isDone, damageAndCheck(repairableImage, plainImage, "volume", true)},
}

// openBeliefs are questions: what no figure depends on, or what only some systems have shown.
var openBeliefs = []belief{
	{"types in the help of hdiutil create", "UDIF, SPARSE, SPARSEBUNDLE",
		helpNames("hdiutil create", "UDIF", "SPARSE", "SPARSEBUNDLE")},
	{"formats in the help of diskutil image create blank", "RAW, UDSB",
		helpNames("diskutil image create blank", "RAW", "UDSB")},
	{"detach at the first try", isDone, withAttached(plainImage, detachPolitely)},
	{"attaching by the kernel alone", readBack, writeAndRead(engine.Spec{Format: diskimage.UDRW, ServedBy: kernel})},
	{"attaching by a helper process", readBack, writeAndRead(engine.Spec{Format: diskimage.UDRW, ServedBy: helper})},
	{"process in the list, of UDSB", isListed, inList(bundleImage, seeServer)},
	{"process in the list, of ASIF", isListed, inList(asifImage, seeServer)},
	{"whole disk first in the list, of ASIF", isListed, inList(asifImage, seeFirst)},
	{"owner of the root, by hdiutil", "this user", withAttached(plainImage, seeOwner)},
	{"owner of the root, by diskutil", "this user", withAttached(rawImage, seeOwner)},
	{"a file renamed while it is attached, in the list", isListed, withAttached(plainImage, renameFile)},
	{"diskutil image resize of an attached image", "busy, status 1",
		whileAttached(rawImage, "diskutil image resize")},
	{"diskutil image create from an attached image", "locked, status 1",
		whileAttached(rawImage, "diskutil image create from")},
	{"space of a deleted file back after an attach, UDRW", isDone, deleteAndSee(plainImage, attachImage)},
	{"space of a deleted file back after an attach, UDSB", isDone, deleteAndSee(bundleImage, attachImage)},
	{"space of a deleted file back after an attach, ASIF", isDone, deleteAndSee(asifImage, attachImage)},
	{"space of a deleted file back after compact, UDSB", isDone, deleteAndSee(bundleImage, compactImage)},
	{"space of a deleted file back after compact, UDSP", isDone, deleteAndSee(sparseImage, compactImage)},
	{"trims in the system's log", isListed, onMac(withAttached(plainImage, seeTrims))},
	{"two passphrases of hdiutil convert", readBack, convertTo(secretImage, engine.Spec{Format: diskimage.UDSB,
		Encryption: "AES-128", Passphrase: []byte("another")})},
	{"Spotlight on a volume with nobrowse", "no index", onMac(withAttached(plainImage, seeIndex))},
	{"a sparse image named .dmg, attached for writing", isDone, onMac(withImage(sparseImage, renameCopy))},
	{"largest band", fmt.Sprint(8 << 30), withImage(engine.Spec{Format: diskimage.UDSB, BandSize: 8 << 30}, seeBandSize)},
	{"language of messages", inEnglish, askIn("")},
	{"language with -AppleLanguages (en)", inEnglish,
		askIn("LC_ALL=C", "-AppleLanguages", "(en)", "-AppleLocale", "en_US")},
	{"language with CFFIXED_USER_HOME", inEnglish, askIn("CFFIXED_USER_HOME=FOLDER")},
}
