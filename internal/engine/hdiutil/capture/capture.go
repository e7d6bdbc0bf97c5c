// Package capture asks disk image tools everything that this project depends on,
// with small images of every kind, and keeps what they answered: the raw output,
// the status and the time of each command, as fixtures for tests.
//
// Secrets, names and paths of the machine are taken out before anything is
// written; attached images that are not its own are neither touched nor told of.
// It judges nothing: a command that fails is an answer, too.
package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/proc"
	"dmgbench/internal/hostio"
)

// File is the name of the list of answers in a capture's folder.
const File = "capture.json"

// Capture is what tools answered.
type Capture struct {
	Schema  int      `json:"schema"` // 1
	System  string   `json:"system"` // "macOS 26.4 (25E123)"
	Arch    string   `json:"arch"`
	Vendor  string   `json:"vendor"` // Apple | dmgbench
	Made    string   `json:"made"`   // day, UTC
	Answers []Answer `json:"answers"`
	dir     string
}

// Answer is what one command did.
type Answer struct {
	Name       string   `json:"name"` // unique: "udsb/attach"
	Tool       string   `json:"tool"`
	Verb       string   `json:"verb"`
	Args       []string `json:"args"`            // $WORK stands for the folder of the images
	Input      string   `json:"input,omitempty"` // $PASSPHRASE in it
	Reads      string   `json:"reads,omitempty"` // which parser reads the output, see [Attach] and the others
	Status     int      `json:"status"`
	Error      string   `json:"error,omitempty"` // it did not run to its end
	DurationNS int64    `json:"duration_ns"`
	Stdout     string   `json:"stdout,omitempty"` // names of files, none for no output
	Stderr     string   `json:"stderr,omitempty"`
}

// What an answer is read as.
const (
	Attach      = "attach"
	Info        = "info"
	ImageInfo   = "imageinfo"
	IsEncrypted = "isencrypted"
	Limits      = "limits"
	LimitsDU    = "limits-diskutil"
	Compact     = "compact"
)

// Options of a capture.
type Options struct {
	// Tools are programs (absolute paths) with the arguments before a command's own; a missing one is left out.
	Hdiutil, Diskutil []string
	Vendor, System    string
	Passphrase        []byte            // of the encrypted images; never written
	Private           map[string]string // what is not to be told, such as the user's name, and what stands for it
	Now               time.Time
	Say               func(text string) // progress; may be nil
}

// deadline of one command.
const deadline = 5 * time.Minute

// Run fills dir, a new or empty folder. Its images lie in a temporary folder and are
// detached and removed at the end. An error is about the capture, not about the tools.
func Run(ctx context.Context, dir string, o Options) (c *Capture, err error) {
	out, err := empty(dir)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	work, err := os.MkdirTemp("", "dmgbench-capture-")
	if err == nil {
		work, err = filepath.EvalSymlinks(work) // as tools print it
	}
	if err != nil {
		return nil, fmt.Errorf("making a folder for images: %w", err)
	}
	x := &session{ctx: ctx, o: o, out: out, work: work, words: words(o, work),
		c: &Capture{Schema: 1, System: o.System, Arch: runtime.GOARCH, Vendor: o.Vendor, Made: o.Now.UTC().Format("2006-01-02"), dir: dir}}
	x.everything()
	if e := x.tidy(); e != nil {
		err = fmt.Errorf("clearing %q: %w", work, e)
	} else {
		err = os.RemoveAll(work)
	}
	if x.err != nil || ctx.Err() != nil {
		return nil, errors.Join(x.err, ctx.Err(), err)
	}
	text, e := json.MarshalIndent(x.c, "", "  ")
	if e == nil {
		e = out.WriteFileAtomic(File, append(text, '\n'), 0o644)
	}
	return x.c, errors.Join(err, e)
}

// empty opens the folder, which is made or has nothing in it.
func empty(dir string) (*hostio.Dir, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the capture: %w", err)
	}
	d, err := hostio.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	list, err := d.ReadDir(".")
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("capturing into %q: the folder is not empty", dir)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// session is one capture at work.
type session struct {
	ctx   context.Context
	o     Options
	out   *hostio.Dir
	work  string // where images and mount points are
	words []word
	c     *Capture
	held  []string // devices to be detached
	err   error    // of writing, the first
}

type builder interface{ Command() (argv.Command, error) }

// ask runs a command and keeps its answer; the output comes back as it was. A
// tool that is not there is not asked.
func (x *session) ask(name, reads string, b builder) (proc.Result, bool) {
	cmd, err := b.Command()
	if err != nil {
		x.err = errors.Join(x.err, err)
		return proc.Result{}, false
	}
	return x.run(name, reads, cmd)
}

func (x *session) run(name, reads string, cmd argv.Command) (proc.Result, bool) {
	prefix := x.o.Hdiutil
	if cmd.Tool == argv.Diskutil {
		prefix = x.o.Diskutil
	}
	if len(prefix) == 0 {
		return proc.Result{}, false
	}
	return x.program(name, reads, cmd, append(append([]string{}, prefix...), cmd.Args...))
}

// program runs any program by the words of its command line.
func (x *session) program(name, reads string, cmd argv.Command, line []string) (proc.Result, bool) {
	if x.err != nil || x.ctx.Err() != nil {
		return proc.Result{}, false
	}
	if x.o.Say != nil {
		x.o.Say(name)
	}
	r, err := proc.Run(x.ctx, proc.Job{Path: line[0], Args: line[1:], Input: cmd.Input, Dir: x.work, Deadline: deadline, Grace: 5 * time.Second})
	a := Answer{Name: name, Tool: string(cmd.Tool), Verb: cmd.Verb, Reads: reads, Status: r.Status, DurationNS: int64(r.Duration),
		Input: string(x.redact(cmd.Input))}
	cmd.Wipe()
	for _, arg := range cmd.Args {
		a.Args = append(a.Args, string(x.redact([]byte(arg))))
	}
	if err != nil {
		a.Error, a.Status = string(x.redact([]byte(err.Error()))), -1
	}
	a.Stdout = x.keep(".out", r.Stdout)
	a.Stderr = x.keep(".err", r.Stderr)
	x.c.Answers = append(x.c.Answers, a)
	return r, err == nil && r.Status == 0
}

// keep writes an output, without what is private, and gives the name of the file.
func (x *session) keep(ext string, content []byte) string {
	if len(content) == 0 {
		return ""
	}
	name := fmt.Sprintf("%03d%s", len(x.c.Answers)+1, ext)
	x.err = errors.Join(x.err, x.out.WriteFileAtomic(name, x.redact(content), 0o644))
	return name
}
