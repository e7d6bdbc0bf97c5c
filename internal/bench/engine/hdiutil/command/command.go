// Package command builds the command lines of hdiutil and diskutil, runs them,
// and parses what they print.
//
// Sizes are given in the one unit that a tool cannot misread: sectors of 512
// bytes for hdiutil, bytes for diskutil. A passphrase is never an argument:
// hdiutil reads it from standard input up to the end or to a NUL, so that a
// newline would belong to it; diskutil reads one line. Paths and devices in
// [Args] are absolute, so that no tool takes them for an option.
package command

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/image"
)

// Tool is the program that a command runs.
type Tool string

// The tools.
const (
	Hdiutil  Tool = "hdiutil"
	Diskutil Tool = "diskutil"
	Log      Tool = "log" // log(1), which prints the system's log
)

// Units of sizes, in bytes: sizes given to a tool are multiples of it.
const (
	Sector       = image.SectorSize
	DiskutilUnit = 4096
)

// maxPassphrase is the longest passphrase in bytes: two of them fit into a
// pipe.
const maxPassphrase = 1024

// Command is one command line.
type Command struct {
	Tool Tool
	Verb string   // for messages: "create", "image attach"
	Args []string // all arguments, the verb included
	// Input is written to standard input, nil for none. It may hold a
	// passphrase: the caller wipes it after the last run.
	Input []byte
	Err   error // an invalid passphrase: the command must not be run
}

// Args are the values of a command line. A verb uses those that its row of the
// grammar names.
type Args struct {
	Image, Target string // files
	Device        string // an image's whole disk, or the one that carries a volume
	MountPoint    string // an existing, empty folder; "": attach without mounting
	Size          int64  // bytes, a multiple of the tool's unit
	Band          int64  // bytes, 0: the tool's default
	Format        string // of -type, -format or --format
	Filesystem    string // as -fs or --fs names it, "": none
	Volume        string // name of the volume, "" for none
	Encryption    string // AES-128, AES-256, or "" for none; diskutil always uses AES-256
	Secrets       [][]byte
	ReadOnly      bool
	Verify        bool // the stored checksum, before attaching
	Kernel        bool // attach without a helper process
	Helper        bool // attach with a helper process
	ImageOnly     bool // resize: leave partition and file system as they are
	Battery       bool // compact also on battery
	Force         bool
	NoSpotlight   bool // only for tools with this option in their help: the manual page does not list it
}

// grammar has the arguments that follow each verb, as hdiutil(1) and
// diskutil(8) of macOS 15 to 27 list them. "$Name" is a field of [Args],
// "${Name/512}" one in sectors. The words from "[Name?" to "]" are for fields
// that are not empty, those from "[!Name?" for empty ones.
var grammar = map[string]string{
	"hdiutil create": "-sectors ${Size/512} -type $Format " +
		"[Filesystem? -fs $Filesystem -volname $Volume ] [!Filesystem? -layout NONE ] " +
		"[Band? -imagekey sparse-band-size=${Band/512} ] [Encryption? -encryption $Encryption -stdinpass ] " +
		"[NoSpotlight? -nospotlight ] -plist $Image",
	"hdiutil attach": "-plist -nobrowse -owners on [Verify? -verify ] [!Verify? -noverify ] -noautofsck -noautoopen " +
		"[ReadOnly? -readonly ] [Kernel? -kernel ] [Helper? -nokernel ] [!MountPoint? -nomount ] " +
		"[MountPoint? -mountpoint $MountPoint ] [Secrets? -stdinpass ] $Image",
	"hdiutil detach":    "$Device [Force? -force ]",
	"hdiutil info":      "-plist",
	"hdiutil imageinfo": "-plist [Secrets? -stdinpass ] $Image",
	"hdiutil verify":    "[Secrets? -stdinpass ] $Image",
	"hdiutil compact":   "[Battery? -batteryallowed ] [Secrets? -stdinpass ] $Image",
	"hdiutil resize":    "-sectors ${Size/512} [ImageOnly? -imageonly ] [Secrets? -stdinpass ] $Image",
	"hdiutil convert": "$Image -format $Format -o $Target [Band? -tgtimagekey sparse-band-size=${Band/512} ] " +
		"[Encryption? -encryption $Encryption ] [Secrets? -stdinpass ]",
	"diskutil image create blank": "[Encryption? --encrypt ] [Secrets? --stdinpassphrase ] --format $Format " +
		"--size $Size [Filesystem? --fs $Filesystem ] [Volume? --volumeName $Volume ] $Image",
	"diskutil image create from": "[Encryption? --encrypt ] [Secrets? --stdinpassphrase ] --format $Format " +
		"$Image $Target",
	// Without a mount it takes --noMount alone, which conflicts with options
	// about mounts.
	"diskutil image attach": "--plist [Secrets? --stdinpassphrase ] [ReadOnly? --readOnly ] " +
		"[!MountPoint? --noMount ] [MountPoint? --nobrowse --mountPoint $MountPoint ] $Image",
	"diskutil image info": "--plist [Secrets? --stdinpassphrase ] $Image",
	"diskutil image resize": "--size $Size [ImageOnly? --image-only ] [Secrets? --stdinpassphrase ] " +
		"$Image",
	"diskutil eject":        "$Device",
	"diskutil verifyVolume": "$Device",
	"diskutil repairVolume": "$Device",
}

