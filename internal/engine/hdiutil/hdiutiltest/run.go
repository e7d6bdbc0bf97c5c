package hdiutiltest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// state is what lasts between calls.
type state struct {
	Calls  map[string]int
	Images []Mounted
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
	c               Config
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
		if f, err := os.OpenFile(filepath.Join(dir, Hanging), os.O_WRONLY, 0); err == nil {
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
	call := Call{Tool: i.tool, Args: args, Env: os.Environ(), Input: i.input}
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
func (i *invocation) rule() (Rule, bool) {
	i.s.Calls[i.verb]++
	n := i.s.Calls[i.verb]
	for _, r := range i.c.Rules {
		if (r.Verb == i.verb || r.Verb == "*") && n >= r.From && (r.To == 0 || n <= r.To) {
			return r, true
		}
	}
	return Rule{}, false
}

// before is what happens instead of the work.
func (i *invocation) before(r Rule) (status int, done bool) {
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
func (i *invocation) after(r Rule) {
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
	"isencrypted":        "-plist",
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
