package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

// mustParse reads a plan that has to be right.
func mustParse(t testing.TB, text string) *plan.Plan {
	t.Helper()
	p, problems := plan.Parse("test.toml", []byte(text))
	require.Empty(t, problems.Errors())
	require.NotNil(t, p)
	return p
}

const smallPlan = `
schema = 1
title  = "small"
[image]
format = "UDSB"
size   = "1 GB"
[files.few]
sizes = ["1 MB", "2 MB"]
sets  = 3
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "read", phase = "new" },
]
`

const goldFiles = `
[files.gold]
sizes = ["2 MB", "4 MB", "6 MB", "8 MB", "10 MB", "20 MB", "40 MB", "60 MB", "80 MB", "100 MB",
         "200 MB", "400 MB", "600 MB", "800 MB", "1000 MB", "2000 MB"]
sets  = 10
`

const spacePlan = `
schema = 1
title  = "space"
[image]
size = "125 GB"
[matrix]
format = ["UDSB", "UDRW"]
` + goldFiles + `
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "repeat", times = 4, steps = [
    { do = "write", phase = "fill" },
    { do = "delete", largest = 40 },
  ] },
  { do = "write", phase = "last" },
  { do = "measure", phase = "full" },
  { do = "delete", all = true },
  { do = "remount", times = 3, settle = "10 s" },
  { do = "measure", phase = "emptied" },
  { do = "detach" },
]
[[protocol]]
when  = { format = "UDSB" }
steps = [ { do = "compact" }, { do = "measure", phase = "compacted" } ]
`
