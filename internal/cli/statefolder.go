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

	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/hostio"
)

const (
	// mountsFolder, in the state folder, has a folder of mount points for each
	// engine, and next to it a file that the engine's process keeps locked.
	mountsFolder = "mounts"
	lockSuffix   = ".lock"
)

// openStateFolder opens a folder in the state folder. It is made if necessary,
// for this user alone, as it contains passphrases and mounted volumes.
func openStateFolder(state, name string) (*hostio.Dir, error) {
	dir := filepath.Join(state, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder in the state folder: %w", err)
	}
	return hostio.OpenDir(dir)
}

// makeMountFolder makes a locked folder for mount points. remove deletes it,
// unless a file is left in it, and releases the lock.
func makeMountFolder(state string) (path string, remove func() error, err error) {
	root, err := openStateFolder(state, mountsFolder)
	if err != nil {
		return "", nil, err
	}
	name := make([]byte, 8)
	_, _ = rand.Read(name) // never fails
	id := hex.EncodeToString(name)
	lock, err := root.Open(id+lockSuffix, hostio.OpenOptions{Write: true, Create: true, Exclusive: true})
	if err == nil {
		// The lock goes with the process, however that ends. Without locks of
		// the file system, clean cannot tell a running engine from a killed
		// one.
		if err = lock.TryLock(); err == nil || errors.Is(err, hostio.ErrUnsupported) {
			err = os.Mkdir(filepath.Join(root.Path(), id), 0o700)
		}
		if err != nil {
			err = errors.Join(err, lock.Close(), root.Remove(id+lockSuffix))
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for mount points: %w", errors.Join(err, root.Close()))
	}
	return filepath.Join(root.Path(), id), func() error {
		return errors.Join(removeMountFolder(root, id), lock.Close(), root.Close())
	}, nil
}

// removeMountFolder removes the empty mount points of a folder, the folder and
// its lock. It keeps what is not empty: that may be a mounted volume.
func removeMountFolder(root *hostio.Dir, id string) error {
	list, err := root.ReadDir(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing mount points: %w", err)
	}
	// The lock goes last: while it exists, a later clean finds the folder.
	var names []string
	for _, f := range list {
		names = append(names, filepath.Join(id, f.Name()))
	}
	for _, name := range append(names, id, id+lockSuffix) {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing mount points: %w", err)
		}
	}
	return nil
}

// cleanMountFolders detaches the images of killed engines and removes their
// mount points. It prints what it did to w, and continues with the next folder
// after an error.
func (a *app) cleanMountFolders(ctx context.Context, state string, w io.Writer) error {
	if !exists(filepath.Join(state, mountsFolder)) {
		return nil
	}
	root, err := openStateFolder(state, mountsFolder)
	if err != nil {
		return err
	}
	defer root.Close()
	list, err := root.ReadDir(".")
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range list {
		if id, isLock := strings.CutSuffix(f.Name(), lockSuffix); isLock {
			errs = append(errs, a.cleanMountFolder(ctx, root, id, w))
		}
	}
	return errors.Join(errs...)
}

