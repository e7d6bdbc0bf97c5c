package simulated

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/clock"
)

const everyKey = `
write = 5 GB/s   # of the cheap one
read = 6 GB/s
latency = 200 us
flush = 1 ms
step = 20 ms
file_noise = 3%
mount_noise = 1%
session_noise = 10%
own_noise = 0.5%
outliers = 2% x 8
first = x 3
cliff = 20 GB x 5
slow = 30% x 2 in 10 files
drift = 5%

[UDSB AES-256]
write = 2.5 GB/s
cliff = 0 B x 1
`

func TestTextForm(t *testing.T) {
	m, err := Parse(everyKey)
	require.NoError(t, err)
	want := Law{Write: 5e9, Read: 6e9, Latency: 200 * time.Microsecond, Flush: time.Millisecond, Step: 20 * time.Millisecond, FileNoise: 0.03,
		MountNoise: 0.01, SessionNoise: 0.1, OwnNoise: 0.005, Outliers: 0.02, OutlierFactor: 8, First: 3, CliffAfter: 20e9, CliffFactor: 5,
		Slow: 0.3, SlowFactor: 2, SlowFiles: 10, Drift: 0.05}
	assert.Equal(t, want, m.Law)
	want.Write, want.CliffAfter, want.CliffFactor = 2.5e9, 0, 1
	assert.Equal(t, want, m.Of(Kind("UDSB", "AES-256")))
	assert.Equal(t, m.Law, m.Of(Kind("UDSB", "none")))
	e, err := New(m, clock.NewVirtual(time.Unix(0, 0)), 1, 1)
	require.NoError(t, err)
	assert.Equal(t, "write = 5 GB/s, read = 6 GB/s, latency = 200 us, flush = 1 ms, step = 20 ms, file_noise = 3%, mount_noise = 1%, "+
		"session_noise = 10%, own_noise = 0.5%, outliers = 2% x 8, first = x 3, cliff = 20 GB x 5, slow = 30% x 2 in 10 files, "+
		"drift = 5%, [UDSB AES-256], write = 2.5 GB/s, cliff = 0 B x 1", e.Simulated())
}

func TestTextErrorsNameTheLine(t *testing.T) {
	for text, says := range map[string]string{
		"write = 5 GB/s":                   "a rate is below 1 B/s",
		"write = 5":                        "line 1",
		plainLaw + "rate = 1 GB/s":         "line 6",
		plainLaw + "first = 3":             "line 6",
		plainLaw + "slow = 30% x 2":        "line 6",
		plainLaw + "cliff = 3 GB":          "line 6",
		plainLaw + "file_noise = a lot":    "line 6",
		plainLaw + "outliers = 2% x -1":    "not above 0",
		plainLaw + "first = x 0":           "not above 0",
		plainLaw + "[UDSB":                 "not a line of a law",
		plainLaw + "[UDSB]\nrate = 1 GB/s": "line 7",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, says, text)
	}
}

func TestRatesBeginAtOneByteASecond(t *testing.T) {
	for _, text := range []string{"write = 1 B/s\nread = 1 GB/s", "write = 1 GB/s\nread = 1 B/s"} {
		_, err := Parse(text)
		require.NoError(t, err, text)
	}
	for _, text := range []string{"write = 1 GB/s", "read = 1 GB/s", plainLaw + "[UDSB]\nread = 0 B/s"} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
	_, err := New(Machine{Law: Law{Write: 1e9}}, clock.NewVirtual(time.Unix(0, 0)), 1, 1)
	require.ErrorContains(t, err, "a rate is below 1 B/s", "no device has it")
}

func FuzzParse(f *testing.F) {
	f.Add(everyKey)
	f.Add(plainLaw)
	f.Add(plainLaw + "[native]\nfirst = x 1e3\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		for _, law := range append(slices.Collect(maps.Values(m.Kinds)), m.Law) {
			require.Positive(t, law.Write)
			require.Positive(t, law.Read)
		}
	})
}
