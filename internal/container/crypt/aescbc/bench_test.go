package aescbc

import (
	"fmt"
	"testing"
)

// BenchmarkAES measures every set of the CPU on 256 KiB, with IVs at hand: set beside `openssl speed -evp aes-256-cbc
// -bytes 512`, with -decrypt and without.
func BenchmarkAES(b *testing.B) {
	const length = 256 << 10
	for _, use := range supported() {
		for _, bits := range []int{128, 256} {
			for _, unit := range []int{512, 4096} {
				k, err := newKey(make([]byte, bits/8), use)
				if err != nil {
					b.Fatal(err)
				}
				data, ivs := make([]byte, length), make([]byte, length/unit*Size)
				for name, op := range map[string]func(dst, src, ivs []byte, unit int){"encrypt": k.Encrypt, "decrypt": k.Decrypt} {
					b.Run(fmt.Sprintf("%s/%d/%d/%s", use.name, bits, unit, name), func(b *testing.B) {
						b.SetBytes(length)
						for b.Loop() {
							op(data, data, ivs, unit)
						}
					})
				}
			}
		}
	}
}

// BenchmarkIVs measures what one IV costs.
func BenchmarkIVs(b *testing.B) {
	const n = 256
	for _, use := range supportedIVs() {
		b.Run(use.name, func(b *testing.B) {
			v, dst := newIVKey(make([]byte, 20), use), make([]byte, n*Size)
			for b.Loop() {
				v.Fill(dst, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/IV")
		})
	}
}
