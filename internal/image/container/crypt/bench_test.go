package crypt

import (
	"fmt"
	"syscall"
	"testing"
)

// processor is the processor time of the process in seconds. `openssl speed` divides by it, too, so that neighbours on
// a busy machine take nothing from the comparison.
func processor(b *testing.B) float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// BenchmarkCipher measures whole calls, IVs included, in requests of 256 KiB. "kept" is a bundle, where the block
// number restarts in every band and the IVs are there; "fresh" is a single file, where every block has a new number.
func BenchmarkCipher(b *testing.B) {
	const length = 256 << 10
	for _, bits := range []int{128, 256} {
		for _, block := range []int{512, 4096} {
			c, err := newCipher(keys{make([]byte, bits/8), make([]byte, hmacKeySize)}, block)
			if err != nil {
				b.Fatal(err)
			}
			data := make([]byte, length)
			for _, way := range []struct {
				name string
				op   func(dst, src []byte, first uint32)
			}{{"encrypt", c.Encrypt}, {"decrypt", c.Decrypt}, {"decrypt-sparse", c.DecryptSparse}} {
				for _, ivs := range []string{"kept", "fresh"} {
					b.Run(fmt.Sprintf("aes-%d/%d/%s/%s", bits, block, way.name, ivs), func(b *testing.B) {
						data[0] = 1
						b.SetBytes(length)
						first := uint32(0)
						start := processor(b)
						for b.Loop() {
							if ivs == "fresh" {
								first = max(keptBlocks, first+uint32(length/block))
							}
							way.op(data, data, first)
						}
						b.ReportMetric(float64(b.N)*length/1e9/(processor(b)-start), "GB/cpu-s")
					})
				}
			}
		}
	}
}

// BenchmarkUnlock measures what a passphrase costs.
func BenchmarkUnlock(b *testing.B) {
	h, _, err := New(Options{KeyBits: 256, Passphrase: []byte("secret")})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.Unlock([]byte("secret")); err != nil {
			b.Fatal(err)
		}
	}
}
