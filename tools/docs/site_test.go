package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMarkdownOf(t *testing.T) {
	const printed = `Title
after Somebody, <b>
CASES: 2, in 3 rounds
  format: UDRW,
          UDSB
PROTOCOL (in brackets: the phase)
   1. Create the image.
   2. Repeat 3 times:
      a. Write.
      b. Delete.

  Only where format is UDSB:
   3. Compact.

TABLES
  - Rates
    columns: read
LEFT OPEN BY THE SOURCE, CHOSEN HERE
  - The 5 * 3 sizes
`
	assert.Equal(t, `after Somebody, \<b>
## Cases

2, in 3 rounds

  - format: UDRW,
          UDSB
## Protocol

(in brackets: the phase)

   1. Create the image.
   2. Repeat 3 times:
      1. Write.
      1. Delete.

  Only where format is UDSB:

   3. Compact.

## Tables



  - Rates
    - columns: read
## Left open by the source, chosen here



  - The 5 \* 3 sizes
`, markdownOf(printed))
}

// TestPlanPage makes the page of one plan, and of one with images that the engine does not support.
func TestPlanPage(t *testing.T) {
	folder := t.TempDir()
	finished := regexp.MustCompile(`Finished</bdi></dt><dd><bdi>([^<]+) UTC`)
	for name, skipped := range map[string]string{"quick": "", "backends": "The engine skips 4 cases that it does not support."} {
		start := time.Now().Truncate(time.Second)
		require.NoError(t, writePlanPage(t.Context(), folder, name))
		example, err := os.ReadFile(folder + "/examples/" + name + ".html")
		require.NoError(t, err)
		m := finished.FindSubmatch(example)
		require.NotNil(t, m, name)
		at, err := time.Parse(time.DateTime, string(m[1]))
		require.NoError(t, err)
		assert.WithinRange(t, at, start, time.Now(), "%s: no time that did not happen", name)
		assert.NotContains(t, string(example), "Why this engine</bdi></dt><dd><bdi>an example")
		page, err := os.ReadFile(folder + "/plan/" + name + ".md")
		require.NoError(t, err)
		assert.Contains(t, string(page), "](examples/"+name+".html) of this plan by the in-process engine on ")
		assert.Contains(t, string(page), skipped)
		waits := strings.Contains(string(page), "without the waits of the plan")
		assert.Equal(t, name == "quick", waits, name)
		assert.Equal(t, waits, strings.Contains(string(example), withoutWaits.Text), "%s: the report says that waits were left out", name)
		assert.Equal(t, skipped != "", strings.Contains(string(page), "The engine skips"), name)
	}
}
