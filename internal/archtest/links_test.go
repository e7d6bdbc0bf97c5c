package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folderOf is what comments of a folder may name.
type folderOf struct {
	files    []string // names of source files
	syntax   []*ast.File
	imported map[string]string // import paths by name
	declared map[string]bool   // "Name", and "Type.Member" of fields and methods
}

var (
	docLink  = regexp.MustCompile(`(?:^|[\s(])\[([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,2})\](?:[\s.,;:)]|$)`)
	fileName = regexp.MustCompile(`(?:^|[\s(])(\w+\.go)\b`)
)

// isName tells the name of a declaration in brackets from what else is in brackets: tables of plans, which are words in lower
// case, and placeholders in capitals.
func isName(link string) bool {
	last := link[strings.LastIndex(link, ".")+1:]
	return last != strings.ToUpper(last) && (link != strings.ToLower(link) || strings.Index(link, ".") > 1)
}

// addNames adds the names that a file declares.
func addNames(names map[string]bool, f *ast.File) {
	for _, decl := range f.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
			names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			continue
		}
		for _, id := range declared(decl) {
			names[id.Name] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		var members *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return true
		}
		for _, m := range members.List {
			for _, id := range m.Names {
				names[spec.Name.Name+"."+id.Name] = true
			}
		}
		return true
	})
}

// receiver is the name of the type of a receiver.
func receiver(of ast.Expr) string {
	switch x := of.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// leads reports whether a link of a comment leads to a name of its own package or of one of the module that the package imports.
// Names of other modules are taken as they are.
func leads(link string, from *folderOf, folders map[string]*folderOf) bool {
	if from.declared[link] {
		return true
	}
	first, rest, _ := strings.Cut(link, ".")
	of, ok := from.imported[first]
	if folder, own := strings.CutPrefix(of, module+"/"); own && rest != "" {
		return folders[folder].declared[rest]
	}
	return ok
}

// TestCommentLinks follows the links of comments, such as [os.Root], and the names of source files in them.
func TestCommentLinks(t *testing.T) {
	folders, fset := map[string]*folderOf{}, token.NewFileSet()
	walk(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			return
		}
		f, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		if folders[path.Dir(name)] == nil {
			folders[path.Dir(name)] = &folderOf{imported: map[string]string{}, declared: map[string]bool{}}
		}
		in := folders[path.Dir(name)]
		in.files, in.syntax = append(in.files, path.Base(name)), append(in.syntax, f)
		addNames(in.declared, f)
		for _, spec := range f.Imports {
			of, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			in.imported[strings.TrimSuffix(path.Base(of), ".go")] = of
		}
	})
	for _, in := range folders {
		for _, f := range in.syntax {
			for _, group := range f.Comments {
				at := fset.Position(group.Pos())
				for _, m := range docLink.FindAllStringSubmatch(group.Text(), -1) {
					assert.True(t, !isName(m[1]) || leads(m[1], in, folders), "%s: a comment names [%s], which is not there", at, m[1])
				}
				for _, m := range fileName.FindAllStringSubmatch(group.Text(), -1) {
					assert.Contains(t, in.files, m[1], "%s: a comment names a file that is not there", at)
				}
			}
		}
	}
}
