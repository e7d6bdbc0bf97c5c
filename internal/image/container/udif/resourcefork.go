package udif

import (
	"encoding/binary"
	"fmt"
)

// licenseType is the type of the resource with the languages of an image's
// licence agreement, which is shown before it is attached.
const licenseType = "LPic"

// parseFork reads a classic Macintosh resource fork (Inside Macintosh: More
// Macintosh Toolbox, 1-121) and hands its blkx resources to emit in the order
// of the map.
func parseFork(b []byte, emit func(resource) error, license func()) error {
	u16, u32 := binary.BigEndian.Uint16, binary.BigEndian.Uint32
	if len(b) < 16 {
		return forkError("%d bytes", len(b))
	}
	data, err := section(b, uint64(u32(b)), uint64(u32(b[8:])))
	if err != nil {
		return err
	}
	forkMap, err := section(b, uint64(u32(b[4:])), uint64(u32(b[12:])))
	if err != nil {
		return err
	}
	if len(forkMap) < 28 {
		return forkError("a map of %d bytes", len(forkMap))
	}
	typesAt, namesAt := int(u16(forkMap[24:])), int(u16(forkMap[26:]))
	if typesAt > len(forkMap)-2 {
		return forkError("types at %d", typesAt)
	}
	types := forkMap[typesAt:]
	for i := range int(u16(types)+1) & 0xFFFF { // stored less one: 0xFFFF is none
		at := 2 + 8*i
		if at+8 > len(types) {
			return forkError("type %d is outside of the map", i)
		}
		if string(types[at:at+4]) == licenseType {
			license()
		}
		if string(types[at:at+4]) != "blkx" {
			continue
		}
		f := fork{data: data, forkMap: forkMap, names: namesAt}
		if err := f.resources(types, int(u16(types[at+6:])), int(u16(types[at+4:]))+1, emit); err != nil {
			return err
		}
	}
	return nil
}

// forkError is an error of the resource fork; every one is a damaged image.
func forkError(format string, args ...any) error {
	return fmt.Errorf("resource fork: "+format+": %w", append(args, ErrCorrupt)...)
}

// section is a part of b.
func section(b []byte, at, length uint64) ([]byte, error) {
	if at > uint64(len(b)) || length > uint64(len(b))-at {
		return nil, forkError("%d bytes at %d of %d", length, at, len(b))
	}
	return b[at : at+length], nil
}

// fork is a resource fork: its data, its map, and where in the map the names
// start.
type fork struct {
	data, forkMap []byte
	names         int
}

// resources hands on the resources of one type: count references at an offset
// from the type list.
func (f *fork) resources(types []byte, at, count int, emit func(resource) error) error {
	for i := range count {
		from := at + 12*i
		if from+12 > len(types) {
			return forkError("reference %d is outside of the map", i)
		}
		reference := types[from : from+12]
		entry := resource{
			id:   int(int16(binary.BigEndian.Uint16(reference))),
			name: f.name(int(int16(binary.BigEndian.Uint16(reference[2:])))),
		}
		start := uint64(binary.BigEndian.Uint32(reference[4:]) & 0xFFFFFF) // the upper byte holds attributes
		head, err := section(f.data, start, 4)
		if err != nil {
			return err
		}
		if entry.data, err = section(f.data, start+4, uint64(binary.BigEndian.Uint32(head))); err != nil {
			return err
		}
		if err := emit(entry); err != nil {
			return err
		}
	}
	return nil
}

// name is a Pascal string of the name list. Names inform only, so one out of
// range is empty.
func (f *fork) name(at int) string {
	at += f.names
	if at < f.names || at >= len(f.forkMap) {
		return ""
	}
	length := int(f.forkMap[at])
	if at+1+length > len(f.forkMap) {
		return ""
	}
	return string(f.forkMap[at+1 : at+1+length])
}
