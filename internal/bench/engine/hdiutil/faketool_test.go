package hdiutil

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A stand-in for hdiutil and diskutil: a mode of the test's own program. It obeys the grammar of Apple's tools, refuses options
// that it does not know, keeps images that look like real ones from the outside, "mounts" by moving files into the mount point,
// and can be made to fail in every way that was seen of Apple's tools.

// FakeRule says how the tool behaves in some of the calls of a verb.
type FakeRule struct {
	Verb     string // "attach", "image attach", "detach", …; "*" is every verb
	From, To int    // calls of the verb, from 1; To 0 means for ever
	// Do is one of: busy, eagain, eagain-foreign, hang, hang-after, killed (by a signal, when its work is done), garbage, empty,
	// truncated, short (a list without its last images), nothing (status 0 and nothing happens), deprecated, licence, fail.
	Do     string
	Text   string // of fail, on stderr
	Status int    // of fail
	Half   bool   // fail: leave half a file behind
}

// FakeConfig is what the tool is.
type FakeConfig struct {
	Vendor  string   // "Apple" unless given
	Types   []string // of `create -help`; nil: all
	Names   []string // file systems of `create -help`; nil: Apple's
	Formats []string // of `convert -help`; nil: all
	NoHelp  bool     // help texts are empty
	Brief   bool     // help texts of diskutil end with 0 and name no formats
	NoASIF  bool     // diskutil of macOS 15, which makes APFS alone and has no --fs
	NoImage bool     // diskutil has no verb image
	Bare    bool     // diskutil puts APFS on the image without a partition table
	NoDisk  bool     // the system makes no disk of APFS containers, as if they were damaged
	Server  int      // process that serves every attached image; 0: the list names none
	Trims   string   // the function that APFS logs trims by; "" is that of macOS 26
	Rules   []FakeRule
}

// FakeCall is one call of the tool.
type FakeCall struct {
	Tool  string
	Args  []string
	Env   []string
	Input string
}

// Verb are the words before the first option or path.
func (c FakeCall) Verb() string {
	n := 0
	for n < len(c.Args) && n < 3 && !strings.HasPrefix(c.Args[n], "-") && !strings.HasPrefix(c.Args[n], "/") {
		n++
	}
	return strings.Join(c.Args[:n], " ")
}

// FakeMount is an attached image.
type FakeMount struct {
	Image, Point, Kind string
	Disk               int
	ReadOnly           bool
	Diskutil           bool
}

// FakeTool is a stand-in with its state in a folder.
type FakeTool struct{ Dir string }

// NewFakeTool makes a stand-in in a folder of its own. The test's TestMain has to call [RunAsFakeTool].
func NewFakeTool(dir string, c FakeConfig) (*FakeTool, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return &FakeTool{Dir: dir}, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// FakeHanging is the name of a FIFO in the tool's folder that hang-after opens for
// writing before it hangs, if there is one: a test that reads it knows that the work is done.
const FakeHanging = "hanging"

const mark = "dmgbench-stand-in"

// Command is the program with the arguments before a command's own; tool is hdiutil or diskutil.
func (t *FakeTool) Command(tool string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{exe, mark, t.Dir, tool}
}

// Calls are all calls so far.
func (t *FakeTool) Calls() ([]FakeCall, error) {
	text, err := os.ReadFile(filepath.Join(t.Dir, "calls.jsonl"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []FakeCall
	for line := range strings.Lines(string(text)) {
		var c FakeCall
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// Attached are the attached images.
func (t *FakeTool) Attached() ([]FakeMount, error) {
	s, err := loadState(t.Dir)
	return s.Images, err
}

// Renumber gives all attached images other disk numbers, as after a detach and attach behind our back.
func (t *FakeTool) Renumber(by int) error {
	s, err := loadState(t.Dir)
	if err != nil {
		return err
	}
	for i := range s.Images {
		s.Images[i].Disk += by
	}
	return s.save(t.Dir)
}

// Forget takes all attached images away, as if somebody had detached them.
func (t *FakeTool) Forget() error {
	s, err := loadState(t.Dir)
	if err != nil {
		return err
	}
	s.Images = nil
	return s.save(t.Dir)
}

// Occupy attaches an image behind the tool's back, mounted elsewhere.
func (t *FakeTool) Occupy(image, point string) error {
	s, err := loadState(t.Dir)
	if err != nil {
		return err
	}
	s.Next++
	s.Images = append(s.Images, FakeMount{Image: image, Point: point, Kind: "apfs", Disk: s.Next})
	return s.save(t.Dir)
}

// RunAsFakeTool runs the stand-in and ends the process, if the program was started as one.
func RunAsFakeTool() {
	if len(os.Args) > 3 && os.Args[1] == mark {
		os.Exit(run(os.Args[2], os.Args[3], os.Args[4:]))
	}
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
	binary.BigEndian.PutUint64(trailer[224:], 1) // the length of a property list
	_, err = f.WriteAt(trailer, metaAt+metaLen)
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
	band0 := make([]byte, 1<<20)
	copy(band0[512:], "EFI PART")
	return errors.Join(os.WriteFile(filepath.Join(path, "Info.plist"), []byte(info), 0o600),
		os.WriteFile(filepath.Join(path, "token"), append(token, text...), 0o600), os.Mkdir(filepath.Join(path, "bands"), 0o700),
		os.WriteFile(filepath.Join(path, "bands", "0"), band0, 0o600), os.WriteFile(filepath.Join(path, "bands", "a"), band0, 0o600))
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
	if i.tool == "diskutil" {
		between = "\n"
	}
	all := strings.Split(i.input, between)
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

// contents is where the files of an unmounted volume are.
func (i *invocation) contents(image string) string {
	return filepath.Join(i.dir, "contents-"+hashed(image))
}

func moveAll(from, to string) error {
	if err := errors.Join(os.MkdirAll(to, 0o700), os.MkdirAll(from, 0o700)); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	for _, e := range list {
		err = errors.Join(err, os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
	return err
}

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
func (i *invocation) entities(m FakeMount) string {
	dev, hints := "/dev/", [3]string{"7C3457EF-0000-11AA-AA11-00306543ECAC", "EF57347C-0000-11AA-AA11-00306543ECAC", "41504653-0000-11AA-AA11-00306543ECAC"}
	if m.Diskutil && i.tool == "diskutil" {
		dev, hints = "", [3]string{"Apple_APFS", "Apple_APFS_Container", "Apple_APFS_Volume"}
	}
	disk := fmt.Sprintf("%sdisk%d", dev, m.Disk)
	synthesized := fmt.Sprintf("%sdisk%d", dev, m.Disk+100)
	var e []string
	if m.Kind == "apfs" && i.c.NoDisk {
	} else if m.Kind == "apfs" {
		e = append(e, dict("content-hint", hints[2], "dev-entry", synthesized+"s1", "mount-point", m.Point, "volume-kind", "apfs"),
			dict("content-hint", hints[1], "dev-entry", synthesized))
	} else {
		e = append(e, dict("content-hint", "Microsoft Basic Data", "dev-entry", disk+"s1", "mount-point", m.Point, "volume-kind", m.Kind))
	}
	if m.Diskutil && i.c.Bare {
		e = append(e, dict("content-hint", "", "dev-entry", disk))
	} else {
		e = append(e, dict("content-hint", hints[0], "dev-entry", disk+"s2"), dict("content-hint", "GUID_partition_scheme", "dev-entry", disk))
	}
	return "<key>system-entities</key><array>" + strings.Join(e, "") + "</array>"
}
