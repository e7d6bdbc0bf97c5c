package archtest

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "dmgbench"

// layers lists the packages of the module from the top down. A package imports only what stands on a lower line;
// an entry that ends in /... means every package below that folder.
var layers = [][]string{
	{"cmd/...", "tools/..."},
	{"internal/fleet/cli"},
	{"internal/fleet/agent", "internal/fleet/broker", "internal/fleet/control"},
	{"internal/fleet"},
	{"internal/cli", "internal/cli/..."},
	{"internal/watch"},
	{"internal/result/runfolders"},
	{"internal/report/..."}, // test support of the report: may use the report
	{"internal/report/html", "internal/report/text"},
	{"internal/report/chart"},
	{"internal/report"},
	{"internal/bench/selftest"}, // plays whole runs and judges what comes out
	{"internal/bench/runner", "internal/bench/runner/..."},
	{"internal/analysis", "internal/analysis/..."},
	{"internal/bench/engine/..."},
	{"internal/bench/engine"},
	{"internal/linuxhdiutil/imagetool", "internal/linuxhdiutil/imagetool/..."},
	{"internal/linuxhdiutil/attach", "internal/linuxhdiutil/attach/..."},
	{"internal/bench/workload", "internal/bench/workload/..."},
	{"internal/image/exfat"},
	{"internal/image/container"},
	{"internal/image/container/..."},
	{"internal/image/container/codec"},
	{"internal/image/gpt"},
	{"internal/image/blockdev", "internal/image/blockdev/..."},
	{"internal/system/host"}, // fills in result.Host and reads what a plan requires of it
	{"internal/result/export"},
	{"internal/report/wording"}, // the sentences of results
	{"internal/result"},
	{"internal/system/hostio", "internal/system/hostio/..."},
	{"internal/plan"},
	{"internal/analysis/stats"},
	{"internal/image"},
	{"internal/system/units", "internal/system/clock", "internal/system/version", "internal/system/pipeline", "internal/system/manpage", "internal/system/safetext", "internal/system/signals", "plans", "scripts", "third_party/..."},
	{"internal/archtest"},
}

// reserved names the modules that only some folders may import, in files that are no tests.
var reserved = map[string][]string{
	"github.com/spf13/cobra":              {"internal/cli", "internal/fleet/cli"},
	"github.com/spf13/pflag":              {"internal/cli", "internal/fleet/cli"},
	"github.com/spf13/viper":              {"internal/cli"},
	"charm.land/bubbletea/v2":             {"internal/watch"},
	"charm.land/lipgloss/v2":              {"internal/watch"},
	"github.com/go-echarts/go-echarts/v2": {"internal/report/chart"},
	"github.com/pelletier/go-toml/v2":     {"internal/plan", "internal/bench/selftest"},
	"github.com/stretchr/testify":         nil,
	"github.com/dop251/goja":              {"internal/report/chart"},
	"golang.org/x/perf":                   nil,
	"gonum.org/v1/gonum":                  nil,
	"pgregory.net/rapid":                  nil,
	"C":                                   nil,
}

// goFile is a source file of the module: where it is, relative to the root with slashes, and what it imports.
type goFile struct {
	name    string
	imports []string
	lines   int
}

func (f goFile) folder() string { return path.Dir(f.name) }
func (f goFile) test() bool     { return strings.HasSuffix(f.name, "_test.go") }

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}

// walk calls visit with every file that belongs to the project, and its content.
func walk(t *testing.T, visit func(name string, content []byte)) {
	t.Helper()
	skipped := []string{".git", "bin", "dist", "runs", "node_modules", "third_party/echarts", "testdata/rapid"}
	fsys := os.DirFS(root(t))
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.ContainsFunc(skipped, func(s string) bool { return name == s || strings.HasSuffix(name, "/"+s) }) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := fs.ReadFile(fsys, name)
		if err == nil {
			visit(name, content)
		}
		return err
	})
	require.NoError(t, err)
}

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	walk(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		require.NoError(t, err)
		file := goFile{name: name, lines: bytes.Count(content, []byte("\n"))}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			file.imports = append(file.imports, imported)
		}
		files = append(files, file)
	})
	require.Greater(t, len(files), 100, "the walk missed the sources")
	return files
}

