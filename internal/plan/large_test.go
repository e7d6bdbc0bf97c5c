package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

// TestLargePlans: plans at the limits are read in reasonable time.
func TestLargePlans(t *testing.T) {
	var cycles strings.Builder
	cycles.WriteString(strings.Replace(smallPlan, "sets  = 3", "sets  = 100000", 1))
	cycles.WriteString("[target]\nkind = \"directory\"\n[[protocol]]\nsteps = [{ do = \"repeat\", times = 100000, steps = [{ do = \"write\", phase = \"x\" }, { do = \"delete\", largest = 1 }] }]\n")
	var matrix strings.Builder
	matrix.WriteString(smallPlan + "[matrix]\nworkers = [")
	for i := range 100 {
		fmt.Fprintf(&matrix, "%d, ", i+1)
	}
	matrix.WriteString("]\nthreads = [")
	for i := range 100 {
		fmt.Fprintf(&matrix, "%d, ", i+1)
	}
	matrix.WriteString("]\nexclude = [")
	for i := range 30 {
		fmt.Fprintf(&matrix, "{ workers = %d, threads = 1 }, ", i+1)
	}
	matrix.WriteString("]\n")
	for i := range 40 {
		fmt.Fprintf(&matrix, "[[claim]]\nsays = \"claim %d\"\nby = \"us\"\nleft = { write = { workers = %d } }\nbound = \"> 1 GB/s\"\n", i, i%100+1)
	}
	for name, text := range map[string]string{"cycles": cycles.String(), "matrix": matrix.String()} {
		start := time.Now()
		_, problems := plan.Parse(name, []byte(text))
		t.Logf("%s: %v", name, time.Since(start))
		assert.Empty(t, problems.Errors())
		if name == "cycles" {
			require.Len(t, problems.Warnings(), 1)
			assert.Contains(t, problems.Error(), "too many files to check")
		}
	}
}
