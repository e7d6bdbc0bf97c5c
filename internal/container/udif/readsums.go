package udif

import (
	"context"
	"hash/crc32"
	"slices"
	"sync/atomic"
)

// maxSums bounds for how many pieces of an image sums are kept, at 8 bytes each: a sparse file may
// claim any length of raw data.
const maxSums = 16 << 20

// readSums are the CRC-32s of the pieces of an image that were read, cut as pass cuts them.
type readSums struct {
	first []int64         // piece of each run
	sums  []atomic.Uint64 // summed and the CRC-32; 0 for a piece that was not read
}

// summed marks a sum that was computed: a CRC-32 may be 0.
const summed = 1 << 32

// KeepSums makes the image sum up what is read from now on, so that VerifyRead need not read it
// again. It must not be called while something reads. An image of too many pieces keeps no sums.
func (im *Image) KeepSums() {
	first, pieces := make([]int64, len(im.runs)), int64(0)
	for i := range im.runs {
		first[i] = pieces
		switch r := &im.runs[i]; {
		case r.kind == KindRaw:
			pieces += (r.bytes() + pieceSize - 1) / pieceSize
		case !r.kind.hole():
			pieces++
		}
	}
	if pieces <= maxSums {
		im.sums = &readSums{first: first, sums: make([]atomic.Uint64, pieces)}
	}
}

// keepSum sums up data, which was read of run i from byte inside on: the pieces that are whole in
// it.
func (im *Image) keepSum(i int, inside int64, data []byte) {
	if im.sums == nil {
		return
	}
	r := &im.runs[i]
	if r.kind.Compressed() {
		im.sums.sums[im.sums.first[i]].Store(summed | uint64(crc32.ChecksumIEEE(data)))
		return
	}
	for at := (inside + pieceSize - 1) / pieceSize * pieceSize; ; at += pieceSize {
		end := min(at+pieceSize, r.bytes())
		if at >= end || end > inside+int64(len(data)) {
			return
		}
		sum := crc32.ChecksumIEEE(data[at-inside : end-inside])
		im.sums.sums[im.sums.first[i]+at/pieceSize].Store(summed | uint64(sum))
	}
}

// keptSum is the sum of the piece of run i at byte inside, if that was read.
func (im *Image) keptSum(i int, inside int64) (sum uint32, ok bool) {
	if im.sums == nil || im.runs[i].kind.hole() {
		return 0, false
	}
	kept := im.sums.sums[im.sums.first[i]+inside/pieceSize].Load()
	return uint32(kept), kept&summed != 0
}

// VerifyRead is Verify after the device was read with KeepSums: only what was not is read, and the
// data fork only where a region has no checksum that is known.
func (im *Image) VerifyRead(ctx context.Context, o StreamOptions) (*Report, error) {
	fork := len(im.listed) == 0 || slices.ContainsFunc(im.listed, func(g *Region) bool {
		return g.Checksum.Type != ChecksumCRC32 && g.Checksum.Type != ChecksumMD5
	})
	return im.verify(ctx, o, fork)
}