// layerOf is the line of layers on which the package stands, or -1. The exact name wins over a /... entry.
func layerOf(folder string) int {
	exact := slices.IndexFunc(layers, func(line []string) bool { return slices.Contains(line, folder) })
	if exact >= 0 {
		return exact
	}
	return slices.IndexFunc(layers, func(line []string) bool {
		return slices.ContainsFunc(line, func(entry string) bool {
			parent, below := strings.CutSuffix(entry, "/...")
			return below && strings.HasPrefix(folder, parent+"/")
		})
	})
}

// importProblem says why a file of the package from may not import imported, or nothing.
func importProblem(from, imported string) string {
	for name, allowed := range reserved {
		if imported != name && !strings.HasPrefix(imported, name+"/") {
			continue
		}
		within := func(folder string) bool { return from == folder || strings.HasPrefix(from, folder+"/") }
		if !slices.ContainsFunc(allowed, within) {
			return fmt.Sprintf("%s imports %s, which is for %v only", from, imported, append(slices.Clone(allowed), "tests"))
		}
	}
	to, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return ""
	}
	upper, lower := layerOf(from), layerOf(to)
	switch {
	case upper < 0 || lower < 0:
		return fmt.Sprintf("%s imports %s: one of them stands in no layer; give it one here and in docs/architecture.md", from, to)
	case lower > upper, lower == upper && sameTree(from, to):
		return ""
	}
	return fmt.Sprintf("%s imports %s: imports only go down the layers", from, to)
}

// sameTree reports whether one package lies below the other, as engine/hdiutil/command below engine/hdiutil.
func sameTree(a, b string) bool {
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

func TestImportsGoDown(t *testing.T) {
	for _, file := range goFiles(t) {
		if file.test() || strings.HasSuffix(file.folder(), "test") && file.folder() != "internal/bench/selftest" {
			continue
		}
		assert.GreaterOrEqual(t, layerOf(file.folder()), 0, "%s stands in no layer", file.folder())
		for _, imported := range file.imports {
			if problem := importProblem(file.folder(), imported); problem != "" {
				t.Errorf("%s: %s", file.name, problem)
			}
		}
	}
}

func TestImportProblem(t *testing.T) {
	tests := []struct {
		from, imported string
		wrong          bool
	}{
		{"internal/bench/runner", "dmgbench/internal/plan", false},
		{"internal/plan", "dmgbench/internal/bench/runner", true},
		{"internal/bench/engine/directory", "dmgbench/internal/bench/engine", false},
		{"internal/bench/engine", "dmgbench/internal/bench/engine/directory", true},
		{"internal/bench/engine/inprocess", "dmgbench/internal/bench/engine/directory", true},
		{"internal/bench/engine/hdiutil", "dmgbench/internal/bench/engine/hdiutil/command", false},
		{"internal/image/gpt", "dmgbench/internal/image/exfat", true},
		{"internal/analysis/stats", "dmgbench/internal/nowhere", true},
		{"internal/cli", "github.com/spf13/cobra", false},
		{"internal/bench/runner", "github.com/spf13/cobra/doc", true},
		{"internal/analysis/stats", "gonum.org/v1/gonum/stat", true},
		{"internal/system/hostio", "C", true},
		{"internal/system/hostio", "os", false},
	}
	for _, test := range tests {
		problem := importProblem(test.from, test.imported)
		assert.Equal(t, test.wrong, problem != "", "%s imports %s: %q", test.from, test.imported, problem)
	}
}

// TestArchitecturePageHasTheLayers holds the table of docs/architecture.md against layers: every package, and in this order.
func TestArchitecturePageHasTheLayers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| package |")
	require.True(t, found)
	var rows []string
	for line := range strings.Lines(table) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| `") {
			rows = append(rows, first)
		}
	}
	last, named := 0, 0
	for _, line := range layers {
		lowest := last
		for _, entry := range line {
			name, below := strings.CutSuffix(entry, "/...")
			if info, err := os.Stat(filepath.Join(root(t), name)); err != nil || !info.IsDir() || below && entry != "cmd/..." || name == "internal/archtest" {
				continue
			}
			at := slices.IndexFunc(rows, func(row string) bool {
				return strings.Contains(row, "`"+name+"`") || below && strings.Contains(row, "`"+name+"/")
			})
			if assert.GreaterOrEqual(t, at, 0, "docs/architecture.md has no row for %s", entry) {
				assert.GreaterOrEqual(t, at, last, "docs/architecture.md: %s stands too high", entry)
				lowest, named = max(lowest, at), named+1
			}
		}
		last = lowest
	}
	require.Greater(t, named, 15, "the table was not understood")
}

