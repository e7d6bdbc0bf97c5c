package inprocess

import (
	"fmt"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
)

// keyed gives a spec of an encrypted image the passphrase of the run where it has none of its own.
func (e *Engine) keyed(s engine.Spec) (engine.Spec, error) {
	if !encrypts(s) {
		s.Passphrase = nil
		return s, nil
	}
	if len(s.Passphrase) == 0 {
		s.Passphrase = e.Passphrase
	}
	if len(s.Passphrase) == 0 {
		return s, fmt.Errorf("encryption %s without a passphrase: %w", s.Encryption, container.ErrPassphrase)
	}
	return s, nil
}

func encrypts(s engine.Spec) bool {
	e, err := container.ParseEncryption(s.Encryption)
	return err == nil && e != container.EncryptionNone
}

// passphrase is nil for a plain image.
func passphrase(s engine.Spec) []byte {
	if !encrypts(s) {
		return nil
	}
	return s.Passphrase
}

// unlocked opens the image for calls that look at its structure.
func (c *image) unlocked() container.OpenOptions {
	return container.OpenOptions{Passphrase: passphrase(c.spec)}
}

// encrypted fails where the container on the host is not encrypted as the spec says.
func (c *image) encrypted() error {
	h, err := container.EncryptionOf(c.dir, c.file)
	if err != nil {
		return gone(err)
	}
	found, want := container.EncryptionNone, container.EncryptionNone
	if h != nil {
		found = fmt.Sprintf("AES-%d", h.KeyBits)
	}
	if encrypts(c.spec) {
		want, _ = container.ParseEncryption(c.spec.Encryption)
	}
	if found != want {
		return fmt.Errorf("opening %q: its encryption is %s, not %s", c.file, found, want)
	}
	return nil
}
