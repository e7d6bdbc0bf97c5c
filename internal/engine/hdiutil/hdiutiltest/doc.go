// Package hdiutiltest is a stand-in for hdiutil and diskutil, for tests: a mode of
// the test's own program. It obeys the grammar of the real tools and refuses any
// option that it does not know, keeps images that look like real ones from the
// outside, "mounts" by moving files into the mount point, and can be told to fail
// in every way that real tools were seen to. It proves nothing about disks.
package hdiutiltest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Rule says how the tool behaves in some of the calls of a verb.
type Rule struct {
	Verb     string // "attach", "image attach", "detach", …; "*" is every verb
	From, To int    // calls of the verb, from 1; To 0 means for ever
	// Do is one of: busy, eagain, eagain-foreign, hang, hang-after, killed (by a signal, when its work is done), garbage, empty,
	// truncated, short (a list without its last images), nothing (status 0 and nothing happens), deprecated, licence, fail.
	Do     string
	Text   string // of fail, on stderr
	Status int    // of fail
	Half   bool   // fail: leave half a file behind
}

// Config is what the tool is.
type Config struct {
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
	Trims   string   // the function that APFS logs trims by; "" is that of macOS 26
	Rules   []Rule
}

// Call is one call of the tool.
type Call struct {
	Tool  string
	Args  []string
	Env   []string
	Input string
}

// Verb are the words before the first option or path.
func (c Call) Verb() string {
	n := 0
	for n < len(c.Args) && n < 3 && !strings.HasPrefix(c.Args[n], "-") && !strings.HasPrefix(c.Args[n], "/") {
		n++
	}
	return strings.Join(c.Args[:n], " ")
}

// Mounted is an attached image.
type Mounted struct {
	Image, Point, Kind string
	Disk               int
	ReadOnly           bool
	Diskutil           bool
}

// Tool is a stand-in with its state in a folder.
type Tool struct{ Dir string }

// New makes a stand-in in a folder of its own. The test's TestMain has to call [Main].
func New(dir string, c Config) (*Tool, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return &Tool{Dir: dir}, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// Hanging is the name of a FIFO in the tool's folder that hang-after opens for
// writing before it hangs, if there is one: a test that reads it knows that the work is done.
const Hanging = "hanging"

const mark = "dmgbench-stand-in"

// Command is the program with the arguments before a command's own; tool is hdiutil or diskutil.
func (t *Tool) Command(tool string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{exe, mark, t.Dir, tool}
}

// Calls are all calls so far.
func (t *Tool) Calls() ([]Call, error) {
	text, err := os.ReadFile(filepath.Join(t.Dir, "calls.jsonl"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Call
	for line := range strings.Lines(string(text)) {
		var c Call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// Attached are the attached images.
func (t *Tool) Attached() ([]Mounted, error) {
	s, err := loadState(t.Dir)
	return s.Images, err
}

// Renumber gives all attached images other disk numbers, as after a detach and attach behind our back.
func (t *Tool) Renumber(by int) error {
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
func (t *Tool) Forget() error {
	s, err := loadState(t.Dir)
	if err != nil {
		return err
	}
	s.Images = nil
	return s.save(t.Dir)
}

// Occupy attaches an image behind the tool's back, mounted elsewhere.
func (t *Tool) Occupy(image, point string) error {
	s, err := loadState(t.Dir)
	if err != nil {
		return err
	}
	s.Next++
	s.Images = append(s.Images, Mounted{Image: image, Point: point, Kind: "apfs", Disk: s.Next})
	return s.save(t.Dir)
}

// Main runs the stand-in and ends the process, if the program was started as one.
func Main() {
	if len(os.Args) > 3 && os.Args[1] == mark {
		os.Exit(run(os.Args[2], os.Args[3], os.Args[4:]))
	}
}
