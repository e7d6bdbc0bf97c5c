package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// --since takes a day, a time, or an age; anything else is refused.
func TestSinceIsATimeOrAnAge(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-03-01":                time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		"2026-03-01T10:00:00+01:00": time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		"36h":                       now.Add(-36 * time.Hour),
		"90m":                       now.Add(-90 * time.Minute),
		"30d":                       now.AddDate(0, 0, -30),
		"2w":                        now.AddDate(0, 0, -14),
	} {
		got, err := parseSince(text, now)
		require.NoError(t, err, text)
		assert.True(t, want.Equal(got), "%s: %v", text, got)
	}
	for _, text := range []string{"", "yesterday", "30", "0d", "-1d", "-3h", "0h", "d", "100000d"} {
		_, err := parseSince(text, now)
		assert.ErrorContains(t, err, "is neither a time nor an age", text)
	}
}
