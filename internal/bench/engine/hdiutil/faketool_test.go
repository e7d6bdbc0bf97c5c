package hdiutil

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/system/clock"
)

// A model of macOS as the driver sees it: hdiutil, diskutil and log, the images that they attach, disks, and the mount
// table. It runs in this process on a clock of its own, which may be virtual, and takes the command lines that the tools
// would be given. It obeys the grammar of Apple's tools, refuses options that it does not know, keeps images that look like
// real ones from the outside, "mounts" by putting files into the mount point, and can be made to fail in every way that was
// seen of Apple's tools.

// FakeRule says how the tool behaves in some of the calls of a verb.
type FakeRule struct {
	Verb     string // "attach", "image attach", "detach", …; "*" is every verb
	From, To int    // calls of the verb, from 1; To 0 means for ever
	// Do is one of:
	//   - instead of the work: busy, eagain, eagain-foreign, fail, nothing (status 0), hang, lands (a hang that is ended, and
	//     the work is done after it);
	//   - after the work: hang-after, killed (by a signal), fail-after;
	//   - with another output: garbage, empty, truncated, short (a list without its last images), deprecated, licence;
	//   - of attach: late (the volume is mounted later), unmounted (never), vanishes (the disk is gone again), read-only;
	//   - of detach: lingers (the device's node is there for some time), unmounts (the volume goes, the disk stays);
	//   - of any: slow, sleep (the machine sleeps), interrupt (of the run, while the tool works).
	Do     string
	Text   string        // of fail, on stderr
	Status int           // of fail
	Half   bool          // fail: leave half a file behind
	After  time.Duration // of lands, late, lingers, slow and sleep: how long
}

// FakeConfig is what the tool is.
type FakeConfig struct {
	Vendor  string                   // "Apple" unless given
	Types   []string                 // of `create -help`; nil: all
	Names   []string                 // file systems of `create -help`; nil: Apple's
	Formats []string                 // of `convert -help`; nil: all
	NoHelp  bool                     // help texts are empty
	Brief   bool                     // help texts of diskutil end with 0 and name no formats
	NoASIF  bool                     // diskutil of macOS 15, which makes APFS alone and has no --fs
	NoImage bool                     // diskutil has no verb image
	Bare    bool                     // diskutil puts APFS on the image without a partition table
	NoDisk  bool                     // the system makes no disk of APFS containers, as if they were damaged
	Server  int                      // process that serves every attached image; 0: the list names none
	Trims   string                   // the function that APFS logs trims by; "" is that of macOS 26
	Makes   bool                     // a missing mount point is made, and removed with its volume: macOS 27
	Owners  bool                     // volumes are mounted with their owners, whatever was asked for
	Reuse   bool                     // the numbers of disks are used again at once
	Cost    map[string]time.Duration // by verb: how long a run takes
	Rules   []FakeRule
}

// FakeCall is one call of the tool.
type FakeCall struct {
	Tool         string
	Args         []string
	Input        string
	Began, Ended time.Duration // on the clock
	Rule         string        // Do of the rule that held
	Status       int           // -1: it did not run to its end
	Late         time.Duration // of attach: how long after it the volume was mounted
}

// Verb are the words before the first option or path; of programs without verbs it is a name.
func (c FakeCall) Verb() string {
	if name := map[string]string{"ioreg": "registry", "fsck_apfs": "fsck"}[c.Tool]; name != "" {
		return name
	}
	n := 0
	for n < len(c.Args) && n < 3 && !strings.HasPrefix(c.Args[n], "-") && !strings.HasPrefix(c.Args[n], "/") {
		n++
	}
	return strings.Join(c.Args[:n], " ")
}

// FakeTool is the machine.
type FakeTool struct {
	Dir    string // the tools' folder
	Clock  clock.Clock
	OnHang func() // is called when a tool begins to hang
	// OnInterrupt is called by the rule interrupt, which then hangs.
	OnInterrupt func()
	// Broken is what the driver did that no real Mac would bear: a mount point removed under a volume, say.
	Broken []string

	c      FakeConfig
	mu     sync.Mutex
	calls  []FakeCall
	count  map[string]int // by verb
	disks  []*FakeMount
	next   int // last disk number
	gone   int // disk number of the last that was detached
	slept  time.Duration
	nodes  map[int]time.Duration // of disks that are gone: until when their node is there
	events []fakeEvent
}

