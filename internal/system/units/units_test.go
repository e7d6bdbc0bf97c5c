package units_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/system/units"
)

func TestParseBytes(t *testing.T) {
	good := map[string]units.Bytes{
		"100 GB": 100e9, "8 MiB": 8 << 20, "8.4 MB": 8_400_000, "4096 B": 4096, "1.5KiB": 1536,
		"15.517 GB": 15_517_000_000, " 0 B ": 0, "8 EB": 8e18, "1 EiB": 1 << 60,
		"0" + strings.Repeat("0", 37) + "12 B": 12,
	}
	for text, want := range good {
		got, err := units.ParseBytes(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	bad := map[string]string{
		"512M": "unknown; want a size", "5": "unit is missing", "1 Mb": "did you mean MB", "": "want a size", "-1 B": "want a size",
		"1.2345 kB": "whole number", "99999999999 TiB": "larger than", "1e9 B": "missing or unknown", ".5 GB": "want a size", "1/2 GB": "missing or unknown",
		"9223372036854775808 B": "larger than", strings.Repeat("0", 39) + "12 B": "want a size",
	}
	for text, cause := range bad {
		_, err := units.ParseBytes(text)
		assert.ErrorContains(t, err, cause, text)
	}
}

func TestParseOthers(t *testing.T) {
	r, err := units.ParseRate("6.13 GB/s")
	require.NoError(t, err)
	assert.Equal(t, units.Rate(6_130_000_000), r)
	_, err = units.ParseRate("6.13 GB")
	require.ErrorContains(t, err, "want a rate")
	d, err := units.ParseDuration("49.32 s")
	require.NoError(t, err)
	assert.Equal(t, 49320*time.Millisecond, d.Std())
	_, err = units.ParseDuration("5 m")
	require.ErrorContains(t, err, "missing or unknown; want a time")
	for text, want := range map[string]float64{"12.5%": 0.125, " 12.5 % ": 0.125, "0%": 0, "1000%": 10} {
		p, err := units.ParseShare(text)
		require.NoError(t, err, text)
		assert.InDelta(t, want, float64(p), 1e-15, text)
	}
	for _, s := range []string{"12.5", "-1%", "%", "1000.1%"} {
		_, err = units.ParseShare(s)
		require.Error(t, err, s)
	}
}

func TestHuman(t *testing.T) {
	assert.Equal(t, "10.1 GB/s", units.Rate(10_110_000_000).Human())
	assert.Equal(t, "1.00 GB", units.Bytes(999_999_999).Human())
	assert.Equal(t, "999 MB", units.Bytes(999_400_000).Human())
	assert.Equal(t, "53.3 GB", units.Bytes(53_300_000_000).Human())
	assert.Equal(t, "0 B", units.Bytes(0).Human())
	assert.Equal(t, "1.00 min", units.Duration(time.Minute).Human())
	assert.Equal(t, "1 GB", units.Bytes(1e9).String())
	assert.Equal(t, "20%", units.Share(0.2).String())
	assert.Equal(t, "8 MiB", units.Bytes(8<<20).String())
	assert.Equal(t, "6.13 GB/s", units.Rate(6_130_000_000).String())
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<62).Draw(t, "n")
		b, err := units.ParseBytes(units.Bytes(n).String())
		require.NoError(t, err)
		require.Equal(t, units.Bytes(n), b)
		d, err := units.ParseDuration(units.Duration(n).String())
		require.NoError(t, err)
		require.Equal(t, units.Duration(n), d)
		r, err := units.ParseRate(units.Rate(n).String())
		require.NoError(t, err)
		require.Equal(t, units.Rate(n), r)
	})
}

func FuzzParse(f *testing.F) {
	f.Add("100 GB")
	f.Add("6.13 GB/s")
	f.Add("10 s")
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := units.ParseBytes(s); err == nil {
			again, err := units.ParseBytes(b.String())
			require.NoError(t, err)
			require.Equal(t, b, again)
		}
		_, _ = units.ParseRate(s)
		_, _ = units.ParseDuration(s)
		_, _ = units.ParseShare(s)
	})
}

func TestSignificantDigits(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 3, "0"}, {1234.5, 3, "1230"}, {1.2345, 3, "1.23"}, {-0.012345, 2, "-0.012"}, {9.996, 3, "10.0"}, {99.95, 1, "100"}, {5, 1, "5"},
	} {
		assert.Equal(t, c.want, units.Significant(c.v, c.digits))
	}
}

func TestRoundUpAndCount(t *testing.T) {
	for v, want := range map[int64]int64{0: 0, 1: 512, 511: 512, 512: 512, 513: 1024} {
		assert.Equal(t, want, units.RoundUp(v, 512))
	}
	assert.Equal(t, []string{"0 rounds", "1 round", "2 rounds"}, []string{units.Count(0, "round"), units.Count(1, "round"), units.Count(2, "round")})
}
