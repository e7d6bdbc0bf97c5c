package hdiutiltest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func (i *invocation) do() int {
	switch i.verb {
	case "info":
		return i.info()
	case "show":
		return i.log()
	}
	if len(i.args) == 0 || i.verb == "image create from" && len(i.args) != 2 || i.verb != "image create from" && len(i.args) != 1 {
		return i.failed(1, "hdiutil: %s: %d operands\nUsage: …", i.verb, len(i.args))
	}
	switch i.verb {
	case "create", "image create blank":
		return i.create()
	case "attach", "image attach":
		return i.attach()
	case "detach", "eject":
		return i.detach()
	case "convert", "image create from":
		return i.convert()
	case "resize", "image resize":
		return i.resize()
	case "verifyVolume", "repairVolume":
		fmt.Fprintln(&i.out, "The volume appears to be OK")
		return 0
	case "trim":
		return 0
	}
	return i.describe()
}

func (i *invocation) reason(err error) int {
	return i.failed(1, "hdiutil: %s failed - %s", i.verb, err)
}

func sectors(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n * 512
}

func (i *invocation) create() int {
	m := meta{FS: i.opts["-fs"] + i.opts["--fs"], Size: sectors(i.opts["-sectors"]), Encryption: i.opts["-encryption"]}
	formats := map[string]string{"UDIF": "UDRW", "SPARSE": "UDSP", "SPARSEBUNDLE": "UDSB", "RAW": "UDRW", "UDSB": "UDSB", "ASIF": "ASIF"}
	m.Format = formats[i.opts["-type"]+i.opts["--format"]]
	if n, err := strconv.ParseInt(i.opts["--size"], 10, 64); err == nil {
		m.Size = n
	}
	if m.FS == "" && i.tool == "diskutil" {
		m.FS = "APFS"
	}
	if i.opts["--encrypt"] != "" {
		m.Encryption = "AES-256"
	}
	if m.Encryption != "" {
		m.Pass = hashed(i.passphrase(0))
	}
	if v, ok := strings.CutPrefix(i.opts["-imagekey"], "sparse-band-size="); ok {
		m.Band = sectors(v)
	}
	if m.Format == "" || m.Size <= 0 {
		return i.reason(errors.New("Invalid argument"))
	}
	return i.put(m, i.args[0])
}

func (i *invocation) put(m meta, path string) int {
	switch err := m.write(path); {
	case errors.Is(err, os.ErrExist):
		return i.reason(errors.New("File exists"))
	case err != nil:
		return i.reason(err)
	}
	if i.opts["-plist"] != "" {
		fmt.Fprintf(&i.out, "<plist version=\"1.0\"><array><string>%s</string></array></plist>\n", path)
	} else {
		fmt.Fprintf(&i.out, "created: %s\n", path)
	}
	return 0
}

func (i *invocation) attach() int {
	image, point := i.args[0], i.opts["-mountpoint"]+i.opts["--mountPoint"]
	m, err := i.unlock(image)
	if err == nil && i.tool == "hdiutil" && m.Format == "ASIF" {
		err = errors.New("this image format is not supported by hdiutil. Please use 'diskutil image attach'")
	}
	if err != nil {
		return i.reason(err)
	}
	at := slices.IndexFunc(i.s.Images, func(a Mounted) bool { return a.Image == image })
	if at < 0 {
		kind := kindOf(m.FS)
		if i.opts["-nomount"]+i.opts["--noMount"] == "" && point == "" {
			point = filepath.Join("/Volumes", "Untitled")
		}
		if point != "" && kind == "" {
			return i.reason(errors.New("no mountable file systems"))
		}
		i.s.Next++
		i.s.Images = append(i.s.Images, Mounted{Image: image, Point: point, Kind: kind, Disk: i.s.Next,
			ReadOnly: i.opts["-readonly"]+i.opts["--readOnly"] != "", Diskutil: i.tool == "diskutil"})
		at = len(i.s.Images) - 1
		if point != "" {
			if err := moveAll(i.contents(image), point); err != nil {
				return i.reason(err)
			}
		}
	}
	i.out.WriteString(list(i.entities(i.s.Images[at])))
	return 0
}

func kindOf(fs string) string {
	switch {
	case strings.Contains(fs, "APFS"):
		return "apfs"
	case strings.Contains(fs, "HFS"):
		return "hfs"
	case strings.Contains(fs, "MS-DOS"):
		return "msdos"
	case fs == "None":
		return ""
	}
	return strings.ToLower(fs)
}

func (i *invocation) detach() int {
	at := slices.IndexFunc(i.s.Images, func(a Mounted) bool { return i.args[0] == fmt.Sprintf("/dev/disk%d", a.Disk) })
	if at < 0 {
		return i.reason(errors.New("No such file or directory"))
	}
	a := i.s.Images[at]
	if a.Point != "" {
		if err := moveAll(a.Point, i.contents(a.Image)); err != nil {
			return i.reason(err)
		}
	}
	i.s.Images, i.s.Gone = slices.Delete(i.s.Images, at, at+1), a.Disk
	fmt.Fprintf(&i.out, "\"disk%d\" ejected.\n", a.Disk)
	return 0
}