func TestDependenciesAreNamed(t *testing.T) {
	gomod, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "dependencies.md"))
	require.NoError(t, err)
	files := goFiles(t)
	named := 0
	for line := range strings.Lines(string(gomod)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") {
			continue
		}
		_, tools, _ := strings.Cut(string(gomod), "\ntool (")
		imported := strings.Contains(tools, "\t"+fields[0]+"/") || slices.ContainsFunc(files, func(f goFile) bool {
			return slices.ContainsFunc(f.imports, func(name string) bool {
				return name == fields[0] || strings.HasPrefix(name, fields[0]+"/")
			})
		})
		row := fmt.Sprintf("| %s | %s |", fields[0], fields[1])
		assert.Equal(t, imported, strings.Contains(string(page), row), "docs/dependencies.md: imported, and row %q there", row)
		if imported {
			named++
		}
	}
	require.Greater(t, named, 5, "go.mod was not understood")
}

func TestFilesAreShort(t *testing.T) {
	for _, file := range goFiles(t) {
		limit := 600
		switch {
		case file.test():
			continue
		case strings.HasPrefix(file.name, "cmd/"):
			limit = 40
		}
		assert.LessOrEqual(t, file.lines, limit, "lines of %s", file.name)
	}
}

func TestWords(t *testing.T) {
	// Put together here, so that this file does not contain them.
	unfinished := [][]byte{[]byte("TO" + "DO"), []byte("FIX" + "ME"), []byte("XX" + "X:")}
	here := []byte(root(t) + "/")
	walk(t, func(name string, content []byte) {
		assert.False(t, bytes.Contains(content, here), "%s names the folder it was written in", name)
		if strings.Contains(name, "testdata/") || name == "go.sum" {
			return
		}
		for _, word := range unfinished {
			assert.False(t, bytes.Contains(content, word), "%s contains %s: finish it or leave it out", name, word)
		}
		if strings.HasSuffix(name, ".go") {
			assert.False(t, bytes.Contains(content, []byte("\"fail"+"ed to ")),
				"%s: an error says what was being done, not that it did not succeed", name)
		}
		if strings.HasSuffix(name, "_test.go") {
			assert.False(t, bytes.Contains(content, []byte("time."+"Sleep(")), "%s sleeps: inject a clock", name)
		}
	})
}

// TestPageLinks follows every relative link of a page to its file and heading.
func TestPageLinks(t *testing.T) {
	pages := map[string]string{}
	walk(t, func(name string, content []byte) {
		if strings.HasSuffix(name, ".md") && (path.Dir(name) == "docs" || path.Dir(name) == ".") {
			pages[name] = string(content)
		}
	})
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for name, page := range pages {
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			file := path.Join(path.Dir(name), target)
			if target == "" {
				file = name
			}
			assert.FileExists(t, filepath.Join(root(t), file), "%s links to %s", name, m[1])
			if anchor != "" && pages[file] != "" {
				assert.Contains(t, headingAnchors(pages[file]), anchor, "%s links to %s", name, m[1])
			}
		}
	}
}

// headingAnchors are the anchors of a page as GitHub makes them: lower case, blanks as hyphens, other punctuation dropped.
func headingAnchors(page string) (anchors []string) {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return r
			}
			return -1
		}, heading))
	}
	return anchors
}
