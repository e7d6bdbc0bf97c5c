package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The terminal has the waterfall and the heat map of the page, from the same numbers.
func TestTerminalDrawsCharts(t *testing.T) {
	sample := text(t, makers["sample"], TextOptions{Width: 80, Verbose: true})
	assert.Regexp(t, `encryption +█+ +\+\d+`, sample)
	assert.Equal(t, 1, strings.Count(sample, "░ took less."), "the note is printed once")
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
