package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

// engineConfig is what engines are made with. Without a state folder they can
// only be asked what they support.
type engineConfig struct {
	state      string
	passphrase []byte
	auto       bool // the engine is chosen by the program
}

// engineChoice is an engine of --engine, by its name in results.
type engineChoice struct {
	name string
	make func(*app, context.Context, engineConfig) (engine.Engine, error)
}

// engineChoices are in the order in which auto tries them: hdiutil makes the
// images that users have, with the file systems that they use; in-process works
// everywhere.
var engineChoices = []engineChoice{
	{"hdiutil", (*app).newHdiutil},
	{"inprocess", func(a *app, _ context.Context, c engineConfig) (engine.Engine, error) {
		return &inprocess.Engine{Now: a.clock.Wall, Passphrase: c.passphrase}, nil
	}},
}

// Texts about engines: what a probe did, and where to look for engines that
// work.
const (
	probed     = "made, attached, wrote to and detached a small image"
	doctorHint = "dmgbench doctor lists the engines that work"
)

// chooseEngine makes the engine of a name, or for "auto" the first one that
// works, and explains the choice for the result. An engine of a name is not
// probed: if it fails, its own error is in the report of the run.
func (a *app) chooseEngine(ctx context.Context, name string, c engineConfig) (engine.Engine, string, error) {
	c.auto = name == "auto"
	var errs []error
	why := "auto: it " + probed
	for _, choice := range engineChoices {
		if !c.auto && name != choice.name {
			continue
		}
		e, title, err := a.makeEngine(ctx, choice, c)
		switch {
		case err == nil && c.auto:
			return e, why, nil
		case err == nil:
			return e, "requested with --engine " + name, nil
		case !c.auto && hint(err) == "":
			err = withHint(err, "use --engine inprocess, which needs no tool of the system; "+doctorHint)
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		}
		errs = append(errs, err)
		why += fmt.Sprintf("; %s did not work: %v", title, err)
	}
	return nil, "", noEngineError(errs)
}

// noEngineError joins the reasons why each engine does not work.
func noEngineError(errs []error) error {
	return fmt.Errorf("choosing an engine: none works here: %w", errors.Join(errs...))
}

// makeEngine makes an engine and, for auto, probes it, unless it is only asked
// what it supports. The title is that of results where the engine could be made,
// as it names the tool and its version.
func (a *app) makeEngine(ctx context.Context, choice engineChoice, c engineConfig) (engine.Engine, string, error) {
	e, err := choice.make(a, ctx, c)
	if err != nil {
		return nil, choice.name, err
	}
	if c.auto && c.state != "" {
		err = a.probe(ctx, e, c.state)
	}
	return e, e.Info().Title, err
}

// probe makes, attaches, writes to and detaches a small image in the state
// folder, and removes it: an engine that reports support may still lack rights
// or tools.
func (a *app) probe(ctx context.Context, e engine.Engine, state string) error {
	return runner.WithProbeFolder(state, a.clock.Wall(), func(dir *hostio.Dir) error {
		return engine.Probe(ctx, e, dir)
	})
}

// executable is the path of this program, which is started again as hdiutil for
// Linux. A test binary would run its tests instead; the tests of this package,
// which can be both, replace the variable.
var executable = func() (string, error) {
	self, err := os.Executable()
	if strings.HasSuffix(self, ".test") {
		err = fmt.Errorf("this is a test, which cannot run as hdiutil: %w", errors.ErrUnsupported)
	}
	return self, err
}

