package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// The terminal has the waterfall and the heat map of the page, from the same numbers.
func TestTerminalDrawsCharts(t *testing.T) {
	p, r := layered(layers, "directory", "UDRW none", "UDRW AES-256")
	out := text(t, func() (*plan.Plan, *result.Result) { return p, r }, TextOptions{Width: 80, Verbose: true})
	lines := strings.Split(out, "\n")
	var native, faster string
	for _, line := range lines {
		if strings.Contains(line, "native folder ") && strings.Contains(line, "ms") {
			native = line
		}
		if strings.Contains(line, "encryption ") && strings.Contains(line, "ms") {
			faster = line
		}
	}
	assert.Contains(t, native, "100 ms")
	assert.Contains(t, faster, "−10.0 ms")
	assert.Contains(t, faster, "░")
	assert.Equal(t, 1, strings.Count(out, "░ took less."), "the note is said once")
	sample := text(t, makers["sample"], TextOptions{Width: 80, Verbose: true})
	assert.Regexp(t, `native folder +▃[▁-█]{15} +0\.382 +2\.55`, sample)
	assert.Contains(t, sample, "8 pictures like these in the report.")
}

// Markdown has the table of each chart that no other table has.
func TestMarkdownHasTheTablesOfCharts(t *testing.T) {
	out := markdown(t, makers["sample"])
	for _, heading := range []string{"## Where the time went: write", "## Write speed by case and file size", "## Life of the container: sparse bundle (UDSB) · AES-256", "## Speed along the run"} {
		assert.Equal(t, 1, strings.Count(out, heading+map[bool]string{true: ", phase “new”"}[strings.Contains(heading, "rite")]), heading)
	}
}
