package udif

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"math/bits"
	"slices"
	"sync"
)

// Result is the outcome of one check.
type Result int

// The outcomes. Absent is a valid state: an image need not carry every
// checksum.
const (
	Agrees     Result = iota
	Differs           // the checksum does not match the content
	Absent            // the image has none
	Unchecked         // it is of a type that this package does not know
	Unreadable        // what it covers cannot be read or decoded
)

// Check is one checksum of an image, compared with its content.
type Check struct {
	What      string // "data fork", "master checksum", or the name of a region
	Result    Result
	Type      uint32 // ChecksumCRC32 …
	Want, Got []byte // as stored and as computed, where that could be done
	Err       error  // why it is Unreadable
}

// Report is what Verify found: the checks of the data fork, of every region as
// listed, and of the master checksum, which is over the regions'.
type Report []Check

// Problem is what is wrong, nil if nothing; it wraps ErrChecksum when the
// checksum differs.
func (c *Check) Problem() error {
	switch c.Result {
	case Differs:
		return fmt.Errorf("%x stored, %x computed: %w", c.Want, c.Got, ErrChecksum)
	case Unreadable:
		return c.Err
	}
	return nil
}

// Err joins everything that is wrong.
func (r Report) Err() error {
	var all []error
	for _, c := range r {
		if err := c.Problem(); err != nil {
			all = append(all, fmt.Errorf("verifying %q: %w", c.What, err))
		}
	}
	return errors.Join(all...)
}

// maxMD5Zeros bounds how many zeros are fed to MD5 for one region: unlike
// CRC-32 it cannot skip them, and an image of a few bytes may claim exabytes of
// them.
const maxMD5Zeros = 64 << 30

// Verify computes every checksum of the image. Chunks that cannot be read do
// not end it, they are findings; the error is that of ctx. Memory is bounded as
// by Stream. Of an image that was read with KeepSums it reads only the rest, and
// the data fork only where a region has no checksum that is known.
func (im *Image) Verify(ctx context.Context, o StreamOptions) (report Report, err error) {
	if im.sums == nil || len(im.listed) == 0 || slices.ContainsFunc(im.listed, func(g *Region) bool {
		return newHash(g.Checksum.Type) == nil
	}) {
		data, err := im.checkData(ctx)
		if err != nil {
			return nil, err
		}
		report = append(report, data)
	}
	v := &verifier{im: im, order: slices.Clone(im.listed), checks: map[*Region]Check{}, md5: md5.New()}
	slices.SortStableFunc(v.order, byFirst)
	v.needsData = slices.ContainsFunc(v.order, func(g *Region) bool { return g.Checksum.Type == ChecksumMD5 })
	if err := im.pass(ctx, o, v.work, v.take); err != nil {
		return nil, fmt.Errorf("verifying the image: %w", err)
	}
	v.flush(len(v.order))
	var sums []byte
	for _, g := range im.listed {
		report = append(report, v.checks[g])
		sums = append(sums, g.Checksum.Value()...)
	}
	if master := &im.trailer.Master; !im.stub { // over the regions' checksums as they are stored
		report = append(report, check("master checksum", master, sumOf(master.Type, sums)))
	}
	return report, nil
}

// check compares a checksum field with what was computed for its type.
func check(what string, want *Checksum, got []byte) Check {
	c := Check{What: what, Type: want.Type, Want: slices.Clone(want.Value()), Got: got}
	switch {
	case want.Type == ChecksumNone:
		c.Result = Absent
	case got == nil:
		c.Result = Unchecked
	case !bytes.Equal(c.Want, got):
		c.Result = Differs
	}
	return c
}

// crcBytes is a CRC-32 as a checksum field stores it.
func crcBytes(sum uint32) []byte { return binary.BigEndian.AppendUint32(nil, sum) }

// checkData checks the data fork as it is stored.
func (im *Image) checkData(ctx context.Context) (c Check, err error) {
	t := im.trailer
	c = check("data fork", &t.DataChecksum, nil)
	sum := newHash(t.DataChecksum.Type)
	if sum == nil {
		return c, nil
	}
	piece := make([]byte, pieceSize)
	for at := int64(0); at < int64(t.DataLength); at += pieceSize {
		if ctx.Err() != nil {
			return c, fmt.Errorf("verifying the image: %w", context.Cause(ctx))
		}
		part := piece[:min(pieceSize, int64(t.DataLength)-at)]
		if c.Err = readFull(im.src, part, int64(t.DataOffset)+at); c.Err != nil {
			c.Result = Unreadable
			return c, nil
		}
		sum.Write(part)
	}
	return check(c.What, &t.DataChecksum, sum.Sum(nil)), nil
}

// newHash computes checksums of a type, nil for one that is not known.
func newHash(typ uint32) hash.Hash {
	switch typ {
	case ChecksumCRC32:
		return crc32.NewIEEE()
	case ChecksumMD5:
		return md5.New()
	}
	return nil
}

// sumOf is the checksum of b, nil for a type that is not known.
func sumOf(typ uint32, b []byte) []byte {
	h := newHash(typ)
	if h == nil {
		return nil
	}
	h.Write(b)
	return h.Sum(nil)
}

// verifier joins the pieces of each region to its checksum.
type verifier struct {
	im        *Image
	order     []*Region // as in the device
	needsData bool      // a checksum is of MD5, which cannot be joined of sums
	at        int       // region of order that is being summed
	checks    map[*Region]Check
	crc       uint32
	md5       hash.Hash
	zeros     int64 // fed to md5
	err       error
}

