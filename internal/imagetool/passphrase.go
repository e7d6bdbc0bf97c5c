package imagetool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"dmgbench/internal/container"
	"dmgbench/internal/container/crypt"

	"golang.org/x/term"
)

// maxPassphrase bounds what is read of passphrases from stdin, in bytes.
const maxPassphrase = 64 << 10

// secrets are the passphrases of a command line: those on stdin, and which of
// them are of its images.
type secrets struct {
	taken     bool // stdin has come to its end
	raw       []byte
	list      [][]byte
	encrypted bool                   // the image that is read is
	keys      map[string]*crypt.Keys // of the images that have been opened, by path: their derivation is what takes long
}

// wipe overwrites them.
func (s *secrets) wipe() {
	clear(s.raw)
	for _, k := range s.keys {
		k.Wipe()
	}
}

// stdinOptions are those that say that stdin has passphrases.
var stdinOptions = []string{"-stdinpass", "-oldstdinpass", "-newstdinpass", "--stdinpassphrase"}

func (c *call) onStdin() bool {
	for _, o := range stdinOptions {
		if c.has(o) {
			return true
		}
	}
	return false
}

// secret is passphrase n of stdin, counted from 0, without bytes if there is none. For hdiutil they end with a NUL or the
// input, and a line end is a part of them; for diskutil they are lines. No more is read than that takes: whoever writes to
// stdin may leave it open.
func (c *call) secret(n int) ([]byte, error) {
	s := &c.secrets
	if c.onStdin() {
		if err := c.takeSecrets(n); err != nil {
			return nil, err
		}
	}
	if n >= len(s.list) {
		return nil, nil
	}
	return s.list[n], nil
}