// hdiutilOptions are the tools that the engine hdiutil drives here: Apple's on
// macOS, this program on Linux. The error matches errors.ErrUnsupported on
// other systems.
func (a *app) hdiutilOptions() (hdiutil.Options, error) {
	switch runtime.GOOS {
	case "darwin":
		version, _ := host.OSVersion()
		return hdiutil.Apple(strings.TrimSpace("macOS "+version), a.clock), nil
	case "linux":
		self, err := executable()
		return hdiutil.WorkAlike(a.clock, self, imageToolName), err
	}
	return hdiutil.Options{}, fmt.Errorf("hdiutil is not available on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// errNoLoops keeps auto from choosing hdiutil where it can only serve exFAT
// over FUSE, which is slower than mounts by the kernel.
var errNoLoops = errors.New("without root it works only over FUSE and with exFAT; choose it with --engine hdiutil")

// newHdiutil makes the engine hdiutil. Its mount points are in the state folder,
// where clean finds them after a crash.
func (a *app) newHdiutil(ctx context.Context, c engineConfig) (engine.Engine, error) {
	o, err := a.hdiutilOptions()
	if err != nil {
		return nil, err
	}
	if c.auto && runtime.GOOS == "linux" && !attach.Loops() {
		if err := attach.CheckFUSE(); err != nil {
			return nil, fmt.Errorf("without root it works only over FUSE: %v", err) // the hint is at FUSE
		}
		return nil, errNoLoops
	}
	if c.state != "" {
		o.WorkDir = filepath.Join(c.state, mountsFolder)
		if err := os.MkdirAll(o.WorkDir, 0o700); err != nil {
			return nil, fmt.Errorf("making the folder of mount points: %w", err)
		}
	}
	o.Passphrase = c.passphrase
	return hdiutil.New(ctx, o)
}

// detachBelow detaches the images below a folder and returns their names. On
// systems without hdiutil there are none.
func (a *app) detachBelow(ctx context.Context, folder string) ([]string, error) {
	o, err := a.hdiutilOptions()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return hdiutil.Release(ctx, o, folder)
}

const (
	// mountsFolder, in the state folder, has the mount points of engines.
	mountsFolder = "mounts"

	// passphraseFolder, in the state folder, has the passphrases of runs that
	// can be resumed or have kept images.
	passphraseFolder = "secrets"

	// maxPassphrase is the length in bytes that hdiutil accepts.
	maxPassphrase = 1024
)

// stateDir is the folder of the registry of runs, passphrases and mount points,
// see [host.StateDir]. It is not made here.
func (a *app) stateDir() (string, error) {
	dir, err := host.StateDir(func(name string) string { return a.env[name] })
	if errors.Is(err, host.ErrNoHome) {
		return "", usageError("set DMGBENCH_STATE to a folder", "%w", err)
	}
	a.chownAtExit(dir)
	return dir, err
}

// sudoCaller is the user who called sudo, if this process is root by sudo.
func (a *app) sudoCaller() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, err1 := strconv.ParseUint(a.env["SUDO_UID"], 10, 31)
	g, err2 := strconv.ParseUint(a.env["SUDO_GID"], 10, 31)
	return int(u), int(g), err1 == nil && err2 == nil && u != 0
}

// chownAtExit gives a path that the command is about to make to the user who
// called sudo, with the folders that are made above it. [hostio.ChownTree]
// leaves files in folders of others alone. Without this, later commands without
// sudo could neither read nor delete the files.
func (a *app) chownAtExit(path string) {
	uid, gid, ok := a.sudoCaller()
	if !ok || path == "" {
		return
	}
	above := existing(path)
	// The topmost folder that is made, or the path itself.
	if rel, err := filepath.Rel(above, runner.Absolute(path)); err == nil && rel != "." {
		first, _, _ := strings.Cut(rel, string(filepath.Separator))
		above = filepath.Join(above, first)
	}
	a.atExit = append(a.atExit, func() error { return hostio.ChownTree(above, uid, gid) })
}

// passphrase is the one of encrypted images: from the file that
// DMGBENCH_PASSPHRASE_FILE names, from DMGBENCH_PASSPHRASE, from an earlier
// session of the run in one of dirs (the former and the present run folder),
// else a new one of more than 256 random bits.
func (a *app) passphrase(state string, dirs ...string) (p []byte, err error) {
	p, source := []byte(a.env["DMGBENCH_PASSPHRASE"]), "DMGBENCH_PASSPHRASE"
	if path := a.env["DMGBENCH_PASSPHRASE_FILE"]; path != "" {
		p, err = os.ReadFile(path)
		// Editors add a line end.
		p, source = bytes.TrimSuffix(bytes.TrimSuffix(p, []byte("\n")), []byte("\r")), strconv.Quote(path)
		if err == nil && len(p) == 0 {
			err = errors.New("it is empty")
		}
	}
	if len(p) > maxPassphrase {
		err = fmt.Errorf("more than %d bytes", maxPassphrase)
	}
	if err != nil {
		return nil, usageError("DMGBENCH_PASSPHRASE_FILE names a file that contains only the passphrase",
			"reading the passphrase from %s: %w", source, err)
	}
	if len(p) > 0 {
		return p, nil
	}
	for _, dir := range nonempty(dirs...) {
		if a.generated, err = os.ReadFile(passphraseFile(state, dir)); !errors.Is(err, fs.ErrNotExist) {
			return a.generated, err
		}
	}
	a.generated, a.newPassphrase = []byte(rand.Text()+rand.Text()), true
	return a.generated, nil
}

// passphraseFile is the file with the saved passphrase of a run folder. Its name
// is a digest, which reveals no path.
func passphraseFile(state, dir string) string {
	sum := sha256.Sum256([]byte(runner.Absolute(dir)))
	return filepath.Join(state, passphraseFolder, hex.EncodeToString(sum[:16]))
}

// savePassphrase saves a generated passphrase before the first encrypted image
// is made, readable by this user alone: a killed session may leave an image for
// the next one.
func (a *app) savePassphrase(c runner.Config) error {
	if a.generated == nil || !hasEncryption(c.Plan) {
		return nil
	}
	folder, name := filepath.Split(passphraseFile(c.StateDir, c.Out))
	err := os.MkdirAll(folder, 0o700)
	var d *hostio.Dir
	if err == nil {
		d, err = hostio.OpenDir(folder)
	}
	if err != nil {
		return fmt.Errorf("making the folder of passphrases: %w", err)
	}
	defer d.Close()
	return d.WriteFileAtomic(name, a.generated, 0o600)
}

// dropPassphrase deletes the saved passphrase of a run that has ended. Where
// kept images need it, it returns the path of the file instead.
func (a *app) dropPassphrase(c runner.Config, o runner.Outcome) string {
	path := passphraseFile(c.StateDir, c.Out)
	if len(o.Kept) > 0 && hasEncryption(c.Plan) && a.generated != nil {
		return path
	}
	if len(o.Kept) == 0 && o.Status != runner.StatusPaused && o.Status != runner.StatusInterrupted {
		_ = os.Remove(path) // dmgbench clean removes it if this fails
	}
	return ""
}

// hasEncryption reports whether a case of the plan has an encrypted image.
func hasEncryption(p *plan.Plan) bool { return p != nil && slices.ContainsFunc(p.Cases(), isEncrypted) }

// isEncrypted reports whether the image of a case is encrypted; cases without
// an image have no cipher.
func isEncrypted(c plan.Case) bool {
	return c.Settings.Encryption != "" && c.Settings.Encryption != "none"
}

// checkPassphrase refuses to resume a run that paused with an encrypted image
// after its passphrase was lost, because the case could only fail.
func (a *app) checkPassphrase(c runner.Config, s *result.State) error {
	isPaused := func(one plan.Case) bool {
		return s.Paused != nil && s.Paused.Container != "" && s.Paused.Case == one.ID && isEncrypted(one)
	}
	if !a.newPassphrase || c.Plan == nil || !slices.ContainsFunc(c.Plan.Cases(), isPaused) {
		return nil
	}
	return withHint(fmt.Errorf("resuming run %q: the passphrase of its encrypted image is not known", c.Out),
		"it was in the state folder of the user who started the run, until dmgbench clean; DMGBENCH_PASSPHRASE_FILE "+
			"can name a file with it; with any other passphrase this case fails, and the others are measured")
}

// clean is the command "clean".
func (a *app) clean(ctx context.Context, _ []string) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	if id := a.text("forget"); id != "" {
		folders, err := runner.Forget(state, id)
		if err != nil {
			return err
		}
		return a.print("%s", strings.Join(append([]string{id + " is forgotten; no file was deleted"}, folders...), "\n  "))
	}
	return a.cleanAll(ctx, state)
}