// work decodes a piece and sums it up.
func (v *verifier) work(s *slot) error {
	if kept := v.im.sums; kept != nil && !v.needsData {
		kept.mu.Lock()
		sum, ok := kept.sums[s.Offset]
		kept.mu.Unlock()
		if ok {
			s.crc = sum
			return nil
		}
	}
	s.err = v.im.loadSlot(s)
	switch {
	case s.run.kind == KindZero:
		s.crc = zeroCRC(s.Length)
	case s.err == nil:
		s.crc = crc32.ChecksumIEEE(s.Data)
	}
	return nil
}

// take adds the next piece of the device to its region.
func (v *verifier) take(s *slot) error {
	sector := uint64(s.Offset) / SectorSize
	for v.at < len(v.order) && v.order[v.at].First+v.order[v.at].Sectors <= sector {
		v.flush(v.at + 1)
	}
	if v.at == len(v.order) || sector < v.order[v.at].First { // space that no table describes
		return nil
	}
	if v.err = cmp.Or(v.err, s.err); v.err != nil || s.run.kind == KindIgnore {
		return nil
	}
	v.crc = combineCRC(v.crc, s.crc, s.Length)
	switch {
	case v.order[v.at].Checksum.Type != ChecksumMD5:
	case s.Data != nil:
		v.md5.Write(s.Data)
	default:
		v.zeros += s.Length
		for left := s.Length; left > 0 && v.zeros <= maxMD5Zeros; left -= int64(len(zeros)) {
			v.md5.Write(zeros[:min(left, int64(len(zeros)))])
		}
	}
	return nil
}

// flush ends the regions up to end, exclusively.
func (v *verifier) flush(end int) {
	for ; v.at < end; v.at++ {
		g := v.order[v.at]
		var got []byte
		switch {
		case v.err != nil:
		case g.Checksum.Type == ChecksumCRC32:
			got = crcBytes(v.crc)
		case g.Checksum.Type == ChecksumMD5 && v.zeros <= maxMD5Zeros:
			got = v.md5.Sum(nil)
		}
		c := check(g.Name, &g.Checksum, got)
		if c.Err = v.err; c.Err != nil {
			c.Result = Unreadable
		}
		v.checks[g] = c
		v.md5.Reset()
		v.crc, v.zeros, v.err = 0, 0, nil
	}
}

// The CRC-32 of two pieces follows from those of each (Mark Adler's method in
// zlib): appending n bytes multiplies the register by x^(8n) modulo the
// polynomial. Polynomials are bit-reversed, as hash/crc32 keeps them: x^0 is
// the top bit.

// polynomial is that of IEEE 802.3, reversed.
const polynomial = 0xEDB88320

// squares holds x^(2^n) modulo the polynomial; x^(2^32) is x again, since the
// polynomial is primitive.
var squares = func() (table [32]uint32) {
	table[0] = 1 << 30
	for n := 1; n < len(table); n++ {
		table[n] = multiply(table[n-1], table[n-1])
	}
	return table
}()

// multiply is a·b modulo the polynomial.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}

// power is x^(8n) modulo the polynomial.
func power(n uint64) uint32 {
	result := uint32(1) << 31
	for ; n != 0; n &= n - 1 {
		result = multiply(squares[(bits.TrailingZeros64(n)+3)%32], result)
	}
	return result
}

// combineCRC is the CRC-32 of a piece with the first value, followed by one of
// length bytes with the second.
func combineCRC(first, second uint32, length int64) uint32 {
	return multiply(power(uint64(length)), first) ^ second
}

// zeroCRC is the CRC-32 of that many zero bytes.
func zeroCRC(length int64) uint32 {
	return ^multiply(power(uint64(length)), 0xFFFFFFFF)
}

// CRC computes the CRC-32 of a UDIF image's content. The zero value is that of no bytes.
type CRC struct{ sum uint32 }

// Write implements [io.Writer].
func (c *CRC) Write(p []byte) (int, error) {
	c.sum = crc32.Update(c.sum, crc32.IEEETable, p)
	return len(p), nil
}

// WriteZeros writes so many zero bytes, in a time that does not depend on their number.
func (c *CRC) WriteZeros(n int64) { c.sum = combineCRC(c.sum, zeroCRC(n), n) }

// Sum appends the checksum to b, as [hash.Hash] does.
func (c *CRC) Sum(b []byte) []byte { return append(b, crcBytes(c.sum)...) }

// maxSums bounds for how many pieces of an image sums are kept, at some 50 bytes
// each: a sparse file may claim any length of raw data.
const maxSums = 4 << 20

// readSums are the CRC-32s of the pieces of an image that were read, by the
// byte of the device at which the piece, cut as pass cuts them, starts.
type readSums struct {
	mu   sync.Mutex
	sums map[int64]uint32
}

// KeepSums makes the image sum up what is read from now on, so that Verify need
// not read it again. It must not be called while something reads.
func (im *Image) KeepSums() { im.sums = &readSums{sums: map[int64]uint32{}} }

// keepSum sums up data, which was read of run r from byte inside on: the pieces
// that are whole in it.
func (im *Image) keepSum(r *run, inside int64, data []byte) {
	if im.sums == nil {
		return
	}
	step := r.pieceLength()
	for at := (inside + step - 1) / step * step; ; at += step {
		end := min(at+step, r.bytes())
		if at >= end || end > inside+int64(len(data)) {
			return
		}
		sum := crc32.ChecksumIEEE(data[at-inside : end-inside])
		im.sums.mu.Lock()
		if len(im.sums.sums) < maxSums {
			im.sums.sums[r.deviceOffset()+at] = sum
		}
		im.sums.mu.Unlock()
	}
}
