package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// invocation is one run of a tool.
type invocation struct {
	*FakeTool
	FakeCall
	verb      string
	opts      map[string]string
	args      []string
	out, said strings.Builder
}

// run does what the verb asks for, as the rule has it.
func (i *invocation) run(ctx context.Context, j command.Job, r FakeRule) (status int, err error) {
	i.pass(i.c.Cost[i.verb])
	switch r.Do {
	case "slow", "sleep":
		i.pass(r.After)
		if r.Do == "sleep" {
			i.slept += r.After
		}
	case "hang":
		return i.hang(ctx, j)
	case "interrupt":
		i.OnInterrupt()
		return i.hang(ctx, j)
	case "lands": // the service of the system goes on without its client
		later := &invocation{FakeTool: i.FakeTool, FakeCall: i.FakeCall, verb: i.verb}
		i.later(j.Deadline+r.After, func() { later.execute(FakeRule{}) })
		return i.hang(ctx, j)
	}
	status, done := i.before(r)
	if !done {
		status = i.execute(r)
	}
	if status == 0 && !done {
		i.after(r)
	}
	switch r.Do {
	case "hang-after":
		return i.hang(ctx, j)
	case "killed":
		return -1, fmt.Errorf("%w: killed", command.ErrSignal)
	case "fail-after":
		fmt.Fprintln(&i.said, r.Text)
		return r.Status, nil
	}
	return status, nil
}

// hang waits for the end of the context or the deadline.
func (i *invocation) hang(ctx context.Context, j command.Job) (int, error) {
	if i.OnHang != nil {
		i.OnHang()
	}
	if ctx.Err() != nil {
		return -1, ctx.Err()
	}
	i.pass(j.Deadline)
	return -1, fmt.Errorf("%w: ended after %s", command.ErrDeadline, j.Deadline)
}

// before is what happens instead of the work.
func (i *invocation) before(r FakeRule) (status int, done bool) {
	switch r.Do {
	case "busy":
		fmt.Fprintf(&i.said, "hdiutil: %s failed - Resource busy\n", i.verb)
		if i.verb == "detach" {
			return 16, true
		}
		return 1, true
	case "eagain":
		fmt.Fprintf(&i.said, "hdiutil: %s: failed. Resource temporarily unavailable (35)\n", i.verb)
		return 35, true
	case "eagain-foreign":
		fmt.Fprintln(&i.said, "hdiutil: 操作失败 - 资源暂时不可用 (35)")
		return 1, true
	case "nothing":
		fmt.Fprintln(&i.out, "created: /somewhere/else")
		return 0, true
	case "fail":
		fmt.Fprintln(&i.said, r.Text)
		if r.Half {
			_ = os.WriteFile(i.positional(), []byte("half"), 0o600)
		}
		return r.Status, true
	}
	return 0, false
}

// positional is the last word that is a path.
func (i *invocation) positional() string {
	for _, a := range slices.Backward(i.Args) {
		if filepath.IsAbs(a) {
			return a
		}
	}
	return ""
}

// after changes what the work printed.
func (i *invocation) after(r FakeRule) {
	text := i.out.String()
	switch r.Do {
	case "garbage":
		text = "\x00\xff\xfe garbage <plist \x1b[31m"
	case "empty":
		text = ""
	case "short":
		text = list("<key>framework</key><string>683.100.3</string><key>images</key><array/>")
	case "truncated":
		text = text[:len(text)*2/3]
	case "licence":
		text = "LICENCE <?xml of all> rights\nAgree Y/N? " + text + "expected   CRC32 $0\n"
	case "deprecated":
		fmt.Fprintf(&i.said, "hdiutil: WARNING: 'hdiutil %s ...' is deprecated. Please use 'diskutil image %s ...' instead.\n", i.verb, i.verb)
	}
	i.out.Reset()
	i.out.WriteString(text)
}

// arity are the options of each verb and whether they take a value. What is not listed is refused.
var arity = map[string]string{
	"create":             "-sectors= -type= -fs= -volname= -layout= -imagekey= -encryption= -stdinpass -nospotlight -plist",
	"attach":             "-plist -nobrowse -owners= -noverify -verify -noautofsck -noautoopen -readonly -kernel -nokernel -nomount -mountpoint= -stdinpass",
	"detach":             "-force",
	"info":               "-plist",
	"imageinfo":          "-plist -stdinpass",
	"verify":             "-stdinpass",
	"checksum":           "-type= -stdinpass",
	"compact":            "-batteryallowed -stdinpass",
	"resize":             "-sectors= -imageonly -limits -stdinpass",
	"convert":            "-format= -o= -tgtimagekey= -encryption= -stdinpass",
	"trim":               "",
	"image create blank": "--format= --size= --fs= --volumeName= --encrypt --stdinpassphrase",
	"image create from":  "--format= --encrypt --stdinpassphrase",
	"image attach":       "--plist --stdinpassphrase --readOnly --noMount --nobrowse --mountPoint=",
	"registry":           "-a -l -r -c= -w=",
	"fsck":               "-q",
	"image info":         "--plist --stdinpassphrase",
	"image resize":       "--plist --size= --image-only --stdinpassphrase",
	"eject":              "",
	"verifyVolume":       "",
	"repairVolume":       "",
	"show":               "--style= --start= --predicate=",
}

