package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusedAnywhere are identifiers that are metaphors or past participles in place of a noun of the field.
var refusedAnywhere = strings.Fields(`asked told books fate turns universe cast hearing sight tale Teller Told Witness
	Glance Hollow Passer Patiently Cleaning whence marred young abilities`)

// refusedFunctions are names of functions, methods and types that had a different meaning in each package.
var refusedFunctions = strings.Fields("settle keep look again")

// refusedBelow are identifiers that had another meaning in one package than the word has.
var refusedBelow = map[string][]string{
	"internal/analysis":               strings.Fields("beside side study subject worlds thinned OverRounds Decide"),
	"internal/plan":                   strings.Fields("grower grow floor box"),
	"internal/system/hostio":          strings.Fields("Give again"),
	"internal/linuxhdiutil/attach":    strings.Fields("again sight polite lanes adopt"),
	"internal/bench/engine/hdiutil":   strings.Fields("mend"),
	"internal/bench/runner":           strings.Fields("Going hear note another second"),
	"internal/report":                 strings.Fields("zero"),
	"internal/linuxhdiutil/imagetool": strings.Fields("said standing voice"),
	"internal/cli":                    strings.Fields("said"),
	"internal/image/container":        strings.Fields("ruin harm medium"),
	"internal/image/exfat":            strings.Fields("supplant lose gave received"),
}

// refusedNames returns the identifiers that a file declares and that are refused in its folder.
func refusedNames(folder string, file *ast.File) (names []string) {
	refused := map[string]bool{}
	for _, name := range refusedAnywhere {
		refused[name] = true
	}
	for below := folder; below != "."; below = path.Dir(below) {
		for _, name := range refusedBelow[below] {
			refused[name] = true
		}
	}
	functions := maps.Clone(refused)
	for _, name := range refusedFunctions {
		functions[name] = folder != "internal/bench/runner" || name != "settle" // the handler of the step settle
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = appendRefused(names, functions, n.Name)
		case *ast.TypeSpec:
			names = appendRefused(names, functions, n.Name)
		case *ast.ValueSpec:
			names = appendRefused(names, refused, n.Names...)
		case *ast.Field:
			names = appendRefused(names, refused, n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names = appendRefused(names, refused, id)
				}
			}
		}
		return true
	})
	return names
}

func appendRefused(names []string, refused map[string]bool, ids ...*ast.Ident) []string {
	for _, id := range ids {
		if refused[id.Name] {
			names = append(names, id.Name)
		}
	}
	return names
}

func TestNames(t *testing.T) {
	fsys := os.DirFS(root(t))
	for _, file := range goFiles(t) {
		if file.test() {
			continue
		}
		text, err := fs.ReadFile(fsys, file.name)
		require.NoError(t, err)
		parsed, err := parser.ParseFile(token.NewFileSet(), file.name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, name := range refusedNames(file.folder(), parsed) {
			t.Errorf("%s declares %q: use a term of the field (verb and object, or a noun)", file.name, name)
		}
	}
}

func TestRefusedNames(t *testing.T) {
	const source = `package x

type box struct{ told bool }

func (b box) keep(asked int) { fate := asked; _ = fate; var tale, fine int }
`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"told", "keep", "asked", "fate", "tale"}, refusedNames("internal/system/units", file))
	assert.Equal(t, []string{"box", "told", "keep", "asked", "fate", "tale"}, refusedNames("internal/plan", file))
}