// NewFakeTool makes a machine without images.
func NewFakeTool(dir string, c FakeConfig) *FakeTool {
	return &FakeTool{Dir: dir, c: c, count: map[string]int{}, next: 3, nodes: map[int]time.Duration{},
		Clock: clock.NewVirtual(time.Unix(0, 0))}
}

// Command is the program with the arguments before a command's own; tool is hdiutil, diskutil, log, ioreg or fsck_apfs.
func (t *FakeTool) Command(tool string) []string { return []string{filepath.Join(t.Dir, tool)} }

// Calls are all calls so far.
func (t *FakeTool) Calls() []FakeCall { return t.calls }

// Host is the system without the tools.
func (t *FakeTool) Host() *Host {
	return &Host{Mounts: t.mounts, Exists: t.exists, Trim: func(context.Context, string) (int64, error) {
		return 0, errors.ErrUnsupported
	}}
}

// Run runs one of the tools, and other programs as they are.
func (t *FakeTool) Run(ctx context.Context, j command.Job) (r command.Result, err error) {
	if filepath.Dir(j.Path) != t.Dir {
		return command.Run(ctx, j)
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	call := FakeCall{Tool: filepath.Base(j.Path), Args: j.Args, Input: string(j.Input), Began: t.Clock.Now()}
	rule := t.rule(call.Verb())
	call.Rule = rule.Do
	i := &invocation{FakeTool: t, FakeCall: call, verb: call.Verb()}
	r.Status, err = i.run(ctx, j, rule)
	i.Status, i.Ended = r.Status, t.Clock.Now()
	t.calls = append(t.calls, i.FakeCall)
	r.Stdout, r.Stderr, r.Duration = []byte(i.out.String()), []byte(i.said.String()), i.Ended-i.Began
	return r, err
}

// rule is the one for this call of the verb.
func (t *FakeTool) rule(verb string) FakeRule {
	t.count[verb]++
	n := t.count[verb]
	for _, r := range t.c.Rules {
		if (r.Verb == verb || r.Verb == "*") && n >= r.From && (r.To == 0 || n <= r.To) {
			return r
		}
	}
	return FakeRule{}
}

// meta is what an image of the stand-in is; it lies behind the first kilobyte.
type meta struct {
	Format, FS, Encryption, Pass string
	Size, Band                   int64
}

const metaAt, metaLen = 1024, 1024

// head is the first kilobyte as the format has it.
func (m meta) head() []byte {
	h := make([]byte, metaAt)
	switch {
	case m.Encryption != "":
		copy(h, "encrcdsa")
		binary.BigEndian.PutUint32(h[8:], 2)
		bits, _ := strconv.Atoi(strings.TrimPrefix(m.Encryption, "AES-"))
		binary.BigEndian.PutUint32(h[0x18:], uint32(bits))
	case m.Format == "UDSP":
		copy(h, "sprs")
	case m.Format == "ASIF":
		copy(h, "shdw")
	case m.Format == "UDRW" || m.Format == "UDTO":
		copy(h[512:], "EFI PART")
	}
	return h
}

func (m meta) write(path string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	text = append(text, bytes.Repeat([]byte{' '}, metaLen-len(text))...)
	if m.Format == "UDSB" {
		return m.writeBundle(path, text)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(append(m.head(), text...)); err != nil {
		return err
	}
	switch m.Format {
	case "UDRW", "UDTO":
		return f.Truncate(max(m.Size, metaAt+metaLen))
	case "UDSP", "ASIF":
		return nil
	}
	trailer := append([]byte("koly"), make([]byte, 508)...)
	binary.BigEndian.PutUint64(trailer[224:], 1)  // the length of a property list
	_, err = f.WriteAt(trailer, contentsAt+4<<20) // behind the contents of any volume here
	return err
}

func (m meta) writeBundle(path string, text []byte) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	band := m.Band
	if band == 0 {
		band = 8 << 20
	}
	info := list(fmt.Sprintf("<key>CFBundleInfoDictionaryVersion</key><string>6.0</string><key>band-size</key><integer>%d</integer>"+
		"<key>bundle-backingstore-version</key><integer>1</integer><key>diskimage-bundle-type</key>"+
		"<string>com.apple.diskimage.sparsebundle</string><key>size</key><integer>%d</integer>", band, m.Size))
	token := make([]byte, metaAt)
	if m.Encryption != "" {
		token = m.head()
	}
	band0 := make([]byte, contentsAt)
	copy(band0[512:], "EFI PART")
	return errors.Join(os.WriteFile(filepath.Join(path, "Info.plist"), []byte(info), 0o600),
		os.WriteFile(filepath.Join(path, "token"), append(token, text...), 0o600), os.Mkdir(filepath.Join(path, "bands"), 0o700),
		os.WriteFile(filepath.Join(path, "bands", "0"), band0, 0o600), os.WriteFile(filepath.Join(path, "bands", "a"), make([]byte, 1<<20), 0o600))
}

// rewrite changes what an existing image says of itself.
func (m meta) rewrite(path string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if m.Format == "UDSB" {
		path = filepath.Join(path, "token")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(append(text, bytes.Repeat([]byte{' '}, metaLen-len(text))...), metaAt)
	return err
}

var errNotRecognized = errors.New("image not recognized")

// read reads an image. One whose head was harmed is not recognized.
func read(path string) (meta, error) {
	file, bundle := path, false
	if fi, err := os.Stat(path); err != nil {
		return meta{}, errors.New("No such file or directory")
	} else if bundle = fi.IsDir(); bundle {
		file = filepath.Join(path, "token")
		if info, err := os.ReadFile(filepath.Join(path, "Info.plist")); err != nil || !bytes.Contains(info, []byte("band-size")) {
			return meta{}, errNotRecognized
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return meta{}, errNotRecognized
	}
	defer f.Close()
	head, text := make([]byte, metaAt), make([]byte, metaLen)
	var m meta
	if _, err := f.ReadAt(head, 0); err != nil {
		return meta{}, errNotRecognized
	}
	if _, err := f.ReadAt(text, metaAt); err != nil || json.Unmarshal(text, &m) != nil {
		return meta{}, errNotRecognized
	}
	if !bundle && !bytes.Equal(head, m.head()) {
		return meta{}, errNotRecognized
	}
	return m, nil
}

// passphrase is what the tool would take from its input.
func (i *invocation) passphrase(n int) string {
	between := "\x00"
	if i.Tool == "diskutil" {
		between = "\n"
	}
	all := strings.Split(i.Input, between)
	if n >= len(all) {
		return ""
	}
	return all[n]
}

// unlock reads an image and checks its passphrase.
func (i *invocation) unlock(path string) (meta, error) {
	m, err := read(path)
	if err == nil && m.Encryption != "" && m.Pass != hashed(i.passphrase(0)) {
		err = errors.New("Authentication error")
	}
	return m, err
}

func hashed(pass string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(pass)))[:16] }

func list(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>` + body + `</dict></plist>
`
}

func dict(pairs ...string) string {
	var b strings.Builder
	for n := 0; n < len(pairs); n += 2 {
		if pairs[n+1] != "" || pairs[n] == "content-hint" {
			fmt.Fprintf(&b, "<key>%s</key><string>%s</string>", pairs[n], pairs[n+1])
		}
	}
	return "<dict>" + b.String() + "</dict>"
}

// entities is the list of one attached image, in either dialect, never in the order of the disks.
func (i *invocation) entities(m *FakeMount, point string) string {
	dev, hints := "/dev/", [3]string{"7C3457EF-0000-11AA-AA11-00306543ECAC", "EF57347C-0000-11AA-AA11-00306543ECAC", "41504653-0000-11AA-AA11-00306543ECAC"}
	if m.Diskutil && i.Tool == "diskutil" {
		dev, hints = "", [3]string{"Apple_APFS", "Apple_APFS_Container", "Apple_APFS_Volume"}
	}
	disk := fmt.Sprintf("%sdisk%d", dev, m.Disk)
	synthesized := fmt.Sprintf("%sdisk%d", dev, m.Disk+100)
	var e []string
	if m.Kind == "apfs" && i.c.NoDisk {
	} else if m.Kind == "apfs" {
		e = append(e, dict("content-hint", hints[2], "dev-entry", synthesized+"s1", "mount-point", point, "volume-kind", "apfs"),
			dict("content-hint", hints[1], "dev-entry", synthesized))
	} else {
		e = append(e, dict("content-hint", "Microsoft Basic Data", "dev-entry", disk+"s1", "mount-point", point, "volume-kind", m.Kind))
	}
	if m.Diskutil && i.c.Bare {
		e = append(e, dict("content-hint", "", "dev-entry", disk))
	} else {
		e = append(e, dict("content-hint", hints[0], "dev-entry", disk+"s2"), dict("content-hint", "GUID_partition_scheme", "dev-entry", disk))
	}
	return "<key>system-entities</key><array>" + strings.Join(e, "") + "</array>"
}
