package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

const (
	// ExamineTime is how long an examination may take, without the clean-up.
	ExamineTime = 3 * time.Minute
	// ExamineSpace bounds what its images take on the disk, in bytes.
	ExamineSpace = 2 << 30

	examinedSize = 48 << 20 // bytes of an image
	resizedSize  = 96 << 20

	// What trials return where the tools do as expected.
	readBack  = "a file is read back"
	isDone    = "done"
	isFound   = "found"
	isListed  = "listed"
	inEnglish = "English"
)

// Images that beliefs share.
var (
	plainImage      = engine.Spec{Format: diskimage.UDRW}
	sparseImage     = engine.Spec{Format: diskimage.UDSP}
	bundleImage     = engine.Spec{Format: diskimage.UDSB, BandSize: 2 << 20}
	asifImage       = engine.Spec{Format: diskimage.ASIF}
	rawImage        = engine.Spec{Format: diskimage.UDRW, Backend: backendDiskutil}
	secretImage     = engine.Spec{Format: diskimage.UDSB, Encryption: "AES-256"}
	finderImage     = engine.Spec{Format: diskimage.UDRW, Mount: engine.MountFinder}
	repairableImage = engine.Spec{Format: diskimage.UDSP, Filesystems: []string{"APFS", "exFAT"}}
)

// Observation is what was seen of one belief.
type Observation struct {
	Name     string
	Expected string
	Seen     string
	Unable   string // why it cannot be looked at here, "" where it can
	Needed   bool   // the figures of plans depend on it
}

// The verdicts of observations.
const (
	AsExpected  = "as expected"
	Differs     = "differs"
	NotPossible = "not possible here"
)

// Verdict is one of the verdicts.
func (o Observation) Verdict() string {
	switch {
	case o.Unable != "":
		return NotPossible
	case o.Seen == o.Expected:
		return AsExpected
	}
	return Differs
}

// trial returns what the tools do. An [engine.UnsupportedError] means that this
// machine cannot show it.
type trial func(*examination) (string, error)

// belief is what this driver assumes of the tools.
type belief struct {
	name, expected string
	trial          trial
}

// examination looks at one belief after the other. At most one image is
// attached.
type examination struct {
	ctx    context.Context
	e      *Engine
	dir    *hostio.Dir
	images map[string]*image // by their names; beliefs share them
	failed map[string]error  // why an image could not be made, by its name
	at     *attachment       // nil while no image is attached
}

// observe looks at one belief. The text names no folder of the user.
func (x *examination) observe(b belief) Observation {
	o := Observation{Name: b.name, Expected: b.expected}
	seen, err := b.trial(x)
	unsupported, isUnsupported := errors.AsType[*engine.UnsupportedError](err)
	switch {
	case x.ctx.Err() != nil:
		seen = fmt.Sprintf("not looked at: %s were over", ExamineTime)
	case isUnsupported:
		o.Unable = unsupported.What
	case err != nil:
		seen = err.Error()
	}
	home, _ := os.UserHomeDir()
	o.Seen = strings.NewReplacer(resolve(x.dir.Path()), "FOLDER", x.dir.Path(), "FOLDER", x.e.o.WorkDir, "FOLDER",
		cmp.Or(home, "~"), "~").Replace(seen)
	return o
}

// end detaches what is attached below the folder.
func (x *examination) end(ctx context.Context) error {
	clean, cancel := context.WithTimeout(ctx, cleanupTime)
	defer cancel()
	x.ctx = clean
	err := x.detach()
	_, failed := x.e.Release(clean, x.dir.Path())
	return errors.Join(err, failed)
}

// detach detaches the image that is attached.
func (x *examination) detach() error {
	if x.at == nil {
		return nil
	}
	_, err := x.at.Detach(x.ctx, false)
	if err != nil {
		_, err = x.at.Detach(x.ctx, true)
	}
	if err != nil {
		return err
	}
	x.at = nil
	return nil
}

// nameOf is the name of the image of a spec.
func nameOf(s engine.Spec) string {
	words := append([]string{s.Format, s.Encryption, s.Backend, s.ServedBy, s.Mount, s.VolumeName}, s.Filesystems...)
	if s.BandSize != 0 {
		words = append(words, units.Bytes(s.BandSize).String())
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// made is the image of a spec, detached. It is made once.
func (x *examination) made(s engine.Spec) (*image, error) {
	return x.once(nameOf(s), func(name string) (engine.Container, error) {
		s.Size, s.Passphrase = cmp.Or(s.Size, examinedSize), []byte("examined")
		return x.e.Create(x.ctx, x.dir, name, s)
	})
}

// once makes an image while none is attached. If there is one of that name, or it
// could not be made before, it is not made again.
func (x *examination) once(name string, make func(name string) (engine.Container, error)) (*image, error) {
	if err := x.detach(); err != nil {
		return nil, err
	}
	if x.images[name] != nil || x.failed[name] != nil {
		return x.images[name], x.failed[name]
	}
	c, err := make(name)
	if err != nil {
		x.failed[name] = err
		return nil, err
	}
	x.images[name] = c.(*image)
	return x.images[name], nil
}

// attached is the image of a spec, attached for writing.
func (x *examination) attached(s engine.Spec) (*attachment, error) {
	if x.at != nil && x.at.c == x.images[nameOf(s)] && x.at.vol != nil && !x.at.readOnly {
		return x.at, nil
	}
	i, err := x.made(s)
	if err != nil {
		return nil, err
	}
	return x.attach(i, engine.AttachOptions{})
}

// attach attaches an image instead of the one that is attached.
func (x *examination) attach(i *image, o engine.AttachOptions) (*attachment, error) {
	if err := x.detach(); err != nil {
		return nil, err
	}
	a, err := i.Attach(x.ctx, o)
	if err != nil {
		return nil, err
	}
	x.at = a.(*attachment)
	return x.at, nil
}

// ask runs a command one time.
func (x *examination) ask(line string, a command.Args) (command.Result, error) {
	return x.e.runOnce(x.ctx, call{doing: "asking", object: line, cmd: command.New(line, a)})
}

// failure is the class of a command's failure with its status, [done] without
// one.
func (x *examination) failure(line string, a command.Args) (string, error) {
	_, err := x.ask(line, a)
	return failureOf(err)
}

func failureOf(err error) (string, error) {
	t, ok := errors.AsType[*ToolError](err)
	if !ok {
		return isDone, err
	}
	return fmt.Sprintf("%s, status %d", t.Class.name, t.Status), nil
}
