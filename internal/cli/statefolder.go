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
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

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
	if rel, err := filepath.Rel(above, absolute(path)); err == nil && rel != "." {
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
	sum := sha256.Sum256([]byte(absolute(dir)))
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
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of passphrases: %w", err)
	}
	d, err := hostio.OpenDir(folder)
	if err != nil {
		return err
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
// after its passphrase was lost, because the case could only fail. Where
// dmgbench clean deleted the image as well, the other cases can continue.
func (a *app) checkPassphrase(c runner.Config, s *result.State) error {
	isPaused := func(one plan.Case) bool {
		return s.Paused != nil && s.Paused.Container != "" && s.Paused.Case == one.ID && isEncrypted(one)
	}
	if !a.newPassphrase || c.Plan == nil || s.Ended != nil || !slices.ContainsFunc(c.Plan.Cases(), isPaused) {
		return nil
	}
	if !runner.PausedImageGone(c, s.Run, s.Paused) {
		return withHint(fmt.Errorf("resuming run %q: the passphrase of its encrypted image is not known", c.Out),
			"it is in the state folder of the user who started the run; DMGBENCH_PASSPHRASE_FILE can name another file")
	}
	a.warn(fmt.Sprintf("the encrypted image of the pause and its passphrase are gone, as dmgbench clean "+
		"deletes both: case %q fails, the cases after it are measured\n"+
		"  hint: to measure it as well, start a new run: dmgbench run %s",
		s.Paused.Case, quoted(filepath.Join(c.Out, result.PlanFile))))
	return nil
}

// clean is the command "clean". It waits for the lock of measuring where it
// removes files that an active run may use.
func (a *app) clean(ctx context.Context, _ []string) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	return runner.Clean(ctx, state, runner.CleanOptions{Release: a.detachBelow, Clock: a.clock,
		Also: func(ctx context.Context, w io.Writer) error {
			return errors.Join(a.cleanFolder(ctx, w, state, mountsFolder, "the mount points of killed engines"),
				a.cleanFolder(ctx, w, state, passphraseFolder, "the passphrases of runs"))
		}}, a.stdout)
}

// cleanFolder detaches the images that are mounted in a folder of the state
// folder, and removes its files and mount points. It leaves them while a run is
// active, which has the lock of measuring: its files look like those of others.
func (a *app) cleanFolder(ctx context.Context, w io.Writer, state, name, what string) error {
	folder := filepath.Join(state, name)
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
		return nil
	}
	unlock, err := lockHost(ctx, runner.Config{StateDir: state, Clock: a.clock}, nil)
	if errors.Is(err, host.ErrBusy) {
		return nil
	}
	if err != nil {
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
	if err != nil {
		return fmt.Errorf("removing %s: %w", what, err)
	}
	_, err = fmt.Fprintln(w, "removed", what)
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
		switch {
		case r.Ended:
			one.text = name + " kept its images"
		case r.Paused:
			one.text = name + " is paused"
		case r.Resumes:
			one.text = name + " was killed"
		}
		if !r.Ended && (r.Paused || r.Resumes) {
			one.hint = "dmgbench resume " + name + " continues it; dmgbench clean deletes its images"
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
		if !l.Ended && !l.Paused && l.Folder != absolute(own) {
			a.warn("earlier run " + l.text + "\n  hint: " + l.hint)
		}
	}
}
