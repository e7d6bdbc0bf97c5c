package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Markdown has the table of each chart that no other table has, and a terminal where the time went.
func TestTablesOfCharts(t *testing.T) {
	published, terminal := markdownOf("sample"), text(t, shared("sample"), TextOptions{Width: 80, Verbose: true})
	for _, heading := range []string{"Where the time went: write", "Write speed by case and file size", "Life of the container: sparse bundle (UDSB) · AES-256", "Speed along the run"} {
		heading = "## " + heading + map[bool]string{true: ", phase “new”"}[strings.Contains(heading, "rite")]
		assert.Equal(t, 1, strings.Count(published, heading), heading)
	}
	assert.Contains(t, terminal, "\nWhere the time went: write, phase “new”\n")
	for _, out := range []string{published, terminal} {
		assert.Regexp(t, `encryption *\|? *\+51\.7 ms`, out)
	}
}
