package crypt

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// sectorSize is the unit of bytes that disks write completely or not.
const sectorSize = 512

// Step is a write into the header of a file.
type Step struct {
	Off  int64
	Data []byte
}

// Steps returns the writes that make the header of a file, which holds was,
// that of h after ChangePassphrase. Each must be durable before the next
// starts. A crash at any moment leaves a header that one of the two passphrases
// opens, even if a write is cut off between two sectors: the new record is
// written into unused space first, and the table, one sector, is made to lead
// there while the old record is replaced. The error wraps ErrUnsupported where
// the header has no such space.
func (h *Header) Steps(was []byte) ([]Step, error) {
	steps, err := h.steps(was)
	if err != nil {
		return nil, fmt.Errorf("replacing the passphrase record: %w", err)
	}
	return steps, nil
}

// steps finds the changed record and a place for its copy.
func (h *Header) steps(was []byte) ([]Step, error) {
	if h.Version != 2 || len(was) != len(h.raw) {
		return nil, unsupported("another header than the one that was read")
	}
	for i, r := range h.Records {
		record := h.bytes(r)
		if bytes.Equal(record, was[r.Offset:][:r.Length]) {
			continue
		}
		line := int64(fixedSize + entrySize*i + 4)
		if line/sectorSize != (line+7)/sectorSize {
			return nil, unsupported("the table of records is cut by the end of a sector at the record to change")
		}
		spare := h.spare(was, r.Length)
		if spare < 0 {
			return nil, unsupported("no unused space of %d bytes in the header", r.Length)
		}
		at := func(off int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(off)) }
		return []Step{
			{spare, record}, {line, at(spare)}, // from here on the new passphrase
			{r.Offset, record}, {line, at(r.Offset)},
			{spare, make([]byte, r.Length)},
		}, nil
	}
	return nil, nil
}

// spare finds n unused bytes that share no sector with the table, from the end
// of the header; -1 if there are none.
func (h *Header) spare(was []byte, n int64) int64 {
	table := int64(fixedSize + entrySize*len(h.Records))
	lowest := (table + sectorSize - 1) / sectorSize * sectorSize
	for at := (int64(len(was)) - n) / sectorSize * sectorSize; at >= lowest; at -= sectorSize {
		if h.unused(at, n) && isZero(was[at:at+n/32*32]) && isZero(was[at+n/32*32:at+n]) {
			return at
		}
	}
	return -1
}

// unused reports whether no record is in n bytes at an offset.
func (h *Header) unused(at, n int64) bool {
	for _, r := range h.Records {
		if at < r.Offset+r.Length && r.Offset < at+n {
			return false
		}
	}
	return true
}
