package inprocess

import (
	"fmt"

	"dmgbench/internal/container"
	"dmgbench/internal/engine"
)

// udto is the copy of a device from which discs are made: a read-only UDRW with another extension.
const udto = "UDTO"

// isReadOnly reports whether images of the format are made by converting and attached read-only.
func isReadOnly(format string) bool {
	switch format {
	case "UDRO", "UDCO", "UDZO", "UDBZ", "ULFO", "ULMO", "UFBI", udto:
		return true
	}
	return false
}

// isUDIF reports whether images of the format are UDIF files with chunk tables.
func isUDIF(format string) bool { return isReadOnly(format) && format != udto }

// extensionOf is the extension of file names, "" for an unknown format.
func extensionOf(format string) string {
	switch {
	case format == udto:
		return ".cdr"
	case isReadOnly(format):
		return ".dmg"
	}
	return container.Extension(format)
}

// hasFormat reports whether an open container has the format. UDIF images do not store their format: their chunks show
// the compression, unless no chunk could be compressed.
func hasFormat(img container.Image, format string) bool {
	if _, udif := img.(container.Tabled); udif {
		return isUDIF(format)
	}
	return img.Format() == format || format == udto && img.Format() == container.UDRW
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
