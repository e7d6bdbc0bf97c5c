package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
)

// helps are all help texts: programs look in them for what a tool can do.
func (x *session) helps() {
	for _, verb := range []string{"create", "attach", "detach", "info", "imageinfo", "compact", "resize", "convert", "verify", "checksum",
		"isencrypted", "chpass", "unmount", "mountvol", "pmap"} {
		x.ask("help/"+verb, "", argv.Help{Verb: verb})
	}
	for _, verb := range []string{"image", "image create blank", "image create from", "image attach", "image info", "image resize"} {
		x.ask("help/diskutil-"+strings.ReplaceAll(verb, " ", "-"), "", argv.HelpDU{Verb: verb})
	}
}

// byDiskutil makes the kinds that diskutil knows, and asks hdiutil of them, too.
func (x *session) byDiskutil() {
	fs := "APFS"
	if x.o.Vendor != "Apple" {
		fs = "ExFAT"
	}
	for _, k := range []struct {
		name, format, ext, fs string
		encrypted             bool
	}{
		{"du-raw", "RAW", ".dmg", fs, false}, {"du-udsb", "UDSB", ".sparsebundle", fs, false}, {"du-asif", "ASIF", ".asif", fs, false},
		{"du-asif-encrypted", "ASIF", ".asif", fs, true}, {"du-exfat", "RAW", ".dmg", "ExFAT", false}, {"du-fat", "RAW", ".dmg", "MS-DOS", false},
		{"du-none", "RAW", ".dmg", "None", false},
	} {
		c := argv.CreateBlank{Image: x.path(k.name + k.ext), Format: k.format, Size: small, Filesystem: k.fs, Volume: "CAPTURE"}
		if k.encrypted {
			c.Passphrase = x.o.Passphrase
		}
		if _, ok := x.ask(k.name+"/create", "", c); !ok {
			continue
		}
		x.ask(k.name+"/info", ImageInfo, argv.ImageInfoDU{Image: c.Image, Passphrase: c.Passphrase})
		x.ask(k.name+"/imageinfo", "", argv.ImageInfo{Image: c.Image, Passphrase: c.Passphrase}) // of ASIF hdiutil may refuse it
		x.ask(k.name+"/hdiutil-attach", "", argv.Attach{Image: c.Image, Passphrase: c.Passphrase})
		x.release()
		a := argv.AttachImage{Image: c.Image, MountPoint: x.point(k.name), Passphrase: c.Passphrase}
		if k.fs == "None" {
			a.MountPoint = ""
		}
		x.attached(k.name, a, func(parse.Attached) { x.ask(k.name+"/info-attached", Info, argv.Info{}) })
		x.ask(k.name+"/limits", LimitsDU, argv.ResizeImage{Image: c.Image, Passphrase: c.Passphrase})
		x.ask(k.name+"/resize", "", argv.ResizeImage{Image: c.Image, Size: 2 * small, Passphrase: c.Passphrase})
		resize := argv.Command{Tool: argv.Diskutil, Verb: "image resize", Args: []string{"image", "resize", "--plist", "--size", fmt.Sprint(3 * small)}}
		if !k.encrypted { // a passphrase would have to come with it
			resize.Args = append(resize.Args, c.Image)
			x.run(k.name+"/resize-plist", "", resize)
		}
		x.ask(k.name+"/eject", "", argv.Eject{Device: "/dev/disk987654"})
		if k.encrypted {
			x.ask(k.name+"/attach-wrong", "", argv.AttachImage{Image: c.Image, Passphrase: []byte("wrong")})
			x.release()
		}
	}
	for _, format := range []string{"RAW", "UDRO", "UDZO", "ULFO", "ULMO", "ASIF", "UDSB"} {
		target := x.path("from-" + format + map[string]string{"ASIF": ".asif", "UDSB": ".sparsebundle"}[format])
		x.ask("du-from/"+strings.ToLower(format), "", argv.CreateFrom{Source: x.path("du-raw.dmg"), Target: target, Format: format})
	}
}

