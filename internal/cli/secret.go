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

// secretsFolder keeps the passphrases of runs that are to go on.
const (
	secretsFolder = "secrets"
	secretLimit   = 1024 // bytes that a tool takes
)

// secret is the passphrase of encrypted images: from the file that
// DMGBENCH_PASSPHRASE_FILE names, from DMGBENCH_PASSPHRASE, from the session before of
// the run that goes on, whose folder is or was one of dirs, else a new one of 256 random bits.
func (a *app) secret(state string, dirs ...string) ([]byte, error) {
	if path := a.env["DMGBENCH_PASSPHRASE_FILE"]; path != "" {
		return passphraseFile(path)
	}
	if p := a.env["DMGBENCH_PASSPHRASE"]; p != "" {
		if len(p) > secretLimit {
			return nil, &usageError{err: fmt.Errorf("reading DMGBENCH_PASSPHRASE: %d bytes, at most %d", len(p), secretLimit)}
		}
		return []byte(p), nil
	}
	for _, dir := range slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return dir == "" }) {
		p, err := recallSecret(state, dir)
		if a.forRun = p; err != nil || len(p) > 0 {
			return p, err
		}
	}
	p := make([]byte, 32)
	_, _ = rand.Read(p) // never fails
	a.newSecret = true
	a.forRun = []byte(hex.EncodeToString(p))
	return a.forRun, nil
}

// passphraseFile is the content of a file without the newline that editors end it with.
func passphraseFile(path string) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, &usageError{err: fmt.Errorf("reading the passphrase from %q: %w", path, err), hint: "DMGBENCH_PASSPHRASE_FILE names a file that holds the passphrase and nothing else"}
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	p, err := io.ReadAll(io.LimitReader(f, secretLimit+3))
	if err != nil {
		return fail(err)
	}
	p = bytes.TrimSuffix(bytes.TrimSuffix(p, []byte("\n")), []byte("\r"))
	switch {
	case len(p) == 0:
		return fail(errors.New("it is empty"))
	case len(p) > secretLimit:
		return fail(fmt.Errorf("more than %d bytes", secretLimit))
	}
	return p, nil
}

// secretName is the file of a run folder's passphrase.
func secretName(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	sum := sha256.Sum256([]byte(abs))
	return hex.EncodeToString(sum[:16])
}

func recallSecret(state, dir string) ([]byte, error) {
	d, err := hostio.OpenDir(filepath.Join(state, secretsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	p, err := d.ReadFile(secretName(dir), secretLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return p, err
}

// encrypts says whether any case of the plan makes an encrypted image.
func encrypts(p *plan.Plan) bool {
	return p != nil && slices.ContainsFunc(p.Cases(), encrypted)
}

func encrypted(c plan.Case) bool {
	return c.Settings.Encryption != "" && c.Settings.Encryption != "none"
}

// secretLost refuses to go on with an encrypted image that a pause left and whose passphrase nobody has any more: its case would
// fail for good. Where the image is gone as well, as clean leaves it, the other cases can go on with a new passphrase.
func (a *app) secretLost(c runner.Config, dir string, s *result.State) error {
	if !a.newSecret || c.Plan == nil || s.Ended != nil || s.Paused == nil || s.Paused.Container == "" {
		return nil
	}
	i := slices.IndexFunc(c.Plan.Cases(), func(o plan.Case) bool { return o.ID == s.Paused.Case })
	if i < 0 || !encrypted(c.Plan.Cases()[i]) {
		return nil
	}
	if c.Out = dir; runner.PausedImageGone(c, s.Run, s.Paused) {
		a.warn(fmt.Sprintf("the encrypted image that the run paused in and its passphrase are gone, as dmgbench clean deletes both: case %q fails,"+
			" the cases after it are measured\n  hint: to measure it as well, start a new run: dmgbench run %s", s.Paused.Case, quoted(filepath.Join(dir, result.PlanFile))))
		return nil
	}
	return &hintedError{fmt.Errorf("resuming run %q: the passphrase of its encrypted image is not known any more", dir),
		"it is in the state folder of the user who began the run; DMGBENCH_PASSPHRASE_FILE names another file that holds it"}
}

// keepSecret makes sure that a session after this one has the passphrase: a killed
// one may have left an image that it is to go on with.
func (a *app) keepSecret(c runner.Config) error {
	if a.forRun == nil || !encrypts(c.Plan) {
		return nil
	}
	return rememberSecret(c.StateDir, c.Out, a.forRun)
}

// rememberSecret keeps a passphrase for the session after this one, readable by this user alone.
func rememberSecret(state, dir string, secret []byte) error {
	d, err := openState(state, secretsFolder)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.WriteFileAtomic(secretName(dir), secret, 0o600)
}

// forgetSecret removes the passphrase of a run that has ended.
func forgetSecret(state, dir string) {
	// What cannot be removed is removed by clean.
	_ = os.Remove(filepath.Join(state, secretsFolder, secretName(dir)))
}

// settleSecret forgets the passphrase unless somebody needs it: the session
// after this one, or whoever opens kept images. It says where it is then.
func (a *app) settleSecret(c runner.Config, o runner.Outcome) string {
	goesOn := o.Status == runner.StatusPaused || o.Status == runner.StatusInterrupted
	if !goesOn && len(o.Kept) == 0 {
		forgetSecret(c.StateDir, c.Out)
	}
	if len(o.Kept) > 0 && encrypts(c.Plan) && a.forRun != nil {
		return filepath.Join(c.StateDir, secretsFolder, secretName(c.Out))
	}
	return ""
}

// cleanSecrets removes the passphrases of runs, unless one is going on.
func (a *app) cleanSecrets(ctx context.Context, state string, w io.Writer) error {
	list, err := os.ReadDir(filepath.Join(state, secretsFolder))
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
		if err := os.Remove(filepath.Join(state, secretsFolder, f.Name())); err != nil {
			return fmt.Errorf("removing a passphrase: %w", err)
		}
	}
	_, err = fmt.Fprintln(w, "removed the passphrases of runs")
	return err
}
