package workload

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
)

// Kinds of data.
const (
	DataRandom = "random" // incompressible, never repeated
	DataZero   = "zero"
	DataMixed  = "mixed" // a declared share of each 4 KiB is zero, the rest random
	DataText   = "text"  // words by the law of text.go, which compress about as prose does
)

// mixedUnit is what the compressible share refers to: the page and block size
// that file systems and disk images compress, punch and deduplicate by.
const mixedUnit = 4096

// FileKey tells the data of one file from those of another.
type FileKey uint64

// KeyOf is the key of the file with that name on the volume. Two names share a
// key with a probability of 2⁻⁶⁴.
func KeyOf(name string) FileKey {
	sum := sha256.Sum256([]byte("dmgbench file 1\x00" + name))
	return FileKey(binary.BigEndian.Uint64(sum[:]))
}

// Data is what files are filled with: an AES-128-CTR keystream whose key comes
// from seed, round and case, and whose counter is the file's key and the offset
// in blocks of 16 bytes. Any range of any file can be made again at any time.
// It is safe for concurrent use.
type Data struct {
	block cipher.Block
	kind  string
	zeros int // bytes of each mixedUnit that are zero
}

// NewData prepares the data of one case in one round. kind is [DataRandom]
// (also ""), [DataZero], [DataMixed] or [DataText]; share is the zero part of each 4 KiB
// with DataMixed, 0 to 1.
func NewData(seed uint64, round int, caseID, kind string, share float64) (*Data, error) {
	switch kind {
	case "":
		kind = DataRandom
	case DataRandom, DataZero, DataMixed, DataText:
	default:
		return nil, fmt.Errorf("preparing data: unknown kind %q", kind)
	}
	if share < 0 || share > 1 || math.IsNaN(share) {
		return nil, fmt.Errorf("preparing data: compressible share %v is not between 0 and 1", share)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "dmgbench data 1\x00%d\x00%d\x00%s", seed, round, caseID))
	block, err := aes.NewCipher(sum[:16])
	if err != nil {
		return nil, fmt.Errorf("preparing data: %w", err)
	}
	d := &Data{block: block, kind: kind}
	if kind == DataMixed {
		d.zeros = int(math.Round(share * mixedUnit))
	}
	return d, nil
}

// nothing is what the keystream is XORed with; 64 KiB stay in the inner caches.
var nothing [64 << 10]byte

// FillAt fills p with the file's bytes from offset off.
func (d *Data) FillAt(p []byte, file FileKey, off int64) {
	switch d.kind {
	case DataZero:
		clear(p)
		return
	case DataText:
		d.write(p, file, off)
		return
	}
	d.keystream(p, file, off)
	if d.zeros > 0 {
		d.blank(p, off)
	}
}

// keystream fills p with what the file's bytes are drawn from.
func (d *Data) keystream(p []byte, file FileKey, off int64) {
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[:8], uint64(file))
	binary.BigEndian.PutUint64(iv[8:], uint64(off)/aes.BlockSize)
	stream := cipher.NewCTR(d.block, iv[:])
	var skip [aes.BlockSize]byte
	stream.XORKeyStream(skip[:off%aes.BlockSize], skip[:off%aes.BlockSize])
	for rest := p; len(rest) > 0; {
		n := min(len(rest), len(nothing))
		stream.XORKeyStream(rest[:n], nothing[:n])
		rest = rest[n:]
	}
}

// blank zeroes the last part of each 4 KiB of the file.
func (d *Data) blank(p []byte, off int64) {
	for unit := off - off%mixedUnit; unit < off+int64(len(p)); unit += mixedUnit {
		from := max(unit+mixedUnit-int64(d.zeros)-off, 0)
		to := min(unit+mixedUnit-off, int64(len(p)))
		if from < to {
			clear(p[from:to])
		}
	}
}

// fillParallel fills p with all processors. It is for the time between files,
// when no clock runs: the sooner it ends, the shorter the gap.
func (d *Data) fillParallel(p []byte, file FileKey) {
	const least = 4 << 20
	parts := min(runtime.GOMAXPROCS(0), len(p)/least)
	if parts < 2 {
		d.FillAt(p, file, 0)
		return
	}
	each := (len(p)/parts + mixedUnit - 1) / mixedUnit * mixedUnit
	var wg sync.WaitGroup
	for from := 0; from < len(p); from += each {
		wg.Go(func() { d.FillAt(p[from:min(from+each, len(p))], file, int64(from)) })
	}
	wg.Wait()
}
