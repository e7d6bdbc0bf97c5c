package workload

import (
	"fmt"
	"strconv"

	"dmgbench/internal/hostio"
)

// HostPather is a [Volume] that the system's own programs can reach.
type HostPather interface{ HostPath(name string) string }

// UnsupportedError names what this system cannot stream with.
type UnsupportedError struct {
	What string // "codec lzfse"
	Why  string
}

// Error names what is not supported and why.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported: %s", e.What, e.Why)
}

// Unwrap makes it match hostio.ErrUnsupported.
func (*UnsupportedError) Unwrap() error { return hostio.ErrUnsupported }

// compressionTool is Apple's program with LZFSE and a number of threads. The
// flags are those of its manual page of January 2023: -A turns on block
// compression, which alone uses several threads; -b is the block.
const (
	compressionTool      = "/usr/bin/compression_tool"
	compressionToolBlock = "4m"
)

// compressionArgs is the argument list for one stream, program not included.
func compressionArgs(spec StreamSpec, from, to string) []string {
	verb := "-encode"
	if spec.Direction == Decompress {
		verb = "-decode"
	}
	return []string{verb, "-A", spec.Codec, "-b", compressionToolBlock, "-t", strconv.Itoa(spec.Threads), "-i", from, "-o", to}
}
