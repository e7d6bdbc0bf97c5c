package imagetool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/crypt"

	"golang.org/x/term"
)

// maxPassphrase bounds what is read of passphrases from stdin, in bytes.
const maxPassphrase = 64 << 10

// secrets are the passphrases of a command line: those on stdin, and the keys
// of its images. They are in no argument, no environment and no file, and are
// overwritten when the command ends.
type secrets struct {
	// ended is set at the end of stdin.
	ended bool
	// raw is what was read of stdin; list are the passphrases in it, which
	// share its memory.
	raw  []byte
	list [][]byte
	// encrypted is set if the image that is read is: then the first passphrase
	// belongs to it.
	encrypted bool
	// keys are those of the images that have been opened, by path: deriving
	// them takes up to seconds by design.
	keys map[string]crypt.Keys
}

// wipe overwrites them.
func (s *secrets) wipe() {
	clear(s.raw)
	for _, k := range s.keys {
		k.Wipe()
	}
}

// readsStdin reports whether an option names stdin as the source of
// passphrases.
func (c *call) readsStdin() bool {
	return slices.ContainsFunc([]string{"stdinpass", "oldstdinpass", "newstdinpass"}, c.has)
}

// passphrase returns passphrase n of stdin, counted from 0, without bytes if
// there is none. For hdiutil they end with a NUL or the input, and a line end
// is a part of them; for diskutil they are lines. No more is read than that
// takes: the writer of stdin may leave it open.
func (c *call) passphrase(n int) (pass []byte, err error) {
	if c.readsStdin() {
		err = c.readPassphrases(n)
	}
	if n < len(c.secrets.list) {
		pass = c.secrets.list[n]
	}
	return pass, err
}

// readPassphrases reads stdin until passphrase n is complete.
func (c *call) readPassphrases(n int) error {
	s, end := &c.secrets, []byte{0}
	if c.tool == "diskutil" {
		end = []byte("\n")
	}
	if f, ok := c.env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) { // which would show it, and wait for an end
		return refuse("stdin is a terminal: give the passphrase by a pipe or a file")
	}
	if s.raw == nil {
		s.raw = make([]byte, 0, maxPassphrase+1) // never reallocated, so that it can be wiped
	}
	for !s.ended && bytes.Count(s.raw, end) <= n {
		got, err := c.env.Stdin.Read(s.raw[len(s.raw):cap(s.raw)])
		s.raw = s.raw[:len(s.raw)+got]
		s.ended = errors.Is(err, io.EOF)
		switch {
		case len(s.raw) == cap(s.raw):
			return refuse("the passphrase is longer than %d bytes", maxPassphrase)
		case err != nil && !s.ended:
			return fmt.Errorf("reading the passphrase: %w", err)
		}
	}
	s.list = bytes.Split(s.raw, end)
	for i := range s.list {
		if c.tool == "diskutil" {
			s.list[i] = bytes.TrimSuffix(s.list[i], []byte("\r"))
		}
	}
	return nil
}

// unlock derives the keys of the image that is read from the first passphrase on
// stdin, once for every later opening. The error for none is missing, and for a
// wrong one that of [container.UnwrapKeys].
func (c *call) unlock(p place, missing error) (keys crypt.Keys, err error) {
	c.secrets.encrypted = true
	pass, err := c.passphrase(0)
	switch {
	case err != nil:
		return nil, err
	case len(pass) == 0:
		return nil, missing
	case c.secrets.keys == nil:
		c.secrets.keys = map[string]crypt.Keys{}
	}
	keys, err = container.UnwrapKeys(p.dir, p.name, pass)
	c.secrets.keys[p.path] = keys
	return keys, err
}

// encryption is the encryption of the image to be made. Its passphrase is the
// first on stdin that does not belong to an image that is read.
func (c *call) encryption() (e container.Encryption, err error) {
	switch {
	case c.has("encrypt"): // of diskutil
		e.Cipher = container.AES256
	case c.has("encryption"):
		e.Cipher = cmp.Or(strings.ToUpper(c.value("encryption")), container.AES128)
	default:
		return e, nil
	}
	e.Iterations = c.env.iterations
	if !c.readsStdin() {
		return e, refuse("an encrypted image takes a passphrase, and this program has no prompt: want %s",
			c.stdinOption())
	}
	n := 0
	if c.secrets.encrypted {
		n = 1
	}
	if e.Passphrase, err = c.passphrase(n); err == nil && len(e.Passphrase) == 0 {
		err = refuse("no passphrase of the new image on stdin")
	}
	return e, err
}

// stdinOption is the option of the verb that reads the passphrase of an image
// from stdin, for messages.
func (c *call) stdinOption() string {
	return cmp.Or(c.verb.optionName("oldstdinpass"), c.verb.optionName("stdinpass"), "-stdinpass")
}

// isencrypted reads the header of encrypted images, which takes no passphrase.
// Records of kind 2 are keys that a certificate unwraps. Images of other
// programs are refused: whether those are encrypted is not known.
func (c *call) isencrypted() error {
	p, h, err := c.encryptionHeader()
	if err != nil {
		return err
	}
	defer p.close()
	if h == nil {
		i, err := c.open(p, peek)
		if e, ok := errors.AsType[*container.UnsupportedError](err); ok && e.Foreign {
			return err
		}
		if err == nil {
			i.Close()
		}
		return c.printResult(dict{"encrypted": false}, "encrypted: NO\n")
	}
	u, certificates := h.UUID, 0
	uuid := strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]))
	for _, r := range h.Records {
		if r.Kind == 2 {
			certificates++
		}
	}
	return c.printResult(dict{"encrypted": true, "version": h.Version, "uuid": uuid, "blocksize": h.BlockSize,
		"passphrase-count": h.Passphrases, "private-key-count": certificates,
		"max-key-count": max(h.Passphrases+certificates, 1)},
		"encrypted: YES\nversion: %d\nblocksize: %d\npassphrase-count: %d\nprivate-key-count: %d\nuuid: %s\n",
		h.Version, h.BlockSize, h.Passphrases, certificates, uuid)
}

// encryptionHeader returns the place of the image that is named first, and its
// header, nil for an unencrypted one. Without an error the caller closes the
// place.
func (c *call) encryptionHeader() (p place, h *crypt.Header, err error) {
	if p, err = c.existing(c.operands[0]); err != nil {
		return p, nil, err
	}
	if h, err = container.EncryptionOf(p.dir, p.name); err != nil {
		p.close()
	}
	return p, h, err
}

// chpass wraps the keys of an image under another passphrase; the data stays as
// it is. It takes two passphrases from stdin, the present one first. hdiutil
// names both by options of their own, as Apple's tool has prompts for those
// that are not named.
func (c *call) chpass() error {
	p, h, err := c.encryptionHeader()
	if err != nil {
		return err
	}
	defer p.close()
	want := ""
	switch {
	case h == nil:
		return refuse("Invalid argument: the image is not encrypted")
	case c.tool == "hdiutil" && !(c.has("oldstdinpass") && c.has("newstdinpass")):
		want = "-oldstdinpass and -newstdinpass"
	case !c.readsStdin():
		want = c.stdinOption()
	}
	if want != "" {
		return refuse("this program has no prompt for a passphrase: want %s", want)
	}
	next, err := c.passphrase(1)
	if err == nil && len(next) == 0 {
		err = refuse("no new passphrase on stdin")
	}
	if err == nil {
		err = container.ChangePassphrase(p.dir, p.name, c.secrets.list[0], next)
	}
	if err != nil {
		return err
	}
	return c.printResult(dict{"image-path": p.path}, "")
}