func (i *invocation) execute(r FakeRule) int {
	args := i.Args
	for _, a := range args {
		if a == "-help" || a == "--help" {
			return i.help()
		}
	}
	known, ok := arity[i.verb]
	if !ok || i.c.NoImage && strings.HasPrefix(i.verb, "image") && i.verb != "imageinfo" {
		return i.failed(1, "diskutil: did not recognize verb %q", i.verb)
	}
	if i.verb == "image create blank" && i.c.NoASIF {
		known = strings.ReplaceAll(known, "--fs=", "")
	}
	i.opts = map[string]string{}
	words := strings.Fields(i.verb)
	if i.Tool == "ioreg" || i.Tool == "fsck_apfs" {
		words = nil
	}
	for n := len(words); n < len(args); n++ {
		a := args[n]
		switch {
		case !strings.HasPrefix(a, "-"):
			i.args = append(i.args, a)
		case hasField(known, a+"="):
			if n++; n == len(args) {
				return i.failed(1, "hdiutil: %s: option %s needs a value\nUsage: …", i.verb, a)
			}
			i.opts[a] = args[n]
		case hasField(known, a):
			i.opts[a] = "yes"
		default:
			return i.failed(1, "hdiutil: %s: unrecognized option `%s'\nUsage: …", i.verb, a)
		}
	}
	return i.do(r)
}

func hasField(list, word string) bool {
	for f := range strings.FieldsSeq(list) {
		if f == word {
			return true
		}
	}
	return false
}

func (i *invocation) failed(status int, format string, args ...any) int {
	fmt.Fprintf(&i.said, format+"\n", args...)
	return status
}

func (i *invocation) help() int {
	switch {
	case i.c.NoHelp:
	case i.Tool == "diskutil" && i.c.NoImage:
		return i.failed(1, "diskutil: did not recognize verb %q", i.verb)
	case i.Tool == "diskutil" && i.c.Brief:
		fmt.Fprintf(&i.out, "OVERVIEW: Create a disk image\n\nUSAGE: diskutil %s [<options>] <path>\n", i.verb)
		return 0
	case i.verb == "create":
		fmt.Fprintf(&i.said, "create: usage\n\t-type %s\n\t-fs one of: %s\n\t-encryption [AES-128|AES-256]\n\t-[no]spotlight\n",
			strings.Join(or(i.c.Types, "UDIF", "SPARSE", "SPARSEBUNDLE"), "|"),
			strings.Join(or(i.c.Names, "UDF", "MS-DOS FAT32", "HFS+", "Case-sensitive HFS+", "Case-sensitive Journaled HFS+", "Journaled HFS+", "ExFAT", "Case-sensitive APFS", "APFS"), ", "))
	case i.verb == "convert":
		fmt.Fprintln(&i.out, strings.Join(or(i.c.Formats, "UDRW", "UDRO", "UDCO", "UDZO", "ULFO", "ULMO", "UDBZ", "UDTO", "UDSP", "UDSB", "UFBI"), " "))
	case i.verb == "image create blank" && i.c.NoASIF:
		fmt.Fprintln(&i.out, "--format <RAW|UDSB>")
	case i.verb == "image create blank":
		fmt.Fprintln(&i.out, "--format <RAW|ASIF|UDSB>\n-fs, --fs <APFS|ExFAT|MS-DOS|None>")
	case i.verb == "image create from":
		fmt.Fprintln(&i.out, "--format <RAW|UDRO|UDZO|ULFO|ULMO|ASIF|UDSB>")
	}
	return 1
}

func or(list []string, otherwise ...string) []string {
	if list != nil {
		return list
	}
	return otherwise
}

