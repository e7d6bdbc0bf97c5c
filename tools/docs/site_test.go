package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/plans"
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

// TestPlanPage makes the page of one plan with an example, and of one that no engine executes without macOS.
func TestPlanPage(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, writePlanPage(t.Context(), folder, "gold-standard"))
	assert.FileExists(t, folder+"/plan/gold-standard.md")
	assert.FileExists(t, folder+"/examples/gold-standard.html")
	text, ok := plans.Get("backends")
	require.True(t, ok)
	p, _ := plan.Parse("backends", text)
	page := planPage{Plan: p}
	require.NoError(t, writeExample(t.Context(), folder+"/examples/none.html", &page))
	assert.Equal(t, "backend hdiutil", page.Reason)
	assert.NoFileExists(t, folder+"/examples/none.html")
}
