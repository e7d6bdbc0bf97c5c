package analysis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// What a source measured on its own machine then is held against what that machine measures now, and against no
// other's; a figure that it took on another machine is meant across machines.
func TestPublishedFiguresOfAnotherMachine(t *testing.T) {
	since, another := "have fallen to less than half since macOS 26.0", "Another Mac gives similar rates"
	for _, c := range []struct {
		cpu  string
		rate float64
		want string
	}{
		{"Apple M4 Pro", 1.5e9, result.Holds},
		{"Apple M4 Pro", 3e9, result.DoesNotHold},
		{"Apple M1", 1.5e9, result.CannotTell},
		{"Apple M1", 3e9, result.CannotTell},
	} {
		l := laws{engine: apple(), host: result.Host{OS: "darwin", OSVersion: "26.4", CPU: c.cpu},
			rate: func(m moment) float64 { return c.rate * (1 + 0.01*m.noise("rate")) }, disk: func(moment) result.DiskUse { return result.DiskUse{Allocated: 5e6, VolumeFree: -1} }}
		r := analysed(t, smaller(t, "encryption-cost-2026"), 3, l)
		seen := 0
		for _, claim := range r.Claims {
			switch {
			case strings.Contains(claim.Says, since):
				seen++
				require.Equal(t, c.want, claim.Verdict, "%s at %g: %s", c.cpu, c.rate, claim.Reason)
				assert.Equal(t, c.cpu == "Apple M1", strings.Contains(claim.Reason, "measured on Apple M1; published for Mac mini M4 Pro"), claim.Reason)
			case strings.Contains(claim.Says, another):
				seen++
				assert.Equal(t, result.DoesNotHold, claim.Verdict, "%s: %s", c.cpu, claim.Reason)
			}
		}
		assert.Equal(t, 2, seen)
	}
}
