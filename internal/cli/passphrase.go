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

	"dmgbench/internal/host"
	"dmgbench/internal/hostio"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/runner"
)

const (
	// passphraseFolder, in the state folder, has the passphrases of runs that can be resumed or have kept images.
	passphraseFolder = "secrets"

	// maxPassphrase is the length in bytes that hdiutil accepts.
	maxPassphrase = 1024
)

// passphrase is the one of encrypted images: from the file that DMGBENCH_PASSPHRASE_FILE names, from
// DMGBENCH_PASSPHRASE, from an earlier session of the run, whose folder is or was one of dirs, else a new one of 256
// random bits.
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
		p, err = io.ReadAll(io.LimitReader(f, maxPassphrase+3)) // with a line end, and one byte more to detect longer ones
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
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	sum := sha256.Sum256([]byte(abs))
	return hex.EncodeToString(sum[:16])
}

// savedPassphrase is the passphrase that an earlier session of a run saved, nil if there is none.
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

// savePassphrase saves a generated passphrase before the first encrypted image is made, readable by this user
// alone: a killed session may leave an image for the next one.
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

// dropPassphrase deletes the saved passphrase of a run that has ended. Where kept images need it, it returns the
// path of the file instead.
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

func isEncrypted(c plan.Case) bool {
	return c.Settings.Encryption != "" && c.Settings.Encryption != "none"
}

// checkPassphrase refuses to resume a run that paused with an encrypted image whose passphrase is lost, because its
// case could only fail. Where dmgbench clean deleted the image as well, the other cases can continue.
func (a *app) checkPassphrase(c runner.Config, s *result.State) error {
	if !a.newPassphrase || c.Plan == nil || s.Ended != nil || s.Paused == nil || s.Paused.Container == "" {
		return nil
	}
	paused := func(one plan.Case) bool { return one.ID == s.Paused.Case && isEncrypted(one) }
	if !slices.ContainsFunc(c.Plan.Cases(), paused) {
		return nil
	}
	if runner.PausedImageGone(c, s.Run, s.Paused) {
		a.warn(fmt.Sprintf("the encrypted image of the pause and its passphrase are gone, as dmgbench clean deletes both: "+
			"case %q fails, the cases after it are measured\n  hint: to measure it as well, start a new run: dmgbench run %s",
			s.Paused.Case, quoted(filepath.Join(c.Out, result.PlanFile))))
		return nil
	}
	return withHint(fmt.Errorf("resuming run %q: the passphrase of its encrypted image is not known", c.Out),
		"it is in the state folder of the user who started the run; or DMGBENCH_PASSPHRASE_FILE names a file that contains it")
}

// cleanPassphrases removes the passphrases of runs, unless a run is active.
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