// cleanMountFolder cleans one folder, unless an engine holds its lock.
func (a *app) cleanMountFolder(ctx context.Context, root *hostio.Dir, id string, w io.Writer) error {
	lock, err := root.Open(id+lockSuffix, hostio.OpenOptions{Write: true})
	if errors.Is(err, fs.ErrNotExist) { // its engine has just ended
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	err = runner.RetryWhileLocked(ctx, a.clock, hostio.ErrLocked, nil, lock.TryLock)
	switch {
	case errors.Is(err, hostio.ErrLocked):
		return nil
	case err != nil && !errors.Is(err, hostio.ErrUnsupported):
		return err
	}
	names, err := a.detachBelow(ctx, filepath.Join(root.Path(), id))
	for _, name := range names {
		fmt.Fprintf(w, "detached %s\n", name)
	}
	if err != nil {
		return err
	}
	if err := removeMountFolder(root, id); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "removed the mount points of an engine that was killed")
	return err
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

const (
	// passphraseFolder, in the state folder, has the passphrases of runs that
	// can be resumed or have kept images.
	passphraseFolder = "secrets"

	// maxPassphrase is the length in bytes that hdiutil accepts.
	maxPassphrase = 1024
)

// passphrase is the one of encrypted images: from the file that
// DMGBENCH_PASSPHRASE_FILE names, from DMGBENCH_PASSPHRASE, from an earlier
// session of the run in one of dirs (the former and the present run folder),
// else a new one of 256 random bits.
func (a *app) passphrase(state string, dirs ...string) ([]byte, error) {
	if path := a.env["DMGBENCH_PASSPHRASE_FILE"]; path != "" {
		return readPassphrase(path)
	}
	if p := a.env["DMGBENCH_PASSPHRASE"]; p != "" {
		if len(p) > maxPassphrase {
			return nil, usageError("", "reading DMGBENCH_PASSPHRASE: %d bytes, at most %d", len(p), maxPassphrase)
		}
		return []byte(p), nil
	}
	for _, dir := range nonempty(dirs...) {
		p, err := savedPassphrase(state, dir)
		if a.generated = p; err != nil || len(p) > 0 {
			return p, err
		}
	}
	p := make([]byte, 32)
	_, _ = rand.Read(p) // never fails
	a.newPassphrase = true
	a.generated = []byte(hex.EncodeToString(p))
	return a.generated, nil
}

// readPassphrase is the content of a file without the newline that editors add.
func readPassphrase(path string) ([]byte, error) {
	f, err := os.Open(path)
	var p []byte
	if err == nil {
		defer f.Close()
		// The limit leaves room for a line end, and for a byte that shows that
		// the text is too long.
		p, err = io.ReadAll(io.LimitReader(f, maxPassphrase+3))
	}
	p = bytes.TrimSuffix(bytes.TrimSuffix(p, []byte("\n")), []byte("\r"))
	switch {
	case err != nil:
	case len(p) == 0:
		err = errors.New("it is empty")
	case len(p) > maxPassphrase:
		err = fmt.Errorf("more than %d bytes", maxPassphrase)
	default:
		return p, nil
	}
	return nil, usageError("DMGBENCH_PASSPHRASE_FILE names a file that contains only the passphrase",
		"reading the passphrase from %q: %w", path, err)
}

// passphraseName is the name of the file with the passphrase of a run folder.
func passphraseName(dir string) string {
	sum := sha256.Sum256([]byte(absolute(dir)))
	return hex.EncodeToString(sum[:16])
}

// savedPassphrase is the passphrase that an earlier session of a run saved, nil
// if there is none. Files are named by the digest of the run folder's path, so
// that the names reveal no path.
func savedPassphrase(state, dir string) ([]byte, error) {
	d, err := hostio.OpenDir(filepath.Join(state, passphraseFolder))
	var p []byte
	if err == nil {
		defer d.Close()
		p, err = d.ReadFile(passphraseName(dir), maxPassphrase)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return p, err
}

// savePassphrase saves a generated passphrase before the first encrypted image
// is made, readable by this user alone: a killed session may leave an image for
// the next one.
func (a *app) savePassphrase(c runner.Config) error {
	if a.generated == nil || !hasEncryption(c.Plan) {
		return nil
	}
	d, err := openStateFolder(c.StateDir, passphraseFolder)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.WriteFileAtomic(passphraseName(c.Out), a.generated, 0o600)
}

// dropPassphrase deletes the saved passphrase of a run that has ended. Where
// kept images need it, it returns the path of the file instead.
func (a *app) dropPassphrase(c runner.Config, o runner.Outcome) string {
	path := filepath.Join(c.StateDir, passphraseFolder, passphraseName(c.Out))
	resumable := o.Status == runner.StatusPaused || o.Status == runner.StatusInterrupted
	if !resumable && len(o.Kept) == 0 {
		_ = os.Remove(path) // dmgbench clean removes it if this fails
	}
	if len(o.Kept) > 0 && hasEncryption(c.Plan) && a.generated != nil {
		return path
	}
	return ""
}

// hasEncryption reports whether a case of the plan has an encrypted image.
func hasEncryption(p *plan.Plan) bool {
	return p != nil && slices.ContainsFunc(p.Cases(), isEncrypted)
}

// isEncrypted reports whether the image of a case is encrypted; cases without
// an image have no cipher.
func isEncrypted(c plan.Case) bool {
	return c.Settings.Encryption != "" && c.Settings.Encryption != "none"
}

// checkPassphrase refuses to resume a run that paused with an encrypted image
// after its passphrase was lost, because the case could only fail. Where
// dmgbench clean deleted the image as well, the other cases can continue.
func (a *app) checkPassphrase(c runner.Config, s *result.State) error {
	if !a.newPassphrase || c.Plan == nil || s.Ended != nil || s.Paused == nil || s.Paused.Container == "" {
		return nil
	}
	paused := func(one plan.Case) bool { return one.ID == s.Paused.Case && isEncrypted(one) }
	if !slices.ContainsFunc(c.Plan.Cases(), paused) {
		return nil
	}
	if runner.PausedImageGone(c, s.Run, s.Paused) {
		a.warn(fmt.Sprintf("the encrypted image of the pause and its passphrase are gone, as dmgbench clean "+
			"deletes both: case %q fails, the cases after it are measured\n"+
			"  hint: to measure it as well, start a new run: dmgbench run %s",
			s.Paused.Case, quoted(filepath.Join(c.Out, result.PlanFile))))
		return nil
	}
	return withHint(fmt.Errorf("resuming run %q: the passphrase of its encrypted image is not known", c.Out),
		"it is in the state folder of the user who started the run; DMGBENCH_PASSPHRASE_FILE can name another file")
}

// cleanPassphrases removes the passphrases of runs, unless a run is active: its
// own file is not distinguished from others.
func (a *app) cleanPassphrases(ctx context.Context, state string, w io.Writer) error {
	list, err := os.ReadDir(filepath.Join(state, passphraseFolder))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the folder of passphrases: %w", err)
	}
	unlock, err := lockHost(ctx, runner.Config{StateDir: state, Clock: a.clock}, nil)
	if errors.Is(err, host.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	for _, f := range list {
		if err := os.Remove(filepath.Join(state, passphraseFolder, f.Name())); err != nil {
			return fmt.Errorf("removing a passphrase: %w", err)
		}
	}
	_, err = fmt.Fprintln(w, "removed the passphrases of runs")
	return err
}

// clean is the command "clean". It waits for the lock of measuring where it
// removes files that an active run may use.
func (a *app) clean(ctx context.Context, _ []string) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	return runner.Clean(ctx, state, runner.CleanOptions{
		Release: a.detachBelow,
		Clock:   a.clock,
		Also: func(ctx context.Context, w io.Writer) error {
			return errors.Join(a.cleanMountFolders(ctx, state, w), a.cleanPassphrases(ctx, state, w))
		},
	}, a.stdout)
}

// leftover describes the images of a run that is not active, with the command
// that continues or removes them.
type leftover struct {
	folder     string // the run folder
	text, hint string
	killed     bool // not paused, and not kept on purpose
}

// leftovers lists the images of runs that are not active, and which of them are
// attached. doctor prints all of them, run only those of killed runs.
func (a *app) leftovers(ctx context.Context, state string) (list []leftover) {
	for _, r := range runner.Leftovers(state) {
		name := quoted(shortPath(r.Folder))
		one := leftover{folder: r.Folder, text: "cannot be read", hint: "dmgbench clean deletes it"}
		switch {
		case r.Ended:
			one.text = "kept its images"
		case r.Paused:
			one.text = "is paused"
		case r.Resumes:
			one.text = "was killed"
		}
		one.killed = !r.Ended && !r.Paused
		if !r.Ended && (r.Paused || r.Resumes) {
			one.hint = "dmgbench resume " + name + " continues it; dmgbench clean deletes its images"
		}
		var images, attached []string
		for _, dir := range r.Images {
			images = append(images, quoted(shortPath(dir)))
			attached = append(attached, a.attachedBelow(ctx, dir)...)
		}
		where := "images in " + strings.Join(images, " and in ")
		one.text = name + " " + one.text + ": " + strings.Join(append([]string{where}, attached...), "; ")
		list = append(list, one)
	}
	return list
}

// attachedBelow describes the attached images below a folder. It is empty where
// they cannot be listed, because that must not keep a run from starting.
func (a *app) attachedBelow(ctx context.Context, dir string) (texts []string) {
	if runtime.GOOS != "linux" {
		o, err := a.hdiutilOptions()
		if err != nil {
			return nil
		}
		names, _ := hdiutil.Attached(ctx, o, dir)
		for _, name := range names {
			texts = append(texts, name+" is attached")
		}
		return texts
	}
	// The list has resolved paths.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	list, _ := attach.List(ctx)
	for _, at := range list {
		if rel, err := filepath.Rel(dir, at.Image); err != nil || !filepath.IsLocal(rel) || at.Dead {
			continue
		}
		text := filepath.Base(at.Image) + " is attached"
		if at.MountPoint != "" {
			text += " at " + quoted(at.MountPoint)
		}
		if at.HelperPID != 0 {
			text += fmt.Sprintf(", served by process %d", at.HelperPID)
		}
		texts = append(texts, text)
	}
	return texts
}

// warnLeftovers warns at the start of a run of the images of other runs that
// were killed: they take space, and attached images take memory. own is the
// folder of the run that starts.
func (a *app) warnLeftovers(ctx context.Context, state, own string) {
	for _, l := range a.leftovers(ctx, state) {
		if l.killed && l.folder != absolute(own) {
			a.warn("earlier run " + l.text + "\n  hint: " + l.hint)
		}
	}
}