// log is what log(1) shows of APFS: the container that was there last, and another one. It shows what the predicate names.
func (i *invocation) log() int {
	fmt.Fprintln(&i.out, "Filtering the log data using \"…\"")
	trims := cmp.Or(i.c.Trims, "spaceman_scan_free_blocks")
	for _, m := range []string{
		"handle_apfs_set_backingstore:6172: disk%[1]ds1 Set backing store as sparse", trims + ":4106: disk%[1]d scan took 0.000722 s, trims took 0.000643 s",
		trims + ":4119: disk%[1]d 2382929 blocks trimmed in 7 extents (91 us/trim, 10886 trims/s)",
		trims + ":4106: disk%[1]d7 scan took 1.5 s, trims took 1.4 s",
	} {
		if name, _, _ := strings.Cut(strings.TrimPrefix(m, "handle_apfs_"), ":"); !strings.Contains(strings.Join(os.Args, " "), name) {
			continue
		}
		fmt.Fprintf(&i.out, `{"eventMessage":%q,"senderImagePath":"\/System\/Library\/Extensions\/apfs.kext\/Contents\/MacOS\/apfs","timestamp":"2026-03-23 10:11:12.123456+0100"}`+"\n",
			fmt.Sprintf(m, i.s.Gone+100))
	}
	fmt.Fprintln(&i.out, `{"count":4,"finished":1}`)
	return 0
}

func (i *invocation) info() int {
	vendor := i.c.Vendor
	if vendor == "" {
		vendor = "Apple"
	}
	body := "<key>framework</key><string>683.100.3</string><key>vendor</key><string>" + vendor + "</string>"
	if len(i.s.Images) > 0 {
		body += "<key>images</key><array>"
		for _, m := range i.s.Images {
			body += "<dict><key>image-path</key><string>" + m.Image + "</string>" + i.entities(m) + "</dict>"
		}
		body += "</array>"
	}
	i.out.WriteString(list(body))
	return 0
}

func (i *invocation) convert() int {
	source, target := i.args[0], i.opts["-o"]
	if i.verb == "image create from" {
		target = i.args[1]
	}
	m, err := i.unlock(source)
	if err != nil {
		return i.reason(err)
	}
	m.Format, m.Band = i.opts["-format"]+i.opts["--format"], 0
	if m.Format == "RAW" {
		m.Format = "UDRW"
	}
	if v, ok := strings.CutPrefix(i.opts["-tgtimagekey"], "sparse-band-size="); ok {
		m.Band = sectors(v)
	}
	second := 0
	if m.Encryption != "" {
		second = 1
	}
	m.Encryption, m.Pass = i.opts["-encryption"], ""
	if i.opts["--encrypt"] != "" {
		m.Encryption = "AES-256"
	}
	if m.Encryption != "" {
		m.Pass = hashed(i.passphrase(second))
	}
	return i.put(m, target)
}

func (i *invocation) resize() int {
	m, err := i.unlock(i.args[0])
	if err != nil {
		return i.reason(err)
	}
	if i.opts["-limits"] != "" {
		fmt.Fprintf(&i.out, "2048\t%d\t18014398509481903\n", m.Size/512)
		return 0
	}
	size := sectors(i.opts["-sectors"])
	if n, err := strconv.ParseInt(i.opts["--size"], 10, 64); err == nil {
		size = n
	}
	if m.Format == "UDRW" {
		err = os.Truncate(i.args[0], size)
	} else if m.Format == "UDSB" {
		info := filepath.Join(i.args[0], "Info.plist")
		var text []byte
		text, err = os.ReadFile(info)
		text = []byte(strings.Replace(string(text), fmt.Sprintf("<key>size</key><integer>%d<", m.Size), fmt.Sprintf("<key>size</key><integer>%d<", size), 1))
		err = errors.Join(err, os.WriteFile(info, text, 0o600))
	}
	m.Size = size
	if err = errors.Join(err, m.rewrite(i.args[0])); err != nil {
		return i.reason(err)
	}
	return 0
}

// describe are the verbs that look at an image file.
func (i *invocation) describe() int {
	m, err := read(i.args[0])
	if err == nil && i.verb != "isencrypted" {
		m, err = i.unlock(i.args[0])
	}
	if err != nil {
		return i.reason(err)
	}
	if fi, err := os.Stat(i.args[0]); err == nil && m.Format == "UDRW" && m.Encryption == "" {
		m.Size = fi.Size()
	}
	switch i.verb {
	case "isencrypted":
		i.out.WriteString(list(fmt.Sprintf("<key>encrypted</key><%t/>", m.Encryption != "")))
	case "imageinfo":
		i.out.WriteString(list(fmt.Sprintf("<key>Format</key><string>%s</string><key>Size Information</key><dict><key>Total Bytes</key><integer>%d</integer></dict>", m.Format, m.Size)))
	case "image info":
		locked := ""
		if m.Encryption != "" {
			locked = "<key>Encryption Info</key>" + dict("Encryption Type", m.Encryption)
		}
		i.out.WriteString(list(fmt.Sprintf("<key>Image Format</key><string>%s</string><key>Size Info</key><dict><key>Total Bytes</key><integer>%d</integer></dict>%s", m.Format, m.Size, locked)))
	case "verify":
		fmt.Fprintf(&i.said, "hdiutil: verify: checksum of %q is VALID\n", i.args[0])
	case "compact":
		if m.Format == "UDSB" {
			_ = os.Remove(filepath.Join(i.args[0], "bands", "a"))
		}
		fmt.Fprint(&i.out, "Starting to compact…\nReclaiming free space…\n....\nFinishing compaction…\nReclaimed 1 MB out of 1023.6 GB possible.\n")
	}
	return 0
}
