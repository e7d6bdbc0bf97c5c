package inprocess

import (
	"fmt"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
	diskimage "dmgbench/internal/image"
)

// formatOf is the registry's row of a format; an unknown format gives the zero row.
func formatOf(name string) diskimage.Format {
	f, _ := diskimage.FormatNamed(name)
	return f
}

// hasFormat reports whether an open container has the format. UDIF images do not store their format: their chunks show
// the compression, unless no chunk could be compressed.
func hasFormat(img container.Image, format string) bool {
	if _, udif := img.(container.UDIFImage); udif {
		return formatOf(format).UDIF
	}
	return img.Format() == format || format == diskimage.UDTO && img.Format() == container.UDRW
}

// withPassphrase gives an encrypted spec without a passphrase that of the run, and removes it from others.
func (e *Engine) withPassphrase(s engine.Spec) (engine.Spec, error) {
	if !isEncrypted(s) {
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

func isEncrypted(s engine.Spec) bool {
	e, err := container.ParseEncryption(s.Encryption)
	return err == nil && e != container.EncryptionNone
}

// passphraseOf is nil for an image that is not encrypted.
func passphraseOf(s engine.Spec) []byte {
	if !isEncrypted(s) {
		return nil
	}
	return s.Passphrase
}
