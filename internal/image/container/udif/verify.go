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
	"slices"
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
type Report struct {
	Checks []Check
}

// Err joins everything that is wrong; it wraps ErrChecksum when a checksum
// differs.
func (r *Report) Err() error {
	var all []error
	for i := range r.Checks {
		c := &r.Checks[i]
		switch c.Result {
		case Differs:
			all = append(all, fmt.Errorf("verifying %q: %x stored, %x computed: %w", c.What, c.Want, c.Got,
				ErrChecksum))
		case Unreadable:
			all = append(all, fmt.Errorf("verifying %q: %w", c.What, c.Err))
		}
	}
	return errors.Join(all...)
}

// Names of the checks that do not belong to a region.
const (
	CheckData   = "data fork"
	CheckMaster = "master checksum"
)

// maxMD5Zeros bounds how many zeros are fed to MD5 for one region: unlike
// CRC-32 it cannot skip them, and an image of a few bytes may claim exabytes of
// them.
const maxMD5Zeros = 64 << 30

// Verify computes every checksum of the image. Chunks that cannot be read do
// not end it, they are findings; the error is that of ctx. Memory is bounded as
// by Stream.
func (im *Image) Verify(ctx context.Context, o StreamOptions) (*Report, error) {
	return im.verify(ctx, o, true)
}

// verify is Verify; fork also checks the data fork as a whole.
func (im *Image) verify(ctx context.Context, o StreamOptions, fork bool) (*Report, error) {
	report := &Report{}
	if fork {
		data, err := im.checkData(ctx)
		if err != nil {
			return nil, err
		}
		report.Checks = append(report.Checks, data)
	}
	v := &verifier{im: im, order: slices.Clone(im.listed), checks: map[*Region]Check{}}
	slices.SortStableFunc(v.order, func(a, b *Region) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Sectors, b.Sectors))
	})
	v.needsData = slices.ContainsFunc(v.order, func(g *Region) bool { return g.Checksum.Type == ChecksumMD5 })
	if err := im.pass(ctx, o, v.work, v.take); err != nil {
		return nil, fmt.Errorf("verifying the image: %w", err)
	}
	v.flush(len(v.order))
	var sums []byte
	for _, g := range im.listed {
		report.Checks = append(report.Checks, v.checks[g])
		sums = append(sums, g.Checksum.Value()...)
	}
	if master := &im.trailer.Master; !im.stub { // over the regions' checksums as they are stored
		report.Checks = append(report.Checks, check(CheckMaster, master, sumOf(master.Type, sums)))
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
func (im *Image) checkData(ctx context.Context) (Check, error) {
	t := im.trailer
	sum := newHash(t.DataChecksum.Type)
	if sum == nil {
		return check(CheckData, &t.DataChecksum, nil), nil
	}
	piece := make([]byte, pieceSize)
	for at := int64(0); at < int64(t.DataLength); at += pieceSize {
		if ctx.Err() != nil {
			return Check{}, fmt.Errorf("verifying the image: %w", context.Cause(ctx))
		}
		part := piece[:min(pieceSize, int64(t.DataLength)-at)]
		if err := readFull(im.src, part, int64(t.DataOffset)+at); err != nil {
			c := check(CheckData, &t.DataChecksum, nil)
			c.Result, c.Err = Unreadable, err
			return c, nil
		}
		sum.Write(part)
	}
	return check(CheckData, &t.DataChecksum, sum.Sum(nil)), nil
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
func (v *verifier) work(s *slot) {
	if sum, ok := v.im.keptSum(s.index, s.inside()); ok && !v.needsData {
		s.crc = sum
		return
	}
	if s.err = v.im.loadSlot(s); s.err != nil {
		return
	}
	switch s.run.kind {
	case KindZero:
		s.crc = zeroCRC(s.Length)
	case KindIgnore:
	default:
		s.crc = crc32.ChecksumIEEE(s.Data)
	}
}

// take adds the next piece of the device to its region.
func (v *verifier) take(s *slot) error {
	sector := uint64(s.Offset) / SectorSize
	for v.at < len(v.order) && v.order[v.at].First+v.order[v.at].Sectors <= sector {
		v.flush(v.at + 1)
	}
	switch {
	case v.at == len(v.order) || sector < v.order[v.at].First: // space that no table describes
		return nil
	case s.err != nil:
		if v.err == nil {
			v.err = s.err
		}
		return nil
	case s.run.kind == KindIgnore:
		return nil
	}
	v.crc = combineCRC(v.crc, s.crc, s.Length)
	if v.order[v.at].Checksum.Type != ChecksumMD5 {
		return nil
	}
	if v.md5 == nil {
		v.md5 = md5.New()
	}
	if s.Data != nil {
		v.md5.Write(s.Data)
		return nil
	}
	v.zeros += s.Length
	for left := s.Length; left > 0 && v.zeros <= maxMD5Zeros; {
		n := min(left, int64(len(zeros)))
		v.md5.Write(zeros[:n])
		left -= n
	}
	return nil
}

// flush ends the regions up to end, exclusively.
func (v *verifier) flush(end int) {
	for ; v.at < end; v.at++ {
		g := v.order[v.at]
		var got []byte
		switch g.Checksum.Type {
		case ChecksumCRC32:
			got = crcBytes(v.crc)
		case ChecksumMD5:
			if v.md5 == nil {
				v.md5 = md5.New()
			}
			if v.zeros <= maxMD5Zeros {
				got = v.md5.Sum(nil)
			}
		}
		c := check(g.Name, &g.Checksum, got)
		if v.err != nil {
			c.Result, c.Err, c.Got = Unreadable, v.err, nil
		}
		v.checks[g] = c
		v.crc, v.md5, v.zeros, v.err = 0, nil, 0, nil
	}
}