// New is the command of a tool and verb, such as "hdiutil create". Of two
// passphrases that of the source comes first; nil ones are left out.
func New(line string, a Args) Command {
	a.Secrets = slices.DeleteFunc(slices.Clone(a.Secrets), func(p []byte) bool { return p == nil })
	c := start(line)
	leaveOut := false
	for word := range strings.FieldsSeq(grammar[line]) {
		field, isTest := strings.CutSuffix(strings.TrimPrefix(word, "["), "?")
		switch {
		case isTest:
			field, negated := strings.CutPrefix(field, "!")
			leaveOut = (a.value(field) == "") != negated
		case word == "]":
			leaveOut = false
		case !leaveOut:
			c.Args = append(c.Args, os.Expand(word, a.value))
		}
	}
	if strings.Contains(grammar[line], "-stdinpass") {
		c.Input, c.Err = c.Tool.input(a.Secrets)
	}
	return c
}

// start is a command line with the words of the verb alone.
func start(line string) Command {
	tool, verb, _ := strings.Cut(line, " ")
	return Command{Tool: Tool(tool), Verb: verb, Args: strings.Fields(verb)}
}

// value is the text of a field, "" where it is empty.
func (a Args) value(name string) string {
	name, inSectors := strings.CutSuffix(name, "/512")
	v := reflect.ValueOf(a).FieldByName(name)
	switch {
	case v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0:
		return ""
	case v.Kind() == reflect.String:
		return v.String()
	case inSectors:
		return strconv.FormatInt(v.Int()/Sector, 10)
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	}
	return name
}

// input is standard input with the passphrases, in one allocation: the caller
// wipes it. For hdiutil it is their bytes with a NUL between two of them and no
// newline, for diskutil one line each.
func (t Tool) input(secrets [][]byte) ([]byte, error) {
	separator, forbidden, name := "\x00", "\x00", "a zero byte"
	if t == Diskutil {
		separator, forbidden, name = "\n", "\r\n\x00", "a line break or a zero byte"
	}
	for _, p := range secrets {
		switch {
		case len(p) == 0 || len(p) > maxPassphrase:
			return nil, fmt.Errorf("passing the passphrase: %d bytes, want 1 to %d", len(p), maxPassphrase)
		case bytes.ContainsAny(p, forbidden):
			return nil, fmt.Errorf("passing the passphrase: %s does not accept %s in it", t, name)
		}
	}
	switch {
	case len(secrets) == 0:
		return nil, nil
	case t == Diskutil:
		secrets = append(secrets, nil) // ends the last line
	}
	return bytes.Join(secrets, []byte(separator)), nil
}

// Help is the command that prints the help of a tool and verb.
func Help(line string) Command {
	c := start(line)
	option := "-help"
	if c.Tool == Diskutil {
		option = "--help"
	}
	c.Args = append(c.Args, option)
	return c
}

// apfsTrims selects the messages of APFS about what it trims when it mounts a
// volume, and about a backing store that it makes sparse. They start with the
// name of the kernel function: spaceman_scan_free_blocks up to macOS 26,
// spaceman_trim_free_blocks in APFS 3277 of macOS 27 (symbols of both kexts).
const apfsTrims = `senderImagePath CONTAINS "apfs" AND (eventMessage CONTAINS "spaceman_scan_free_blocks"` +
	` OR eventMessage CONTAINS "spaceman_trim_free_blocks" OR eventMessage CONTAINS "set_backingstore")`

// TrimLog is `log show` of APFS's messages about trimming since a time, one
// JSON object per line. The time is given in whole seconds since 1970, which no
// time zone changes.
func TrimLog(since time.Time) Command {
	c := start("log show")
	c.Args = append(c.Args, "--style", "ndjson", "--start", "@"+strconv.FormatInt(since.Unix(), 10),
		"--predicate", apfsTrims)
	return c
}

// Wipe overwrites the input.
func (c Command) Wipe() { clear(c.Input) }

// String is the command line for messages. Passphrases are never arguments, so
// that it holds no secret.
func (c Command) String() string {
	words := []string{string(c.Tool)}
	for _, a := range c.Args {
		if a == "" || strings.ContainsAny(a, " \t'\"\\$&;()<>*?`|") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
