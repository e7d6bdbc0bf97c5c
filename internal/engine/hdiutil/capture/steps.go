package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
)

// Sizes of images, bytes: what file systems need at least, and not much more.
const (
	small    = 48 << 20
	mib      = 1 << 20
	bandSize = 1 * mib
)

// everything asks all there is to ask.
func (x *session) everything() {
	x.system()
	x.helps()
	x.ask("info/before", Info, argv.Info{})
	fs := x.filesystem()
	for _, k := range []struct {
		name, typ, ext string
		band           int64
		encryption     string
	}{
		{"udrw", "UDIF", ".dmg", 0, ""}, {"udsp", "SPARSE", ".sparseimage", 0, ""}, {"udsb", "SPARSEBUNDLE", ".sparsebundle", bandSize, ""},
		{"udrw-encrypted", "UDIF", ".dmg", 0, "AES-256"}, {"udsb-encrypted", "SPARSEBUNDLE", ".sparsebundle", bandSize, "AES-128"},
	} {
		c := argv.Create{Image: x.path(k.name + k.ext), Type: k.typ, Size: small, Filesystem: fs, Volume: "CAPTURE", Band: k.band}
		if k.encryption != "" {
			c.Encryption, c.Passphrase = k.encryption, x.o.Passphrase
		}
		if _, ok := x.ask(k.name+"/create", "", c); ok {
			x.image(k.name, c.Image, c.Passphrase)
		}
	}
	x.filesystems()
	x.readOnly(fs)
	x.byDiskutil()
	x.refusals()
	x.ask("info/after", Info, argv.Info{})
}

func (x *session) path(name string) string { return filepath.Join(x.work, name) }

// filesystem is the first that this tool makes.
func (x *session) filesystem() string {
	if x.o.Vendor == "Apple" {
		return "APFS"
	}
	return "ext4"
}

// image asks everything of one image that hdiutil has made.
func (x *session) image(name, image string, pass []byte) {
	x.ask(name+"/imageinfo", ImageInfo, argv.ImageInfo{Image: image, Passphrase: pass})
	x.run(name+"/imageinfo-text", "", plain(argv.Hdiutil, "imageinfo", pass, image))
	x.ask(name+"/isencrypted", IsEncrypted, argv.IsEncrypted{Image: image})
	x.run(name+"/isencrypted-text", IsEncrypted, plain(argv.Hdiutil, "isencrypted", nil, image))
	x.ask(name+"/diskutil-info", ImageInfo, argv.ImageInfoDU{Image: image, Passphrase: pass})
	x.attached(name, argv.Attach{Image: image, MountPoint: x.point(name), Passphrase: pass}, func(at parse.Attached) {
		x.ask(name+"/info-attached", Info, argv.Info{})
		x.ask(name+"/attach-again", "", argv.Attach{Image: image, Passphrase: pass})
		x.ask(name+"/compact-attached", "", argv.Compact{Image: image, AllowBattery: true, Passphrase: pass})
		x.ask(name+"/resize-attached", "", argv.Resize{Image: image, Size: 2 * small, Passphrase: pass})
		if x.o.Vendor == "Apple" && len(at.Entities) > 0 {
			x.run(name+"/diskutil-volume", "", argv.Command{Tool: argv.Diskutil, Verb: "info",
				Args: []string{"info", "-plist", at.Entities[len(at.Entities)-1].Device}})
		}
		x.busy(name, at)
	})
	x.byMountPoint(name, image, pass)
	x.log(name)
	x.attached(name+"/read-only", argv.Attach{Image: image, MountPoint: x.point(name), ReadOnly: true, Passphrase: pass}, nil)
	x.attached(name+"/no-mount", argv.Attach{Image: image, Passphrase: pass}, nil)
	x.ask(name+"/compact", Compact, argv.Compact{Image: image, AllowBattery: true, Passphrase: pass})
	x.ask(name+"/compact-on-power", Compact, argv.Compact{Image: image, Passphrase: pass})
	x.ask(name+"/limits", Limits, argv.Limits{Image: image, Passphrase: pass})
	x.ask(name+"/limits-diskutil", LimitsDU, argv.ResizeImage{Image: image, Passphrase: pass})
	x.ask(name+"/resize", "", argv.Resize{Image: image, Size: 2 * small, Passphrase: pass})
	x.ask(name+"/verify", "", argv.Verify{Image: image, Passphrase: pass})
	if pass != nil {
		x.ask(name+"/attach-wrong", "", argv.Attach{Image: image, Passphrase: []byte("wrong " + string(pass))})
		x.release()
	}
}

// plain is a command without -plist.
func plain(tool argv.Tool, verb string, pass []byte, image string) argv.Command {
	c := argv.Command{Tool: tool, Verb: verb, Args: []string{verb, image}}
	if pass != nil {
		c.Args = []string{verb, "-stdinpass", image}
		c.Input = append([]byte{}, pass...)
	}
	return c
}

// attached attaches, lets f look, and detaches by the device.
func (x *session) attached(name string, a builder, f func(parse.Attached)) {
	r, ok := x.ask(name+"/attach", Attach, a)
	at, _, err := parse.Attach(r.Stdout)
	if !ok || err != nil {
		x.release()
		return
	}
	disk, err := at.Disk()
	if err == nil {
		x.held = append(x.held, disk)
		if f != nil {
			f(at)
		}
	}
	x.ask(name+"/detach", "", argv.Detach{Device: disk})
	x.release()
}

