package gpt

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// GUID is a globally unique identifier in the byte order of the disk: the first
// three groups little-endian.
type GUID [16]byte

// Partition types; see also [TypeName].
var (
	BasicData = parseGUID("EBD0A0A2-B9E5-4433-87C0-68B6B72699C7") // Microsoft basic data: FAT, exFAT, NTFS
	LinuxData = parseGUID("0FC63DAF-8483-4772-8E79-3D69D8477DE4")
	AppleHFS  = parseGUID("48465300-0000-11AA-AA11-00306543ECAC")
	AppleAPFS = parseGUID("7C3457EF-0000-11AA-AA11-00306543ECAC")
	AppleBoot = parseGUID("426F6F74-0000-11AA-AA11-00306543ECAC")
	EFISystem = parseGUID("C12A7328-F81F-11D2-BA4B-00A0C93EC93B")
)

var typeNames = map[GUID]string{
	BasicData: "Microsoft Basic Data",
	LinuxData: "Linux Filesystem",
	AppleHFS:  "Apple_HFS",
	AppleAPFS: "Apple_APFS",
	AppleBoot: "Apple_Boot",
}

// TypeName is the name that Apple's tools give a partition type, or the GUID
// where they have none (as for [EFISystem]).
func TypeName(g GUID) string {
	if name, ok := typeNames[g]; ok {
		return name
	}
	return g.String()
}

// swap converts between the byte orders of the text and of the disk.
func (g GUID) swap() GUID {
	g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	g[4], g[5] = g[5], g[4]
	g[6], g[7] = g[7], g[6]
	return g
}

// String formats the GUID in upper-case hexadecimal in five groups.
func (g GUID) String() string {
	s := g.swap()
	return strings.ToUpper(fmt.Sprintf("%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16]))
}

// parseGUID reads the form that String writes; it panics on any other, as it is
// for constants.
func parseGUID(s string) GUID {
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil {
		panic(fmt.Sprintf("parsing GUID %q: %v", s, err))
	}
	return GUID(b).swap()
}
