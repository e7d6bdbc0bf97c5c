package container

import (
	"errors"
	"fmt"
	"path/filepath"

	"dmgbench/internal/container/crypt"
	"dmgbench/internal/hostio"
)

// ErrNotEncrypted is returned by [ChangePassphrase] for a container without a
// passphrase.
var ErrNotEncrypted = crypt.ErrNotEncrypted

// ChangePassphrase makes next the passphrase of a container that old opens. The
// data stays as it is: the keys are wrapped anew. A crash leaves one of the two
// in force. A container that is open for writing is [ErrInUse], a wrong old
// passphrase [ErrPassphrase]. Neither passphrase is kept or changed.
func ChangePassphrase(dir *hostio.Dir, name string, old, next []byte) error {
	k, err := probe(dir, name)
	if err != nil {
		return err
	}
	path := filepath.Join(dir.Path(), name)
	switch {
	case k.encrypted == "" && k.refused != "":
		return &UnsupportedError{Path: path, Found: k.refused, Doing: "opening"}
	case k.encrypted == "":
		return fmt.Errorf("changing the passphrase of %q: %w", path, ErrNotEncrypted)
	case k.format == UDSB:
		if err := unchangeableBundle(path, k); err != nil {
			return err
		}
	}
	switch {
	case len(old) == 0:
		return &noPassphrase{path, k.encrypted}
	case k.format == UDSB:
		return rekeyBundle(dir, name, path, k.encrypted, old, next)
	}
	f, err := openStore(dir, name, OpenOptions{})
	if err != nil {
		return err
	}
	return errors.Join(rekeyFile(f, k.encrypted, old, next), f.Close())
}

// rekeyFile writes into the header of a file.
func rekeyFile(f *hostStore, found string, old, next []byte) error {
	h, err := readHeader(f.File)
	if err != nil {
		return encryptionError(f.Path(), found, err)
	}
	was := h.Marshal()
	if err := h.ChangePassphrase(old, next); err != nil {
		return encryptionError(f.Path(), found, err)
	}
	steps, err := h.Steps(was)
	if err != nil {
		return encryptionError(f.Path(), found, err)
	}
	if err := f.Check(); err != nil {
		return err
	}
	for _, s := range steps {
		if _, err := f.WriteAt(s.Data, s.Off); err != nil {
			return err
		}
		if _, err := f.Sync(hostio.SyncFull); err != nil {
			return err
		}
	}
	return nil
}

// rekeyBundle puts another token in the place of the old one.
func rekeyBundle(parent *hostio.Dir, name, path, found string, old, next []byte) (err error) {
	b := &bundle{parent: parent, name: name, path: path, table: map[int64]*band{}}
	defer func() { err = errors.Join(err, b.release()) }()
	if err := b.begin(found); err != nil {
		return err
	}
	h, err := readToken(b.dir)
	if err != nil {
		return encryptionError(path, found, err)
	}
	if err := h.ChangePassphrase(old, next); err != nil {
		return encryptionError(path, found, err)
	}
	if err := b.check(); err != nil {
		return err
	}
	st, err := b.dir.Lstat("token")
	if err != nil {
		return err
	}
	return b.dir.WriteFileAtomic("token", h.Marshal(), st.Mode().Perm())
}
