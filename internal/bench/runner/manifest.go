package runner

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// manifestBlock is the finest granularity of a manifest in bytes; a container of
// 100 GB takes 200 MB of memory.
const manifestBlock = 4096

// manifestCall is how many bytes are read at once.
const manifestCall = 4 << 20

// manifest are hashes of the files of a container on the host, by their names in
// it: 8 bytes for each block. Hashes of two blocks are equal by chance with a
// probability of 2⁻⁶⁴.
type manifest map[string]hashedFile

// hashedFile is one file of a manifest.
type hashedFile struct {
	size   int64
	hashes []uint64
}

// manifestSeed is the same for all manifests of the process, which are kept in
// memory only.
var manifestSeed = maphash.MakeSeed()

// manifest hashes the files of the detached container on the host, and records
// what has changed since its last manifest. It has no time of its own.
func (s *stepRun) manifest(ctx context.Context) error {
	h := s.h
	dir, name := h.place.dir, h.con.Name()
	if h.place.backing != nil && h.Spec.Format == "" {
		dir, name = h.place.backing, "."
	}
	now, err := readManifest(ctx, dir, name)
	if err != nil {
		return err
	}
	if h.manifest != nil {
		s.rec.Changes = h.manifest.compare(now)
		s.rec.Changes.Edited = h.Edited
	}
	h.manifest, h.Edited = now, 0
	if s.x.c.Settings.Cache == workload.CacheBuffered {
		return nil
	}
	return h.con.Evict(ctx) // reading has filled the host's cache
}

// readManifest hashes the files of a container; links in a folder are left out.
func readManifest(ctx context.Context, dir *hostio.Dir, name string) (manifest, error) {
	out, buf := manifest{}, make([]byte, manifestCall)
	return out, files.Walk(ctx, dir, name, func(inside string, fi fs.FileInfo) error {
		if fi.IsDir() {
			return nil
		}
		f, err := dir.Open(path.Join(name, inside), hostio.OpenOptions{Cache: hostio.CacheBuffered})
		if err != nil {
			return err
		}
		out[inside], err = hashFile(ctx, f, buf)
		return errors.Join(err, f.Close())
	})
}

// hashFile hashes the blocks of a file; the last may be shorter.
func hashFile(ctx context.Context, f io.ReaderAt, buf []byte) (out hashedFile, err error) {
	for n := len(buf); n == len(buf); {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if n, err = f.ReadAt(buf, out.size); err != nil && err != io.EOF {
			return out, err
		}
		for block := range slices.Chunk(buf[:n], manifestBlock) {
			out.hashes = append(out.hashes, maphash.Bytes(manifestSeed, block))
		}
		out.size += int64(n)
	}
	return out, nil
}

// compare is what has changed from one manifest to a later one.
func (m manifest) compare(now manifest) *result.Changes {
	c := &result.Changes{}
	for name, file := range now {
		old, existed := m[name]
		for blocks, sum := range map[int]*int64{1: &c.Bytes4K, 64 << 10 / manifestBlock: &c.Bytes64K,
			1 << 20 / manifestBlock: &c.Bytes1M, math.MaxInt: &c.BytesWhole} {
			*sum += file.changedBytes(old, blocks)
		}
		switch {
		case !existed:
			c.Added++
		case old.size != file.size || !slices.Equal(old.hashes, file.hashes):
			c.Changed++
			// A file that has become shorter has no new bytes, but is copied as a whole
			if file.changedBytes(old, 1) == 0 {
				c.BytesWhole += file.size
			}
		}
	}
	for name := range m {
		if _, exists := now[name]; !exists {
			c.Removed++
		}
	}
	return c
}

// changedBytes are the bytes of the parts, of so many blocks each, that have a
// block which the old file has not.
func (f hashedFile) changedBytes(old hashedFile, blocks int) (n int64) {
	at := int64(0)
	for part := range slices.Chunk(f.hashes, blocks) {
		end := at + int64(len(part))
		if end > int64(len(old.hashes)) || !slices.Equal(part, old.hashes[at:end]) {
			n += min(end*manifestBlock, f.size) - at*manifestBlock
		}
		at = end
	}
	return n
}

// edit edits files that are drawn from a batch. Edited files belong to no batch
// afterwards: their data differs from that of their file set.
func (s *stepRun) edit(ctx context.Context, o workload.Options) (workload.Outcome, error) {
	h, st := s.h, s.st
	from := h.Live
	if st.Batch != "all" {
		from = workload.LastBatch(from)
	}
	picked := workload.Pick(from, cmp.Or(st.Count, 1), s.key())
	edited, out, err := workload.EditFiles(ctx, s.volume(), picked,
		workload.Edit{Kind: st.Kind, Share: float64(st.Share), Amount: int64(st.Amount)}, s.key(), o)
	if err == nil {
		h.Edited += out.Bytes
		h.Live = workload.Without(h.Live, picked)
		h.Named = append(h.Named, edited...)
	}
	return out, err
}
