package archtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listed is a package as go list -json prints it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

// listPackages lists the packages of the module and all that they import, with the files of their export data.
func listPackages(t *testing.T) (all []listed) {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-export", "-json=Dir,ImportPath,Export,GoFiles", "./internal/...")
	list.Dir = root(t)
	out, err := list.Output()
	require.NoError(t, err)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// references counts, for each pair of files of a package, the pairs of a declaration in the first and one in the second
// that it names.
func references(t *testing.T, p listed, from types.Importer) [][]int {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: from, Sizes: types.SizesFor("gc", "amd64")}
	_, err := config.Check(p.ImportPath, fset, files, info)
	require.NoError(t, err)

	type place struct {
		decl ast.Decl
		file int
	}
	home := map[types.Object]place{}
	for i, f := range files {
		for _, decl := range f.Decls {
			for _, id := range declared(decl) {
				home[info.Defs[id]] = place{decl, i}
			}
		}
	}
	seen := map[[2]ast.Decl]bool{}
	counts := make([][]int, len(files))
	for i, f := range files {
		counts[i] = make([]int, len(files))
		for _, decl := range f.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				used := info.Uses[id]
				if method, ok := used.(*types.Func); ok {
					used = method.Origin()
				}
				if to, ok := home[used]; ok && to.file != i && !seen[[2]ast.Decl{decl, to.decl}] {
					seen[[2]ast.Decl{decl, to.decl}] = true
					counts[i][to.file]++
				}
				return true
			})
		}
	}
	return counts
}

// declared lists the names that a declaration declares: the function or method, the types, variables and constants.
func declared(decl ast.Decl) (ids []*ast.Ident) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{d.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				ids = append(ids, s.Name)
			case *ast.ValueSpec:
				ids = append(ids, s.Names...)
			}
		}
	}
	return ids
}

// orderFiles puts files in an order, from the top down, in which few references run up: each file in turn is moved to
// where fewest do, until no move helps. It returns how many do, and how many references there are.
func orderFiles(counts [][]int) (order []int, up, all int) {
	outward := make([]int, len(counts))
	for i, row := range counts {
		order = append(order, i)
		for j, n := range row {
			outward[i] += n - counts[j][i]
			all += n
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(outward[b], outward[a]) })
	for moved := true; moved; {
		moved = false
		for i := range order {
			best, to, gain := 0, i, 0
			for j := i - 1; j >= 0; j-- {
				if gain += counts[order[i]][order[j]] - counts[order[j]][order[i]]; gain > best {
					best, to = gain, j
				}
			}
			gain = 0
			for j := i + 1; j < len(order); j++ {
				if gain += counts[order[j]][order[i]] - counts[order[i]][order[j]]; gain > best {
					best, to = gain, j
				}
			}
			if to != i {
				file := order[i]
				order = slices.Insert(slices.Delete(order, i, i+1), to, file)
				moved = true
			}
		}
	}
	for i := range order {
		for j := range i {
			up += counts[order[i]][order[j]]
		}
	}
	return order, up, all
}

// In a package of more than ten files, at most one in twenty references between files runs up against their order.
func TestReferencesGoDown(t *testing.T) {
	packages := listPackages(t)
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	checked := 0
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, module+"/") || len(p.GoFiles) <= 10 {
			continue
		}
		checked++
		counts := references(t, p, from)
		order, up, all := orderFiles(counts)
		if !assert.LessOrEqual(t, 20*up, all, "%s: references between files that run up", p.ImportPath) {
			for i := range order {
				for j := range i {
					if n := counts[order[i]][order[j]]; n > 0 {
						t.Logf("%3d from %s to %s", n, p.GoFiles[order[i]], p.GoFiles[order[j]])
					}
				}
			}
		}
	}
	assert.NotZero(t, checked)
}

func TestOrderFiles(t *testing.T) {
	order, up, all := orderFiles([][]int{{0, 0, 0}, {3, 0, 1}, {5, 0, 0}})
	assert.Equal(t, []int{1, 2, 0}, order)
	assert.Equal(t, []int{0, 9}, []int{up, all})
	_, up, all = orderFiles([][]int{{0, 4, 0}, {1, 0, 2}, {1, 0, 0}})
	assert.Equal(t, []int{2, 8}, []int{up, all}, "a cycle has references that run up in every order")
}
