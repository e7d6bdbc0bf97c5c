package aescbc

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

// BenchmarkAES measures every set of the CPU on 256 KiB, with IVs at hand.
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
						start := processor(b)
						for b.Loop() {
							op(data, data, ivs, unit)
						}
						b.ReportMetric(float64(b.N)*length/1e9/(processor(b)-start), "GB/cpu-s")
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
			start := processor(b)
			for b.Loop() {
				v.Fill(dst, 0)
			}
			b.ReportMetric((processor(b)-start)*1e9/float64(b.N)/n, "cpu-ns/IV")
		})
	}
}