// cleanAll removes what all runs left. It waits for the lock of measuring where
// it removes files that an active run may use.
func (a *app) cleanAll(ctx context.Context, state string) error {
	return runner.Clean(ctx, state, runner.CleanOptions{Release: a.detachBelow, Clock: a.clock,
		Also: func(ctx context.Context, w io.Writer) error {
			return errors.Join(a.cleanFolder(ctx, w, state, mountsFolder, "*", "the mount points of killed engines"),
				a.cleanFolder(ctx, w, state, passphraseFolder, "*", "the passphrases of runs"),
				a.cleanFolder(ctx, w, state, runner.RegistryFolder, ".*.tmp-*", "half-written entries of runs"))
		}}, a.stdout)
}

// cleanFolder detaches the images that are mounted in a folder of the state
// folder, and removes its files and mount points of these names. It leaves them
// while a run is active, which has the lock of measuring: its files look like
// those of others.
func (a *app) cleanFolder(ctx context.Context, w io.Writer, state, name, pattern, what string) error {
	folder := filepath.Join(state, name)
	list, err := os.ReadDir(folder)
	list = slices.DeleteFunc(list, func(f fs.DirEntry) bool {
		ok, _ := filepath.Match(pattern, f.Name())
		return !ok
	})
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
		return nil
	}
	unlock, err := lockHost(ctx, runner.Config{StateDir: state, Clock: a.clock}, nil)
	if errors.Is(err, host.ErrBusy) {
		return nil
	} else if err != nil {
		return err
	}
	defer unlock()
	names, err := a.detachBelow(ctx, folder)
	for _, name := range names {
		fmt.Fprintf(w, "detached %s\n", name)
	}
	for _, f := range list {
		if err == nil {
			err = os.Remove(filepath.Join(folder, f.Name())) // keeps what is not empty, such as a mounted volume
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(w, "removed", what)
	}
	return err
}

