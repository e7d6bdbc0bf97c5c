package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/result"
)

// A slope of time on size is told as a rate; one whose interval reaches 0 has none at that end.
func TestSlopesAreToldAsRates(t *testing.T) {
	f := result.Fit{Op: "write_time", Along: "file_size", Model: "line"}
	for _, k := range []struct {
		low, high float64
		want      string
	}{
		{4e-10, 5e-10, "2.00 GB/s (as 1 ÷ slope) to 2.50 GB/s (as 1 ÷ slope)"},
		{-2e-10, 5e-10, "-200 µs to 500 µs a MB, which is no rate where it reaches 0"},
		{0, 5e-10, "0 s to 500 µs a MB, which is no rate where it reaches 0"},
	} {
		got := coefficientRange(f, result.Coefficient{Name: "slope", CI: &result.CI{Low: k.low, High: k.high}})
		assert.Equal(t, k.want, got)
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