// refusals are commands that cannot succeed: what tools say, and with what status.
func (x *session) refusals() {
	missing := x.path("missing.dmg")
	x.ask("missing/attach", "", argv.Attach{Image: missing})
	x.ask("missing/imageinfo", "", argv.ImageInfo{Image: missing})
	x.ask("missing/diskutil-attach", "", argv.AttachImage{Image: missing})
	x.ask("missing/detach", "", argv.Detach{Device: "/dev/disk987654"})
	junk := x.path("junk.dmg")
	if err := os.WriteFile(junk, []byte(strings.Repeat("no image. ", 1000)), 0o600); err == nil {
		x.ask("junk/attach", "", argv.Attach{Image: junk})
		x.release()
		x.ask("junk/imageinfo", "", argv.ImageInfo{Image: junk})
		x.ask("junk/verify", "", argv.Verify{Image: junk})
		x.ask("junk/diskutil-info", "", argv.ImageInfoDU{Image: junk})
	}
	x.ask("exists/create", "", argv.Create{Image: junk, Type: "UDIF", Size: small, Filesystem: x.filesystem(), Volume: "CAPTURE"})
	x.run("option/attach", "", argv.Command{Tool: argv.Hdiutil, Verb: "attach", Args: []string{"attach", "-nosuchoption", junk}})
	x.run("verb/hdiutil", "", argv.Command{Tool: argv.Hdiutil, Verb: "nosuchverb", Args: []string{"nosuchverb"}})
	x.run("verb/diskutil", "", argv.Command{Tool: argv.Diskutil, Verb: "nosuchverb", Args: []string{"nosuchverb"}})
	x.run("format-blank/create", "", argv.Command{Tool: argv.Hdiutil, Verb: "create", Args: []string{"create", "-sectors", fmt.Sprint(small / 512),
		"-format", "UDRW", "-fs", x.filesystem(), "-volname", "CAPTURE", "-plist", x.path("format-blank.dmg")}})
	// Whether the language of the environment changes what is said.
	if len(x.o.Hdiutil) > 0 {
		for _, lang := range []string{"C", "de_DE.UTF-8"} {
			args := []string{"imageinfo", missing}
			line := append([]string{"/usr/bin/env", "LC_ALL=" + lang, "LANG=" + lang}, x.o.Hdiutil...)
			x.program("language/"+lang, "", argv.Command{Tool: argv.Hdiutil, Verb: "imageinfo", Args: args}, append(line, args...))
		}
	}
}

// system asks the commands that know the machine, on a Mac.
func (x *session) system() {
	if x.o.Vendor != "Apple" {
		return
	}
	for _, line := range [][]string{
		{"/usr/bin/sw_vers"}, {"/usr/bin/pmset", "-g"}, {"/usr/bin/pmset", "-g", "batt"}, {"/usr/bin/pmset", "-g", "therm"},
		{"/usr/bin/notifyutil", "-g", "com.apple.system.thermalpressurelevel"}, {"/usr/bin/tmutil", "status"},
		{"/usr/bin/tmutil", "listlocalsnapshots", "/"}, {"/usr/bin/mdutil", "-s", "/"}, {"/usr/bin/fdesetup", "status"},
		{"/usr/sbin/diskutil", "info", "-plist", "/"}, {"/usr/sbin/ioreg", "-a", "-l", "-r", "-c", "IOBlockStorageDriver", "-w", "0"}, {"/usr/sbin/sysctl", "hw.nperflevels", "hw.perflevel0.name", "sysctl.proc_translated",
			"kern.hv_vmm_present", "kern.memorystatus_vm_pressure_level", "vm.swapusage"},
	} {
		tool := filepath.Base(line[0])
		x.program("system/"+strings.Join(append([]string{tool}, flat(line[1:])...), "-"), "",
			argv.Command{Tool: argv.Tool(tool), Args: line[1:]}, line)
	}
}

// log asks what APFS has said of trimming since the capture began, on a Mac.
func (x *session) log(name string) {
	if x.o.Vendor != "Apple" {
		return
	}
	if cmd, err := (argv.TrimLog{Since: x.o.Now}).Command(); err == nil {
		x.program(name+"/trim-log", "", cmd, append([]string{"/usr/bin/log"}, cmd.Args...))
	}
}

func flat(args []string) (out []string) {
	for _, a := range args[:min(2, len(args))] {
		out = append(out, strings.Trim(a, "-/"))
	}
	return out
}

// ours are the disks of images that lie in the folder of this capture.
func (x *session) ours() (list []string, err error) {
	if len(x.o.Hdiutil) == 0 {
		return nil, nil
	}
	all, _, err := parse.Info(x.silent(argv.Info{}).Stdout)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if !strings.HasPrefix(a.Image, x.work+string(filepath.Separator)) {
			continue
		}
		disk, err := a.Disk()
		if err != nil {
			return nil, err
		}
		list = append(list, disk)
	}
	return list, nil
}

// silent runs hdiutil without keeping the answer.
func (x *session) silent(b builder) proc.Result {
	cmd, err := b.Command()
	if err != nil {
		return proc.Result{}
	}
	line := append(append([]string{}, x.o.Hdiutil...), cmd.Args...)
	r, _ := proc.Run(x.ctx, proc.Job{Path: line[0], Args: line[1:], Dir: x.work, Deadline: time.Minute, Grace: 5 * time.Second}) // looked at afterwards
	return r
}
