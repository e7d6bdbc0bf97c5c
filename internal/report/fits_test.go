package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/result"
)

// A slope of time on size has its rate next to it, where it has one.
func TestSlopesHaveRates(t *testing.T) {
	f := result.Fit{Op: "write_time", Along: "file_size", Model: "line"}
	for slope, want := range map[float64]string{4e-10: "400 µs a MB (2.50 GB/s)", 0: "0 s a MB", -2e-10: "-200 µs a MB"} {
		assert.Equal(t, want, coefficientText(f, "slope", slope))
	}
	for value, want := range map[float64]string{0.99942: "0.9994", 12345678: "1.235e+07", 0: "0"} {
		assert.Equal(t, want, coefficientText(f, "r2", value))
	}
}

func TestUnitsOfReplicationInWords(t *testing.T) {
	for unit, want := range map[string]string{"round": "rounds", "session": "sessions", "point of the fit": "points of the fit",
		"round within one session a side": "rounds within one session a side", "": "an unnamed unit"} {
		assert.Equal(t, want, replicated(unit))
	}
}

// The method of an interval is said in full, whichever it is.
func TestMethodsOfIntervalsAreSaidInFull(t *testing.T) {
	for _, method := range []string{stats.MethodOrder, stats.MethodT, stats.MethodWelch, stats.MethodPooled,
		stats.MethodSenByGroup, stats.MethodJackknife, "Student t of logarithms, 5 looks"} {
		assert.Equal(t, "95 % "+method+" over rounds", DescribeInterval(&result.CI{Level: 0.95, Method: method, Unit: "round"}))
	}
}
