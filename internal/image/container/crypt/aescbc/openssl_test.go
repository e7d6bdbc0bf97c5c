package aescbc

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// BenchmarkCipher measures AES-CBC on requests of 256 KiB by one thread, each block under an IV that is made inside the
// clock, beside OpenSSL, which makes none (make bench-cipher compares them with benchstat). Rates are per second of processor time, as
// OpenSSL's are.
func BenchmarkCipher(b *testing.B) {
	for _, bits := range []int{128, 256} {
		for _, unit := range []int{512, 4096} {
			for _, op := range []string{"encrypt", "decrypt"} {
				name := fmt.Sprintf("/bits=%d/block=%d/op=%s", bits, unit, op)
				b.Run("impl=openssl"+name, func(b *testing.B) { benchmarkOpenSSL(b, bits, unit, op) })
				for _, use := range supported() {
					b.Run("impl="+use.name+name, func(b *testing.B) { benchmarkCipher(b, use, bits, unit, op) })
				}
			}
		}
	}
}

func benchmarkCipher(b *testing.B, use set, bits, unit int, op string) {
	const length = 256 << 10 // stays in the CPU's cache, as OpenSSL's data does
	key, err := newKey(make([]byte, bits/8), use)
	require.NoError(b, err)
	ivKey := NewIVKey(make([]byte, 20))
	transform := key.Encrypt
	if op == "decrypt" {
		transform = key.Decrypt
	}
	data, ivs := make([]byte, length), make([]byte, length/unit*Size)
	start := processor(b)
	for i := uint32(0); b.Loop(); i++ {
		ivKey.Fill(ivs, i*uint32(length/unit))
		transform(data, data, ivs, unit)
	}
	b.ReportMetric(float64(b.N)*length/(processor(b)-start), "B/cpu-s")
}

func benchmarkOpenSSL(b *testing.B, bits, unit int, op string) {
	args := []string{"speed", "-mr", "-evp", fmt.Sprintf("aes-%d-cbc", bits), "-bytes", strconv.Itoa(unit), "-seconds", "1"}
	if op == "decrypt" {
		args = append(args, "-decrypt")
	}
	program, err := exec.LookPath("openssl")
	if err != nil {
		b.Skip("openssl is not installed")
	}
	var rate float64
	for range b.N { // -benchtime 1x: OpenSSL repeats by itself
		out, err := exec.Command(program, args...).Output()
		require.NoError(b, err)
		rate, err = parseOpenSSL(string(out))
		require.NoError(b, err)
	}
	b.ReportMetric(rate, "B/cpu-s")
}

// parseOpenSSL finds the rate in the output of openssl speed -mr, such as
// "+F:25:AES-256-CBC:1064956696.77".
func parseOpenSSL(out string) (float64, error) {
	for line := range strings.Lines(out) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); fields[0] == "+F" {
			v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err == nil && v > 0 {
				return v, nil
			}
		}
	}
	return 0, fmt.Errorf("reading the output of openssl speed: no rate in %.100q", out)
}

func TestParseOpenSSL(t *testing.T) {
	v, err := parseOpenSSL("+H:512\n+F:25:AES-256-CBC:1064956696.77\n")
	require.NoError(t, err)
	assert.InDelta(t, 1064956696.77, v, 1e-3)
	for _, bad := range []string{"", "+F", "+F:25:AES-256-CBC:fast", "+F:25:AES-256-CBC:0.00", "AES-256-CBC 12k"} {
		_, err := parseOpenSSL(bad)
		assert.Error(t, err, bad)
	}
}
