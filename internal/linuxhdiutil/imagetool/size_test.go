package imagetool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		text              string
		hdiutil, diskutil int64 // 0: refused
	}{
		{"1b", 512, 0}, {"1k", 1 << 10, 0}, {"1m", 1 << 20, 0}, {"1g", 1 << 30, 0}, {"1t", 1 << 40, 0}, {"1p", 1 << 50, 0}, {"1e", 1 << 60, 0},
		{"1K", 1 << 10, 4096}, {"1M", 1 << 20, 1_003_520}, {"123G", 123 << 30, 123_000_000_512}, {"2e", 0, 0},
		{"1.3m", 2663 * 512, 0}, {"0.5b", 512, 0}, {"1.5k", 1536, 0}, {"100", 512, 4096}, {"4096", 4096, 4096}, {"4097", 4608, 8192},
		{"1B", 512, 4096}, {"1Mi", 0, 1 << 20}, {"1MiB", 0, 1 << 20}, {"1MB", 0, 1_003_520}, {"1S", 0, 4096}, {"16UAM", 0, 8192},
		{"1.5Gi", 0, 3 << 29}, {"", 0, 0}, {"m", 0, 0}, {"-1m", 0, 0}, {"+1m", 0, 0}, {"1 m", 0, 0}, {"1mb", 0, 0}, {"1.m", 0, 0}, {".5m", 0, 0},
		{"0", 0, 0}, {"0m", 0, 0}, {"1E", 1 << 60, 1_000_000_000_000_000_000}, {"1Ei", 0, 1 << 60}, {"99999999999999999999g", 0, 0},
		{"0x10m", 0, 0}, {"1_000", 0, 0}, {"1e3", 0, 0}, {"min", 0, 0}, {"1152921504606846976", 1 << 60, 1 << 60}, {"1152921504606846977", 0, 0},
	} {
		for tool, want := range map[string]int64{"hdiutil": test.hdiutil, "diskutil": test.diskutil} {
			got, err := parseSize(tool, test.text)
			if want == 0 {
				assert.Error(t, err, "%s %q gave %d", tool, test.text, got)
				continue
			}
			require.NoError(t, err, "%s %q", tool, test.text)
			assert.Equal(t, want, got, "%s %q", tool, test.text)
		}
	}
	// No size passes through a float: the last sector of a large size counts.
	got, err := parseSize("hdiutil", "9007199254740993.5b")
	require.Error(t, err, "%d", got)
	got, err = parseSize("hdiutil", "2251799813685247b")
	require.NoError(t, err)
	assert.Equal(t, int64(2251799813685247*512), got)
}

func TestAppleSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 KB", 4 << 20: "4 MB", 215_902_617: "205.9 MB", 1 << 30: "1 GB",
		1<<40 - 1<<20: "1 TB", 1_099_100_000_000: "1023.6 GB", 1 << 60: "1 EB", 1<<63 - 1: "8 EB"} {
		assert.Equal(t, want, appleSize(n), n)
	}
}

func FuzzSizes(f *testing.F) {
	for _, s := range []string{"1m", "1.3g", "100b", "1Mi", "9e", "0.0001b", "1UAM", "18014398509481984b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseSize("hdiutil", s); err == nil && (n <= 0 || n%sector != 0 || n > maxSize) {
			t.Errorf("%q is %d bytes", s, n)
		}
		if n, err := parseSize("diskutil", s); err == nil && (n <= 0 || n%4096 != 0 || n > maxSize) {
			t.Errorf("%q is %d bytes for diskutil", s, n)
		}
	})
}