func (c *call) takeSecrets(n int) error {
	s, end := &c.secrets, []byte{0}
	if c.tool == "diskutil" {
		end = []byte("\n")
	}
	if f, ok := c.env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) { // which would show it, and wait for an end
		return refuse("stdin is a terminal, and nobody is asked for a passphrase here: give it by a pipe or a file")
	}
	if s.raw == nil {
		s.raw = make([]byte, 0, maxPassphrase+1) // and never moved, so that it can be wiped
	}
	for !s.taken && bytes.Count(s.raw, end) <= n {
		got, err := c.readStdin(s.raw[len(s.raw):cap(s.raw)])
		s.raw = s.raw[:len(s.raw)+got]
		s.taken = errors.Is(err, io.EOF)
		switch {
		case len(s.raw) == cap(s.raw):
			return refuse("the passphrase is longer than %d bytes", maxPassphrase)
		case err != nil && !s.taken:
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

// readStdin is one read, for which an interrupted command does not wait.
func (c *call) readStdin(p []byte) (int, error) {
	buf, done := make([]byte, len(p)), make(chan error, 1)
	n := 0
	go func() {
		var err error
		n, err = c.env.Stdin.Read(buf)
		done <- err
	}()
	select {
	case <-c.ctx.Done():
		return 0, c.ctx.Err()
	case err := <-done:
		copy(p, buf[:n])
		clear(buf)
		return n, err
	}
}

// open opens an image, with the passphrase from stdin where it needs one and stdin is said to have it.
func (c *call) open(p place, readOnly bool) (container.Image, error) {
	img, err := c.openAny(p, readOnly)
	if err != nil {
		return nil, err
	}
	if err := c.ownFormat(p, img); err != nil {
		return nil, errors.Join(err, img.Close())
	}
	return img, nil
}

// openAny is open for images of other programs, too, as raw ones.
func (c *call) openAny(p place, readOnly bool) (container.Image, error) {
	o := container.OpenOptions{ReadOnly: readOnly, Keys: c.secrets.keys[p.path]}
	img, err := container.Open(p.dir, p.name, o)
	if o.Keys != nil || !errors.Is(err, container.ErrPassphrase) {
		return img, err
	}
	c.secrets.encrypted = true
	pass, e := c.secret(0)
	if e != nil {
		return nil, e
	}
	if len(pass) == 0 {
		return nil, err
	}
	if err := c.unlock(p, pass); err != nil {
		return nil, err
	}
	o.Keys = c.secrets.keys[p.path]
	return container.Open(p.dir, p.name, o)
}

// unlock derives the keys of an image, once for all that the command does with it.
func (c *call) unlock(p place, pass []byte) error {
	keys, err := container.UnwrapKeys(p.dir, p.name, pass)
	if err != nil {
		return err
	}
	if c.secrets.keys == nil {
		c.secrets.keys = map[string]*crypt.Keys{}
	}
	c.secrets.keys[p.path] = keys
	return nil
}

// encryption is that of the image to be made. Its passphrase is the first on stdin that is not one of an image that is
// read.
func (c *call) encryption() (e container.Encryption, err error) {
	switch {
	case c.tool == "diskutil" && c.has("--encrypt"):
		e.Cipher = container.AES256
	case c.has("-encryption"):
		e.Cipher = container.AES128
		if c.value("-encryption") != "" {
			e.Cipher = strings.ToUpper(c.value("-encryption"))
		}
	default:
		return e, nil
	}
	e.Iterations = c.env.iterations
	if !c.onStdin() {
		return e, refuse("an encrypted image takes a passphrase, and nobody is asked for it here: want %s", c.stdinOption())
	}
	n := 0
	if c.secrets.encrypted {
		n = 1
	}
	if e.Passphrase, err = c.secret(n); err == nil && len(e.Passphrase) == 0 {
		err = refuse("no passphrase of the new image on stdin")
	}
	return e, err
}

func (c *call) stdinOption() string {
	switch {
	case c.tool == "diskutil":
		return "--stdinpassphrase"
	case c.verb.name == "chpass":
		return "-oldstdinpass"
	}
	return "-stdinpass"
}

// plainStdin refuses a passphrase for a new image that would not be encrypted.
func (c *call) plainStdin() error {
	if c.onStdin() && !c.has("-encryption") && !c.has("--encrypt") {
		return misused("a passphrase, and no encryption: want %s too", map[bool]string{true: "--encrypt", false: "-encryption"}[c.tool == "diskutil"])
	}
	return nil
}

// isencrypted reads the header of encrypted images, which takes no passphrase.
func (c *call) isencrypted() error {
	p, err := c.existing(c.operands[0])
	if err != nil {
		return err
	}
	defer p.close()
	h, err := container.EncryptionOf(p.dir, p.name)
	if err != nil {
		return err
	}
	if h == nil {
		img, err := c.open(p, true)
		if found, ok := errors.AsType[*container.UnsupportedError](err); ok && found.Foreign {
			return err
		}
		if err == nil {
			img.Close()
		}
		if c.has("-plist") {
			return c.printPlist(list{"encrypted": false})
		}
		_, err = fmt.Fprintln(c.out, "encrypted: NO")
		return err
	}
	u, certificates := h.UUID, 0
	uuid := strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]))
	for _, r := range h.Records {
		if r.Kind == 2 {
			certificates++
		}
	}
	if c.has("-plist") {
		return c.printPlist(list{"encrypted": true, "version": h.Version, "uuid": uuid, "blocksize": h.BlockSize,
			"passphrase-count": h.Passphrases, "private-key-count": certificates, "max-key-count": max(h.Passphrases+certificates, 1)})
	}
	_, err = fmt.Fprintf(c.out, "encrypted: YES\nversion: %d\nblocksize: %d\npassphrase-count: %d\nprivate-key-count: %d\nuuid: %s\n",
		h.Version, h.BlockSize, h.Passphrases, certificates, uuid)
	return err
}

// chpass wraps the keys of an image under another passphrase.
func (c *call) chpass() error {
	p, err := c.existing(c.operands[0])
	if err != nil {
		return err
	}
	defer p.close()
	h, err := container.EncryptionOf(p.dir, p.name)
	switch {
	case err != nil:
		return err
	case h == nil:
		return &refusal{words: "Invalid argument: the image is not encrypted"}
	case c.tool == "hdiutil" && !(c.has("-oldstdinpass") && c.has("-newstdinpass")):
		return refuse("nobody is asked for a passphrase here: want -oldstdinpass and -newstdinpass")
	case !c.onStdin():
		return refuse("nobody is asked for a passphrase here: want %s", c.stdinOption())
	}
	old, err := c.secret(0)
	if err != nil {
		return err
	}
	next, err := c.secret(1)
	if err == nil && len(next) == 0 {
		err = refuse("no new passphrase on stdin")
	}
	if err != nil {
		return err
	}
	if err := container.ChangePassphrase(p.dir, p.name, old, next); err != nil || !c.has("--plist") {
		return err
	}
	return c.printPlist(list{"image-path": p.path})
}