// byMountPoint asks for a detach by the mount point, which some systems refuse where they take the device.
func (x *session) byMountPoint(name, image string, pass []byte) {
	r, ok := x.ask(name+"/attach-to-detach", Attach, argv.Attach{Image: image, MountPoint: x.point(name), Passphrase: pass})
	if at, _, err := parse.Attach(r.Stdout); ok && err == nil && len(at.Mounted()) > 0 {
		x.run(name+"/detach-mount-point", "", argv.Command{Tool: argv.Hdiutil, Verb: "detach", Args: []string{"detach", at.Mounted()[0]}})
	}
	x.release()
}

// point is a new mount point.
func (x *session) point(name string) string {
	dir := x.path("mnt" + strconv.Itoa(len(x.c.Answers)) + "-" + name)
	x.err = errors.Join(x.err, os.Mkdir(dir, 0o700))
	return dir
}

// busy asks for a detach while a file is open.
func (x *session) busy(name string, at parse.Attached) {
	mounts := at.Mounted()
	disk, err := at.Disk()
	if len(mounts) == 0 || err != nil {
		return
	}
	f, err := os.Create(filepath.Join(mounts[0], "open"))
	if err != nil {
		return // the volume is not this user's
	}
	x.ask(name+"/detach-busy", "", argv.Detach{Device: disk})
	f.Close()
}

// release detaches by force what is attached below the folder of the images.
func (x *session) release() {
	x.held = nil
	_ = x.tidy()
}

// tidy detaches everything of ours, whatever happened; it is no part of the capture.
func (x *session) tidy() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), time.Minute)
	defer cancel()
	quiet := &session{ctx: ctx, o: x.o, out: x.out, work: x.work, c: &Capture{}}
	quiet.o.Say = nil
	for range 3 {
		list, err := quiet.ours()
		if err != nil || len(list) == 0 {
			return err
		}
		for _, disk := range list {
			quiet.silent(argv.Detach{Device: disk, Force: true})
		}
	}
	return errors.New("images stay attached: see hdiutil info")
}

// filesystems makes one image of every file system.
func (x *session) filesystems() {
	list := []string{"APFS", "Case-sensitive APFS", "HFS+", "Journaled HFS+", "Case-sensitive HFS+", "Case-sensitive Journaled HFS+", "ExFAT", "MS-DOS FAT32"}
	if x.o.Vendor != "Apple" {
		list = append(list, "ext4", "xfs", "btrfs")
	}
	for _, fs := range list {
		name := "fs-" + strings.ReplaceAll(strings.ToLower(fs), " ", "-")
		size := int64(small)
		switch fs {
		case "xfs":
			size = 384 * mib
		case "btrfs":
			size = 160 * mib
		}
		c := argv.Create{Image: x.path(name + ".dmg"), Type: "UDIF", Size: size, Filesystem: fs, Volume: "CAPTURE"}
		if _, ok := x.ask(name+"/create", "", c); ok {
			x.ask(name+"/imageinfo", ImageInfo, argv.ImageInfo{Image: c.Image})
			x.attached(name, argv.Attach{Image: c.Image, MountPoint: x.point(name)}, nil)
			x.ask(name+"/limits", Limits, argv.Limits{Image: c.Image})
		}
		_ = os.Remove(c.Image)
	}
	x.ask("nospotlight/create", "", argv.Create{Image: x.path("nospotlight.dmg"), Type: "UDIF", Size: small, Filesystem: x.filesystem(), Volume: "CAPTURE", NoSpotlight: true})
	x.ask("bare/create", "", argv.Create{Image: x.path("bare.dmg"), Type: "UDIF", Size: small})
	x.attached("bare", argv.Attach{Image: x.path("bare.dmg")}, nil)
}

// readOnly converts to every other kind, and verifies.
func (x *session) readOnly(fs string) {
	source := argv.Create{Image: x.path("source.dmg"), Type: "UDIF", Size: small, Filesystem: fs, Volume: "CAPTURE"}
	if _, ok := x.ask("source/create", "", source); !ok {
		return
	}
	x.run("convert-plist/convert", "", argv.Command{Tool: argv.Hdiutil, Verb: "convert",
		Args: []string{"convert", source.Image, "-format", "UDRO", "-plist", "-o", x.path("convert-plist.dmg")}})
	for _, format := range []string{"UDRW", "UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI", "UDTO", "UDSP", "UDSB"} {
		name := "to-" + strings.ToLower(format)
		ext := map[string]string{"UDTO": ".cdr", "UDSP": ".sparseimage", "UDSB": ".sparsebundle"}[format]
		if ext == "" {
			ext = ".dmg"
		}
		c := argv.Convert{Source: source.Image, Target: x.path(name + ext), Format: format}
		if _, ok := x.ask(name+"/convert", "", c); !ok {
			continue
		}
		x.ask(name+"/imageinfo", ImageInfo, argv.ImageInfo{Image: c.Target})
		x.ask(name+"/verify", "", argv.Verify{Image: c.Target})
		x.ask(name+"/checksum", "", argv.Checksum{Image: c.Target, Type: "CRC32"})
		x.attached(name, argv.Attach{Image: c.Target, MountPoint: x.point(name), Verify: true, ReadOnly: format != "UDRW" && format != "UDSB" && format != "UDSP"}, nil)
		_ = os.RemoveAll(c.Target)
	}
}