// leftover describes the images of a run that is not active, with the command
// that continues or removes them.
type leftover struct {
	runner.Leftover
	text, hint string
}

// leftovers lists the images of runs that are not active, and which of them are
// attached. doctor prints all of them, run only those of killed runs.
func (a *app) leftovers(ctx context.Context, state string) (list []leftover) {
	for _, r := range runner.Leftovers(state) {
		name := quoted(r.Folder)
		one := leftover{r, name + " cannot be read", "dmgbench clean deletes it"}
		resume := "dmgbench resume " + name + " continues it; dmgbench clean deletes its images"
		switch {
		case r.Ended:
			one.text = name + " kept its images"
		case r.Paused:
			one.text, one.hint = name+" is paused", resume
		case r.Killed:
			one.text, one.hint = name+" was killed", resume
		case r.Resumes:
			one.text, one.hint = name+" was interrupted"+report.TextIf(r.Reason != "", " ("+r.Reason+")"), resume
		}
		for i, dir := range r.Images {
			one.text += []string{": images in ", " and in "}[min(i, 1)] + quoted(dir)
		}
		// Where attached images cannot be listed, the run starts nevertheless.
		if o, err := a.hdiutilOptions(); err == nil {
			for _, dir := range r.Images {
				names, _ := hdiutil.Attached(ctx, o, dir)
				for _, name := range names {
					one.text += "; " + name + " is attached"
				}
			}
		}
		list = append(list, one)
	}
	return list
}

// warnLeftovers warns at the start of a run of the images of other runs that
// were killed: they take space, and attached images take memory. own is the
// folder of the run that starts.
func (a *app) warnLeftovers(ctx context.Context, state, own string) {
	for _, l := range a.leftovers(ctx, state) {
		if !l.Ended && !l.Paused && l.Folder != runner.Absolute(own) {
			a.warn("earlier run " + l.text + "\n  hint: " + l.hint)
		}
	}
}