func (i *invocation) do(r FakeRule) int {
	switch i.verb {
	case "info":
		return i.info()
	case "show":
		return i.log()
	case "registry":
		return i.registry()
	}
	if len(i.args) == 0 || i.verb == "image create from" && len(i.args) != 2 || i.verb != "image create from" && len(i.args) != 1 {
		return i.failed(1, "hdiutil: %s: %d operands\nUsage: …", i.verb, len(i.args))
	}
	switch i.verb {
	case "create", "image create blank":
		return i.create()
	case "attach", "image attach":
		return i.attach(r)
	case "detach", "eject":
		return i.detach(r)
	case "convert", "image create from":
		return i.convert()
	case "resize", "image resize":
		return i.resize()
	case "verifyVolume", "repairVolume", "fsck":
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
	if m.FS == "" && i.Tool == "diskutil" {
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

func (i *invocation) attach(r FakeRule) int {
	path, point := i.args[0], i.opts["-mountpoint"]+i.opts["--mountPoint"]
	m, err := i.unlock(path)
	if err == nil && i.Tool == "hdiutil" && m.Format == "ASIF" {
		err = errors.New("this image format is not supported by hdiutil. Please use 'diskutil image attach'")
	}
	if err != nil {
		return i.reason(err)
	}
	a := i.find(func(a *FakeMount) bool { return a.Image == path && a.inode == inodeOf(path) })
	if a != nil {
		i.out.WriteString(list(i.entities(a, a.Point)))
		return 0
	}
	mount := i.opts["-nomount"]+i.opts["--noMount"] == ""
	a = &FakeMount{Image: path, Kind: kindOf(m.FS), ReadOnly: i.opts["-readonly"]+i.opts["--readOnly"] != "", Diskutil: i.Tool == "diskutil",
		Browse: i.opts["-nobrowse"]+i.opts["--nobrowse"] == ""}
	if mount && point == "" {
		point = filepath.Join(i.Dir, "Volumes", filepath.Base(path))
	}
	if mount && a.Kind == "" {
		return i.reason(errors.New("no mountable file systems"))
	}
	i.add(a)
	switch {
	case !mount || r.Do == "unmounted":
		point = ""
	case r.Do == "late":
		n := len(i.calls) // this one
		i.later(r.After, func() {
			if i.mount(a, point) == nil {
				i.calls[n].Late = r.After
			}
		})
	case r.Do == "vanishes":
		i.drop(a)
	default:
		a.ReadOnly = a.ReadOnly || r.Do == "read-only"
		if err := i.mount(a, point); err != nil {
			i.drop(a)
			return i.reason(err)
		}
	}
	i.out.WriteString(list(i.entities(a, point)))
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

func (i *invocation) detach(r FakeRule) int {
	a := i.find(func(a *FakeMount) bool { return i.args[0] == a.device() })
	if a == nil {
		return i.reason(errors.New("No such file or directory"))
	}
	if err := i.unmount(a); err != nil {
		return i.reason(err)
	}
	if r.Do == "unmounts" {
		fmt.Fprintf(&i.out, "\"disk%d\" unmounted.\n", a.Disk)
		return i.failed(16, "hdiutil: couldn't eject \"disk%d\" - Resource busy", a.Disk)
	}
	i.drop(a)
	if r.Do == "lingers" {
		i.nodes[a.Disk] = i.Clock.Now() + r.After
	}
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
		if name, _, _ := strings.Cut(strings.TrimPrefix(m, "handle_apfs_"), ":"); !strings.Contains(strings.Join(i.Args, " "), name) {
			continue
		}
		fmt.Fprintf(&i.out, `{"eventMessage":%q,"senderImagePath":"\/System\/Library\/Extensions\/apfs.kext\/Contents\/MacOS\/apfs","timestamp":"2026-03-23 10:11:12.123456+0100"}`+"\n",
			fmt.Sprintf(m, i.gone+100))
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
	if len(i.disks) > 0 {
		body += "<key>images</key><array>"
		for _, m := range i.disks {
			body += "<dict><key>image-path</key><string>" + m.Image + "</string>"
			if i.c.Server > 0 {
				body += fmt.Sprintf("<key>hdid-pid</key><integer>%d</integer>", i.c.Server)
			}
			body += i.entities(m, m.Point) + "</dict>"
		}
		body += "</array>"
	}
	i.out.WriteString(list(body))
	return 0
}

// registry is what ioreg shows: without images nothing.
func (i *invocation) registry() int {
	if len(i.disks) == 0 {
		return 0
	}
	fmt.Fprint(&i.out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><array>")
	for _, m := range i.disks {
		media := func(name, children string) string {
			return "<key>IORegistryEntryChildren</key><array><dict><key>BSD Name</key><string>" + name + "</string>" + children + "</dict></array>"
		}
		fmt.Fprintf(&i.out, "<dict><key>DiskImageURL</key><string>%s</string>%s</dict>", (&url.URL{Scheme: "file", Path: m.Image}).String(),
			media(fmt.Sprintf("disk%d", m.Disk), media(fmt.Sprintf("disk%ds2", m.Disk), media(fmt.Sprintf("disk%d", m.Disk+100), media(fmt.Sprintf("disk%ds1", m.Disk+100), "")))))
	}
	fmt.Fprintln(&i.out, "</array></plist>")
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
	files, err := contents(source)
	if err != nil {
		return i.reason(err)
	}
	status := i.put(m, target)
	if status != 0 {
		return status
	}
	if err := writeContents(target, files); err != nil {
		return i.reason(err)
	}
	return 0
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
	m, err := i.unlock(i.args[0])
	if err != nil {
		return i.reason(err)
	}
	if fi, err := os.Stat(i.args[0]); err == nil && m.Format == "UDRW" && m.Encryption == "" {
		m.Size = fi.Size()
	}
	switch i.verb {
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
