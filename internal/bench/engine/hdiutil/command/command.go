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
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dmgbench/internal/image"
)

// Tool is the program that a command runs.
type Tool string

// The tools.
const (
	Hdiutil  Tool = "hdiutil"
	Diskutil Tool = "diskutil"
	Log      Tool = "log"   // log(1), which prints the system's log
	Ioreg    Tool = "ioreg" // ioreg(8), which prints the I/O registry
	FsckAPFS Tool = "fsck_apfs"
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
	Browse        bool // mount as Finder does: shown to users and to Spotlight
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
	// Owners are ignored, as both tools do unless they are asked: the root of a
	// volume that diskutil made belongs to root.
	"hdiutil attach": "-plist [!Browse? -nobrowse ] -owners off [Verify? -verify ] [!Verify? -noverify ] -noautofsck " +
		"-noautoopen " +
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
	// --noMount conflicts with --mountPoint and --mountOptions, not with
	// --nobrowse. Without --mountOptions owners are ignored.
	"diskutil image attach": "--plist [Secrets? --stdinpassphrase ] [ReadOnly? --readOnly ] [!Browse? --nobrowse ] " +
		"[!MountPoint? --noMount ] [MountPoint? --mountPoint $MountPoint ] $Image",
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

// Registry prints the part of the I/O registry that is about attached images, as
// a property list.
func Registry() Command {
	return Command{Tool: Ioreg, Verb: "registry", Args: []string{"-a", "-l", "-r", "-c", registryClass, "-w", "0"}}
}

// QuickCheck checks the APFS volume or container on a device ("/dev/disk9s1")
// that is not mounted. It reads the raw device, past the cache.
func QuickCheck(device string) Command {
	return Command{Tool: FsckAPFS, Verb: "fsck", Args: []string{"-q", strings.Replace(device, "/dev/", "/dev/r", 1)}}
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

// maxOutput bounds how much of each output is read, in bytes.
const maxOutput = 16 << 20

// Job is one run of a program.
type Job struct {
	Path     string   // absolute
	Args     []string // without the program's name
	Input    []byte   // standard input, nil for /dev/null
	Deadline time.Duration
	Grace    time.Duration // between SIGTERM and SIGKILL, more than 0
	Dir      string        // the working directory, also for the files of the output
}

// Result is what a program that ran did.
type Result struct {
	Stdout, Stderr []byte
	Status         int // exit status, -1 if a signal ended it
	Duration       time.Duration
}

// Errors that callers test for.
var (
	ErrMissing  = errors.New("the program is missing")
	ErrDeadline = errors.New("it did not end in time")
	// ErrSignal means a signal that this package did not send: from the system
	// when memory ran short, or from a person.
	ErrSignal = errors.New("a signal ended it")
)

// running is held by the program that runs.
var running = make(chan struct{}, 1)

// Run runs a program to its end and returns its output and status. Programs run
// one at a time, each in a session of its own with a small fixed environment.
// Its output goes to files without a name: a helper that outlives the program
// and inherits a pipe would keep the reader of the pipe waiting. At the
// deadline or the end of the context Run ends the whole process group, first
// with SIGTERM.
//
// An error means that the program did not run to its end: [ErrMissing],
// [ErrDeadline], [ErrSignal], or the context's error. The result then has the
// output so far, and no process of the group is left.
func Run(ctx context.Context, j Job) (r Result, err error) {
	if !filepath.IsAbs(j.Path) {
		return r, fmt.Errorf("running %q: want an absolute path", j.Path)
	}
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return r, ctx.Err()
	}
	var outputs [2]*os.File
	for i := range outputs { // no other program can open them, and they disappear with their last descriptor
		if outputs[i], err = os.CreateTemp(j.Dir, ".out-*"); err == nil {
			defer outputs[i].Close()
			err = os.Remove(outputs[i].Name())
		}
		if err != nil {
			return r, fmt.Errorf("making an output file: %w", err)
		}
	}
	err = j.run(ctx, outputs[0], outputs[1], &r)
	for i, text := range []*[]byte{&r.Stdout, &r.Stderr} {
		var failed error
		*text, failed = io.ReadAll(io.NewSectionReader(outputs[i], 0, maxOutput))
		err = errors.Join(err, failed)
	}
	return r, err
}

// run starts the program and waits for its end.
func (j Job) run(ctx context.Context, stdout, stderr *os.File, r *Result) error {
	late := fmt.Errorf("%w: ended after %s", ErrDeadline, j.Deadline)
	ctx, cancel := context.WithTimeoutCause(ctx, j.Deadline, late)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.Path, j.Args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = stdout, stderr, j.Dir, childEnvironment(os.Environ())
	if j.Input != nil {
		cmd.Stdin = bytes.NewReader(j.Input)
	}
	// A session and process group of its own, without our terminal: the
	// interrupt key is for us alone, and the program cannot prompt.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ended := false
	cmd.Cancel = func() error {
		ended = true
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	cmd.WaitDelay = j.Grace
	start := time.Now()
	err := cmd.Run()
	r.Duration = time.Since(start)
	switch {
	case cmd.ProcessState == nil: // not started
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: %w", ErrMissing, err)
		}
		return fmt.Errorf("running %q: %w", j.Path, err)
	case ended:
		// Also what the program started and left running. A group that has
		// ended is not an error.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		err = context.Cause(ctx)
	case cmd.ProcessState.ExitCode() < 0:
		err = fmt.Errorf("%w: %s", ErrSignal, strings.TrimPrefix(cmd.ProcessState.String(), "signal: "))
	default:
		err = nil // the status is part of the result
	}
	r.Status = cmd.ProcessState.ExitCode()
	return err
}

// passedVariables are the variables that tools may need. All others are left
// out: one may hold a passphrase, and com_apple_hdid_… would change what
// hdiutil does.
var passedVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "__CF_USER_TEXT_ENCODING", "SUDO_UID", "SUDO_GID", "SUDO_USER",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "DMGBENCH_RUNTIME_DIR", "GOCOVERDIR",
}

// childEnvironment is the environment of tools, in the language C.
func childEnvironment(all []string) []string {
	env := []string{"LC_ALL=C", "LANG=C"}
	for _, e := range all {
		if name, _, _ := strings.Cut(e, "="); slices.Contains(passedVariables, name) {
			env = append(env, e)
		}
	}
	return env
}
