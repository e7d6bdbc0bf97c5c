package analysis

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Property tests draw fewer cases than rapid's 100. DMGBENCH_LONG restores them, and an explicit
// -rapid.checks wins, since flags are parsed later.
const usualChecks = "25"

func init() {
	if os.Getenv("DMGBENCH_LONG") == "" {
		_ = flag.Set("rapid.checks", usualChecks)
	}
}

// checkWholeResults is rapid.Check of a property for which every draw analyses whole results with all kinds of claims:
// ten draws by default.
func checkWholeResults(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == usualChecks {
		require.NoError(t, f.Value.Set("10"))
		defer func() { require.NoError(t, f.Value.Set(usualChecks)) }()
	}
	rapid.Check(t, property)
}
