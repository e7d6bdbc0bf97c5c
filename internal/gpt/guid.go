package gpt

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// GUID is a globally unique identifier in the byte order of the disk: the first three groups little-endian.
type GUID [16]byte

// Partition types, with the names that TypeName gives them.
var (
	BasicData = MustParseGUID("EBD0A0A2-B9E5-4433-87C0-68B6B72699C7") // Microsoft basic data: FAT, exFAT, NTFS
	LinuxData = MustParseGUID("0FC63DAF-8483-4772-8E79-3D69D8477DE4")
	AppleHFS  = MustParseGUID("48465300-0000-11AA-AA11-00306543ECAC")
	AppleAPFS = MustParseGUID("7C3457EF-0000-11AA-AA11-00306543ECAC")
	EFISystem = MustParseGUID("C12A7328-F81F-11D2-BA4B-00A0C93EC93B")
)

var typeNames = map[GUID]string{
	BasicData: "Microsoft basic data",
	LinuxData: "Linux file system",
	AppleHFS:  "Apple HFS+",
	AppleAPFS: "Apple APFS",
	EFISystem: "EFI system",
}

// TypeName is the common name of a partition type, or the GUID itself when it is not one of the known five.
func TypeName(g GUID) string {
	if name, ok := typeNames[g]; ok {
		return name
	}
	return g.String()
}

// swap turns the text order of the bytes into the disk order and back.
func (g GUID) swap() GUID {
	g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	g[4], g[5] = g[5], g[4]
	g[6], g[7] = g[7], g[6]
	return g
}

// String is the usual form, upper-case hexadecimal in five groups.
func (g GUID) String() string {
	s := g.swap()
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16]))
}

// ParseGUID reads the form that String writes, in either case.
func ParseGUID(s string) (GUID, error) {
	var g GUID
	plain := strings.ReplaceAll(s, "-", "")
	b, err := hex.DecodeString(plain)
	if err != nil || len(b) != len(g) || len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return g, fmt.Errorf("parsing GUID %q: want 8-4-4-4-12 hexadecimal digits", s)
	}
	copy(g[:], b)
	return g.swap(), nil
}

// MustParseGUID is ParseGUID for constants; it panics on an error.
func MustParseGUID(s string) GUID {
	g, err := ParseGUID(s)
	if err != nil {
		panic(err)
	}
	return g
}
