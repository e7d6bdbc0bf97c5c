package exfat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSetTimes: times are kept as exFAT has them, on the device too, and are set later only by what is written later.
func TestSetTimes(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return when
	}
	for name, test := range map[string]struct{ accessed, modified, wantAccessed, wantModified string }{
		"kept":        {"2020-01-01T12:00:02Z", "2020-01-01T12:00:01.25Z", "2020-01-01T12:00:02Z", "2020-01-01T12:00:01.25Z"},
		"cut off":     {"2020-01-01T12:00:03.9Z", "2020-01-01T12:00:01.259Z", "2020-01-01T12:00:02Z", "2020-01-01T12:00:01.25Z"},
		"other zones": {"2020-01-01T12:00:02+02:00", "2020-01-01T12:00:01-05:45", "2020-01-01T10:00:02Z", "2020-01-01T17:45:01Z"},
		"too early":   {"1970-01-01T00:00:00Z", "1979-12-31T23:59:59Z", "1980-01-01T00:00:00Z", "1980-01-01T00:00:00Z"},
		"too late":    {"2108-01-01T00:00:00Z", "2200-01-01T00:00:00Z", "2107-12-31T23:59:58Z", "2107-12-31T23:59:59Z"},
	} {
		t.Run(name, func(t *testing.T) {
			dev, v := newVolume(t, 4<<20, FormatOptions{})
			require.NoError(t, v.Mkdir("d"))
			f, err := v.Create("d/f", 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("written before"), 0)
			require.NoError(t, err)
			accessed, modified := at(test.accessed), at(test.modified)
			for _, path := range []string{"d/f", "d", ""} {
				require.NoError(t, v.SetTimes(path, &accessed, &modified))
			}
			require.True(t, v.Unsaved())
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())
			require.NoError(t, v.Unmount())
			requireClean(t, dev)

			v = mount(t, dev)
			for _, path := range []string{"d/f", "d"} {
				i, err := v.Stat(path)
				require.NoError(t, err)
				assert.Equal(t, at(test.wantAccessed), i.Accessed.UTC(), path)
				assert.Equal(t, at(test.wantModified), i.Modified.UTC(), path)
				assert.Equal(t, fixedNow(), i.Created.UTC(), path)
			}
			later := epoch.Add(time.Hour)
			require.NoError(t, v.SetTimes("d/f", nil, &later))
			i, err := v.Stat("d/f")
			require.NoError(t, err)
			assert.Equal(t, at(test.wantAccessed), i.Accessed.UTC(), "it was left as it is")
			f, err = v.Open("d/f")
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("again"), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			i, err = v.Stat("d/f")
			require.NoError(t, err)
			assert.Equal(t, fixedNow(), i.Modified.UTC(), "of the last write")
			assert.Equal(t, "againen before", string(readFile(t, v, "d/f")))
			require.NoError(t, v.Unmount())
		})
	}
}
