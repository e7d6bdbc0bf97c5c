package main

import (
	"os"
	"strings"
	"testing"

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
	for name, skipped := range map[string]string{"gold-standard": "", "backends": "The engine skips 4 cases that it does not support."} {
		require.NoError(t, writePlanPage(t.Context(), folder, name))
		assert.FileExists(t, folder+"/examples/"+name+".html")
		page, err := os.ReadFile(folder + "/plan/" + name + ".md")
		require.NoError(t, err)
		assert.Contains(t, string(page), "](examples/"+name+".html) of this plan by the in-process engine on ")
		assert.Contains(t, string(page), skipped)
		assert.Equal(t, skipped != "", strings.Contains(string(page), "The engine skips"), name)
	}
}
