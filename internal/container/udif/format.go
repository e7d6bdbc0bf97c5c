package udif

import "fmt"

// Format is a format that Write makes, by Apple's four-letter name.
type Format string

// The formats of the package.
const (
	UDRO Format = "UDRO" // not compressed
	UDCO Format = "UDCO" // ADC
	UDZO Format = "UDZO" // zlib
	UDBZ Format = "UDBZ" // bzip2
	ULFO Format = "ULFO" // LZFSE
	ULMO Format = "ULMO" // LZMA in xz streams
	UFBI Format = "UFBI" // the entire image, not compressed, with MD5 checksums
)

// formatKinds is the kind of run that each format stores data in.
var formatKinds = map[Format]Kind{
	UDRO: KindRaw, UDCO: KindADC, UDZO: KindZlib, UDBZ: KindBzip2, ULFO: KindLZFSE, ULMO: KindLZMA, UFBI: KindRaw,
}

// kind is the kind of run that the format stores data in.
func (f Format) kind() (Kind, error) {
	kind, known := formatKinds[f]
	if !known {
		return 0, fmt.Errorf("writing the format %q: %w", string(f), ErrUnsupported)
	}
	return kind, nil
}
