package imagetool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"dmgbench/internal/hostio"
)

// encryptionHeader is what can be said of an encrypted image without its passphrase.
type encryptionHeader struct {
	version                   int // 0: not encrypted; 1: cdsaencr; 2: encrcdsa
	uuid                      string
	block                     int64 // bytes
	passphrases, certificates int
}

// Offsets of encrcdsa version 2, all big-endian; the table of key records follows at keyTable.
const (
	uuidAt      = 0x24
	blockAt     = 0x34
	keyCountAt  = 0x48
	keyTable    = 0x4c
	keyEntry    = 20
	maxKeys     = 64
	headerBytes = keyTable + maxKeys*keyEntry
)

// encryptionOf reads the header of a file, or of a bundle's token.
func encryptionOf(p place) (h encryptionHeader, err error) {
	name := p.name
	fi, err := p.dir.Lstat(name)
	switch {
	case err != nil:
		return h, err
	case fi.IsDir():
		name = filepath.Join(name, "token")
		if _, err := p.dir.Lstat(filepath.Join(p.name, "Info.plist")); err != nil {
			return h, refuse("image not recognized")
		}
	}
	f, err := p.dir.Open(name, hostio.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return h, err
	}
	head, tail := make([]byte, min(st.Size, headerBytes)), make([]byte, min(st.Size, 8))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return h, err
	}
	if _, err := f.ReadAt(tail, st.Size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return h, err
	}
	if string(tail) == "cdsaencr" {
		h.version = 1
	}
	if strings.HasPrefix(string(head), "encrcdsa") {
		return parseHeader(head)
	}
	return h, nil
}

// parseHeader reads a header of version 2.
func parseHeader(b []byte) (h encryptionHeader, err error) {
	be := binary.BigEndian
	if len(b) < keyTable || be.Uint32(b[8:]) != 2 {
		return h, refuse("image not recognized")
	}
	u := b[uuidAt:][:16]
	h = encryptionHeader{version: 2, block: int64(be.Uint32(b[blockAt:])),
		uuid: strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]))}
	n := be.Uint32(b[keyCountAt:])
	if n > maxKeys || int(keyTable+n*keyEntry) > len(b) {
		return h, refuse("image not recognized")
	}
	for i := range n {
		switch be.Uint32(b[keyTable+i*keyEntry:]) {
		case 1:
			h.passphrases++
		case 2:
			h.certificates++
		}
	}
	return h, nil
}
