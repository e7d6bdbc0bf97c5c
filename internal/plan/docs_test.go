package plan

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var tomlExample = regexp.MustCompile("(?s)```toml\n(.*?)```")

// TestDocsExamples reads every example of the page as part of one plan.
func TestDocsExamples(t *testing.T) {
	text, err := os.ReadFile("../../docs/plan-language.md")
	require.NoError(t, err)
	for _, m := range tomlExample.FindAllSubmatch(text, -1) {
		r := newReader("example", m[1])
		root := r.parseTree()
		r.manual = []key{valueKey("cores", looseKind)}
		rootTable.read(r, root, reflect.ValueOf(&Plan{}).Elem())
		for _, p := range r.found {
			if !strings.HasPrefix(p.Message, "plan: ") { // an example leaves out what every plan must have
				t.Error(p.String())
			}
		}
	}
}
