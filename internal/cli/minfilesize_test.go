package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/plans"
)

// No plan that the program brings is refused by it: every one can be run as it is.
func TestShippedPlansHaveFilesThatCanBeTimed(t *testing.T) {
	for _, name := range plans.Names() {
		text, ok := plans.Get(name)
		require.True(t, ok)
		p, problems := plan.Parse(name, text)
		require.NotNil(t, p, "%v", problems)
		require.NoError(t, checkRunnable(p), name)
	}
}

// Listed sizes and the lower end of ranges are looked at alike.
func TestTooSmallFilesAreRefused(t *testing.T) {
	for files, want := range map[string]bool{
		`sizes = ["64 kB", "1 MB"]`:                 true,
		`sizes = ["1 MB", "63999 B"]`:               false,
		"range = [\"64 KiB\", \"1 MB\"]\ncount = 3": true,
		"range = [\"16 KiB\", \"1 MB\"]\ncount = 3": false,
	} {
		text := `schema = 1
title = "x"
[image]
format = "UDSB"
size = "1 GB"
[files.few]
` + files + `
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write" }, { do = "detach" }]
`
		p, problems := plan.Parse("x", []byte(text))
		require.NotNil(t, p, "%v", problems)
		if err := checkRunnable(p); want {
			assert.NoError(t, err, files)
		} else {
			assert.ErrorContains(t, err, "too small to be timed", files)
		}
	}
}
