package exfat

import (
	"math/bits"

	"dmgbench/internal/image/blockdev"
)

// chunk is metadata on its way to the device.
type chunk struct {
	off  int64
	data []byte
}

// writeChunks writes all of them and stops at the first error.
func writeChunks(dev blockdev.Device, chunks []chunk) error {
	for _, c := range chunks {
		if err := writeFull(dev, c.data, c.off); err != nil {
			return err
		}
	}
	return nil
}

// paged is metadata in memory that remembers which pages differ from the
// device; nil has none. Pages are 4 KiB, or a cluster if that is less, so that a page is
// never split on the device.
type paged struct {
	data []byte
	// page is the size of a page in bytes.
	page int
	// set has a bit for each dirty page, dirty whether any is set.
	set   []uint64
	dirty bool
	// at is the device offset of an offset in data. All bytes of a page are
	// neighbours on the device.
	at func(off int64) int64
}

// mark records that n bytes at off have changed.
func (p *paged) mark(off, n int) {
	if n == 0 {
		return
	}
	for page := off / p.page; page <= (off+n-1)/p.page; page++ {
		for page/64 >= len(p.set) {
			p.set = append(p.set, 0)
		}
		p.set[page/64] |= 1 << (page % 64)
	}
	p.dirty = true
}

// take appends copies of the dirty pages to chunks, neighbours joined, and
// marks them clean.
func (p *paged) take(chunks []chunk) []chunk {
	if p == nil || !p.dirty {
		return chunks
	}
	p.dirty = false
	for i, word := range p.set {
		p.set[i] = 0
		for ; word != 0; word &= word - 1 {
			off := (i*64 + bits.TrailingZeros64(word)) * p.page
			if off >= len(p.data) {
				break
			}
			data, at := p.data[off:min(off+p.page, len(p.data))], p.at(int64(off))
			if last := len(chunks) - 1; last >= 0 && chunks[last].off+int64(len(chunks[last].data)) == at {
				chunks[last].data = append(chunks[last].data, data...)
				continue
			}
			chunks = append(chunks, chunk{at, append([]byte(nil), data...)})
		}
	}
	return chunks
}

// markAll makes all pages dirty, after a write of some failed.
func (p *paged) markAll() {
	if p != nil {
		p.mark(0, len(p.data))
	}
}
