package result

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// Each line of a journal ends with the CRC-32C of the bytes before it as its last
// key, written out in hexadecimal: ,"crc32c":"0123abcd"}. That finds every
// damage of up to 32 bits in a row, and costs less than encoding the record.
const (
	sumKey    = `,"crc32c":"`
	sumDigits = 8
	sumEnd    = "\"}\n"
	sumLen    = len(sumKey) + sumDigits + len(sumEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errChecksum   = errors.New("the checksum does not match: the line was damaged or edited")
	errNoChecksum = errors.New("the line has no checksum, but lines before it have one")
	errLineEnd    = errors.New("the line ends neither with a checksum nor with a record's content")
)

// addChecksum adds the checksum to an encoded record, which ends with "}\n".
func addChecksum(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("}\n"))
	return fmt.Appendf(line, "%s%08x%s", sumKey, crc32.Checksum(line, castagnoli), sumEnd)
}

// verifyChecksum reports whether a line has a checksum; one that does not match is an error.
func verifyChecksum(line []byte) (has bool, err error) {
	at := len(line) - sumLen
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(sumKey)) || !bytes.HasSuffix(line, []byte(sumEnd)) {
		return false, nil
	}
	want := fmt.Appendf(nil, "%08x", crc32.Checksum(line[:at], castagnoli))
	if !bytes.Equal(want, line[at+len(sumKey):][:sumDigits]) {
		return true, errChecksum
	}
	return true, nil
}

// checkLine verifies the checksum of a line. Journals of older versions have none;
// a resume by this version continues with one, from then on in every line. The
// content is a record's last key where there is no checksum, so that a line with
// another end had a checksum that is damaged.
func (r *Reader) checkLine(line []byte) error {
	has, err := verifyChecksum(line)
	switch {
	case err != nil:
		return err
	case has:
		r.summed = true
	case r.summed:
		return errNoChecksum
	case !bytes.HasSuffix(line, []byte("}}\n")):
		return errLineEnd
	default:
		r.bare++
	}
	return nil
}

// Unchecked is the warning about records without a checksum, nil if there are none.
// It is known once Next has returned io.EOF.
func (r *Reader) Unchecked() *Warning {
	if r.bare == 0 {
		return nil
	}
	return &Warning{Kind: "journal", Text: fmt.Sprintf("%d of %d records in the journal have no checksum,"+
		" as an older version wrote them: damage to them may not be noticed", r.bare, r.seq)}
}
