package container

import (
	"fmt"

	"dmgbench/internal/container/files"
	"dmgbench/internal/hostio"
)

// ruined is how much of a chunk [RuinStored] overwrites at most, in bytes.
const ruined = 4096

// RuinStored overwrites, in the file of a read-only image, what stores the first
// data at or behind a byte of the device: its checksum is wrong from then on, and
// so is what is read there. It is for tests of what happens then. Images without
// tables are refused, and so is one with nothing behind that byte. pass opens an
// encrypted image, and stays the caller's.
func RuinStored(dir *hostio.Dir, name string, from int64, pass []byte) error {
	at, n, err := stored(dir, name, from, pass)
	if err != nil {
		return err
	}
	f, err := dir.Open(name, hostio.OpenOptions{Write: true})
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(files.Rubbish(int(min(n, ruined))), at); err != nil {
		return err
	}
	_, err = f.Sync(hostio.SyncFull)
	return err
}

// stored finds the stretch of the file.
func stored(dir *hostio.Dir, name string, from int64, pass []byte) (at, n int64, err error) {
	h, err := EncryptionOf(dir, name)
	if err != nil {
		return 0, 0, err
	}
	base := int64(0)
	if h != nil {
		base = h.DataOffset
	}
	img, err := Open(dir, name, OpenOptions{ReadOnly: true, Passphrase: pass})
	if err != nil {
		return 0, 0, err
	}
	defer img.Close()
	t, ok := img.(Tabled)
	if !ok {
		return 0, 0, &UnsupportedError{Path: name, Found: "an image without tables", Doing: "ruining stored data of"}
	}
	u := t.UDIF()
	for off := from; off < u.Size(); off, _ = u.Next(off) {
		if at, n = u.Stored(off); n > 0 {
			return base + at, n, nil
		}
	}
	return 0, 0, fmt.Errorf("ruining %q: there is no data behind byte %d", name, from)
}
