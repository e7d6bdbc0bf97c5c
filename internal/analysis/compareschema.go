package analysis

import (
	_ "embed"
	"fmt"
	"sync"

	"dmgbench/internal/result"
)

//go:embed comparison.txt
var comparisonText string

// ComparisonSchema is the JSON Schema (draft 2020-12) of `compare --format json`,
// every property described.
func ComparisonSchema() []byte { return comparisonSchema() }

var comparisonSchema = sync.OnceValue(func() []byte {
	b, err := result.SchemaOf[Comparison]("dmgbench comparison", "Several runs against each other. "+
		"Times are seconds, sizes bytes, rates bytes per second.", comparisonText, map[string][]any{
		"CompareRow.status": {RowChanged, RowSame, RowUnclear, RowSessionUnknown},
		"Difference.kind":   {kindMachine, kindSystem, kindTool, kindProtocol, kindRepetition},
	})
	if err != nil {
		panic(fmt.Sprintf("building the schema of comparisons: %v", err)) // the types are fixed: a test calls this
	}
	return b
})
