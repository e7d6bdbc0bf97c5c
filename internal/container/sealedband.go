package container

import (
	"io"
	"io/fs"
)

// sealedPerm are the permissions of files with keys or ciphertext in them.
const sealedPerm = 0o600

// sealed is the open band file of an encrypted bundle: ciphertext only, whose
// blocks are counted from 0.
func (bd *band) sealed() sealedFile { return sealedFile{f: bd.f, end: whole, number: bd.index} }

// plain reads the open band's content.
func (bd *band) plain(b *bundle) io.ReaderAt {
	if b.seal == nil {
		return bd.f
	}
	return plainBand{b.seal, bd.sealed()}
}

type plainBand struct {
	seal *sealer
	file sealedFile
}

func (r plainBand) ReadAt(p []byte, off int64) (int, error) { return r.seal.read(r.file, p, off) }

// punchLocked makes n bytes from in, which the file has, read as zeros.
func (bd *band) punchLocked(b *bundle, in, n int64) error {
	if b.seal == nil {
		return bd.f.PunchHole(in, n)
	}
	return b.seal.punch(bd.sealed(), in, n, bd.f.PunchHole)
}

// clearEdge clears what an encrypted band has behind in, in the same block, and
// returns where that ends: what is cut off must not come back with the block.
func (bd *band) clearEdge(b *bundle, in int64) (int64, error) {
	if b.seal == nil {
		return in, nil
	}
	end := b.seal.up(in)
	return end, b.seal.zero(bd.sealed(), in, end)
}

// perm are the permissions of the bundle's new files.
func (b *bundle) perm() fs.FileMode {
	if b.seal != nil {
		return sealedPerm
	}
	return 0o644
}
