package selftest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/plans"
)

// shippedRecord has what must not change for one shipped plan: the digest of its canonical form, and that of the
// numbers and verdicts of its result on the simulated device.
type shippedRecord struct {
	Plan, Result string
	Lines        int // of the result's numbers
}

// TestShippedPlansKeepTheirNumbers runs every shipped plan on the simulated device and compares digests with a golden
// file. DMGBENCH_SHIPPED_DIR=DIR writes what is digested to DIR, one file a plan, to see what differs;
// DMGBENCH_UPDATE=1 renews the golden file.
func TestShippedPlansKeepTheirNumbers(t *testing.T) {
	x, err := newExam(t.Context(), Options{})
	require.NoError(t, err)
	defer x.close()
	device := law(withLatency + "file_noise = 5%;mount_noise = 2%;outliers = 2% x 4")
	got := map[string]shippedRecord{}
	for _, name := range plans.Names() {
		text, _ := plans.Get(name)
		p, problems := plan.Parse(name, text)
		require.Nil(t, problems, name)
		p, _, err := p.Apply(plan.Overrides{Sets: 1, Rounds: 3, Scale: 0.001})
		require.NoError(t, err, name)
		// Steps that the simulated device cannot do end their cases early; what was measured before them counts.
		r, err := x.measure(t.Context(), p, device, 1, 1)
		if err != nil {
			t.Logf("%s: %v", name, err)
		}
		require.NotNil(t, r, name)
		require.NoError(t, analysis.Analyze(p, r, analysis.Options{}), name)
		r.Run = "" // has random digits
		for i := range r.Cases {
			r.Cases[i].Steps = nil // what the law drew, not what the analysis made of it
		}
		lines := numbersOf(t, r)
		if dir := os.Getenv("DMGBENCH_SHIPPED_DIR"); dir != "" {
			text := []byte(strings.Join(lines, "\n") + "\n")
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+".txt"), text, 0o666))
		}
		sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
		digest := fmt.Sprintf("%x", sum[:8])
		got[name] = shippedRecord{Plan: r.Plan.Digest, Result: digest, Lines: len(lines)}
	}
	golden := filepath.Join("testdata", "shipped.json")
	if os.Getenv("DMGBENCH_UPDATE") != "" {
		text, err := json.MarshalIndent(got, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(golden, append(text, '\n'), 0o666))
	}
	text, err := os.ReadFile(golden)
	require.NoError(t, err)
	var want map[string]shippedRecord
	require.NoError(t, json.Unmarshal(text, &want))
	assert.Equal(t, want, got)
}

// numbersOf lists the numbers, truth values and one-word strings of a result with their paths, sorted: all of it but
// sentences, digests of files and versions.
func numbersOf(t *testing.T, r *result.Result) []string {
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(text, &tree))
	var lines []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(path+"/"+k, x)
			}
		case []any:
			for i, x := range v {
				walk(fmt.Sprintf("%s/%d", path, i), x)
			}
		case string:
			if !strings.Contains(v, " ") {
				lines = append(lines, path+" "+v)
			}
		case float64: // to what is promised, since the last bits differ between processors and orders of summing
			lines = append(lines, fmt.Sprintf("%s %.9g", path, v))
		default:
			lines = append(lines, fmt.Sprintf("%s %v", path, v))
		}
	}
	walk("", tree)
	slices.Sort(lines)
	return lines
}
