package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// aged is a plan with a table whose one row is of a cycle, or of none.
func aged(where string) string {
	return `schema = 1
title  = "Ageing"
[image]
format = "UDSB"
size   = "1 GB"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "repeat", times = 2000, steps = [
  { do = "write", phase = "c" }, { do = "delete", all = true } ] }, { do = "detach" }]
[[table]]
name    = "age"
title   = "Rates by age"
columns = [{ write = { phase = "c" } }]
rows    = [{ title = "old", where = ` + where + ` }]
`
}

// A table may name every cycle that there is.
func TestTablesOfManyCycles(t *testing.T) {
	for _, where := range []string{`{ cycle = 1 }`, `{ cycle = 101 }`, `{ cycle = 2000 }`, `{}`} {
		p := mustParse(t, aged(where))
		assert.Len(t, p.Tables, 1, where)
	}
}
