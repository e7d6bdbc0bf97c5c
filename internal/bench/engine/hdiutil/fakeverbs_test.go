package hdiutil

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// state is what lasts between calls.
type state struct {
	Calls  map[string]int
	Images []FakeMount
	Next   int // last disk number
	Gone   int // disk number of the last that was detached
}

func loadState(dir string) (state, error) {
	s := state{Calls: map[string]int{}, Next: 3}
	text, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if os.IsNotExist(err) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (s state) save(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, "state.tmp")
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, "state.json"))
}

// invocation is one run.
type invocation struct {
	dir, tool, verb string
	c               FakeConfig
	s               state
	opts            map[string]string
	args            []string
	input           string
	out, said       strings.Builder
}

func run(dir, tool string, args []string) int {
	i := &invocation{dir: dir, tool: tool}
	if err := i.load(args); err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		return 99
	}
	rule, _ := i.rule()
	status, done := i.before(rule)
	if !done {
		status = i.execute(args)
		if status == 0 {
			i.after(rule)
		}
	}
	if err := i.s.save(dir); err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		return 99
	}
	fmt.Print(i.out.String())
	fmt.Fprint(os.Stderr, i.said.String())
	if rule.Do == "hang-after" {
		if f, err := os.OpenFile(filepath.Join(dir, FakeHanging), os.O_WRONLY, 0); err == nil {
			f.Close()
		}
		hang()
	}
	if rule.Do == "killed" {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		hang()
	}
	return status
}

func (i *invocation) load(args []string) error {
	text, err := os.ReadFile(filepath.Join(i.dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(text, &i.c)
	}
	if err != nil {
		return err
	}
	if i.s, err = loadState(i.dir); err != nil {
		return err
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	i.input = string(input)
	call := FakeCall{Tool: i.tool, Args: args, Env: os.Environ(), Input: i.input}
	i.verb = call.Verb()
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(i.dir, "calls.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// rule is the one for this call of the verb.
func (i *invocation) rule() (FakeRule, bool) {
	i.s.Calls[i.verb]++
	n := i.s.Calls[i.verb]
	for _, r := range i.c.Rules {
		if (r.Verb == i.verb || r.Verb == "*") && n >= r.From && (r.To == 0 || n <= r.To) {
			return r, true
		}
	}
	return FakeRule{}, false
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
	case "hang":
		hang()
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
	for n := len(os.Args) - 1; n > 3; n-- {
		if filepath.IsAbs(os.Args[n]) {
			return os.Args[n]
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

// hang is deaf to every polite end.
func hang() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if r, w, err := os.Pipe(); err == nil { // that nobody writes to
		_, _ = r.Read(make([]byte, 1))
		w.Close()
	}
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
	"image info":         "--plist --stdinpassphrase",
	"image resize":       "--plist --size= --image-only --stdinpassphrase",
	"eject":              "",
	"verifyVolume":       "",
	"repairVolume":       "",
	"show":               "--style= --start= --predicate=",
}

func (i *invocation) execute(args []string) int {
	for _, a := range args {
		if a == "-help" || a == "--help" {
			return i.help()
		}
	}
	known, ok := arity[i.verb]
	if !ok || i.tool == "diskutil" && i.c.NoImage {
		return i.failed(1, "diskutil: did not recognize verb %q", i.verb)
	}
	if i.verb == "image create blank" && i.c.NoASIF {
		known = strings.ReplaceAll(known, "--fs=", "")
	}
	i.opts = map[string]string{}
	words := strings.Fields(i.verb)
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
	return i.do()
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
	case i.tool == "diskutil" && i.c.NoImage:
		return i.failed(1, "diskutil: did not recognize verb %q", i.verb)
	case i.tool == "diskutil" && i.c.Brief:
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
	at := slices.IndexFunc(i.s.Images, func(a FakeMount) bool { return a.Image == image })
	if at < 0 {
		kind := kindOf(m.FS)
		if i.opts["-nomount"]+i.opts["--noMount"] == "" && point == "" {
			point = filepath.Join("/Volumes", "Untitled")
		}
		if point != "" && kind == "" {
			return i.reason(errors.New("no mountable file systems"))
		}
		i.s.Next++
		i.s.Images = append(i.s.Images, FakeMount{Image: image, Point: point, Kind: kind, Disk: i.s.Next,
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
	at := slices.IndexFunc(i.s.Images, func(a FakeMount) bool { return i.args[0] == fmt.Sprintf("/dev/disk%d", a.Disk) })
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
			body += "<dict><key>image-path</key><string>" + m.Image + "</string>"
			if i.c.Server > 0 {
				body += fmt.Sprintf("<key>hdid-pid</key><integer>%d</integer>", i.c.Server)
			}
			body += i.entities(m) + "</dict>"
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
