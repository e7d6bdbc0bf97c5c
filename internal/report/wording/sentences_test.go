package wording

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Functions that take a key: what is put before it, and which argument it is. The values follow.
var keyed = map[string]struct {
	prefix string
	at     int
}{
	"Say": {}, "Text": {}, "say": {}, "missing": {}, "weak": {}, "because": {}, "refuse": {}, "note": {},
	"warn": {prefix: "warning."}, "w.add": {prefix: "warning."}, "out.add": {"departure.", 1},
}

// prefixes are of keys that are put together where they are used.
var prefixes = []string{"estimators.", "verdict.", "work.", "answer.", "row.",
	"system.", "medium.", "ended.", "claimant.", "scope.", "statistic.", "model.", "quantity.", "doubt.", "choice.", "rank.",
	"advice."}

var verb = regexp.MustCompile(`%(?:\[(\d+)\])?[^a-zA-Z]*[a-zA-Z]`)

// values is how many values a sentence takes.
func values(text string) (n int) {
	next := 0
	for _, m := range verb.FindAllStringSubmatch(strings.ReplaceAll(text, "%%", ""), -1) {
		next++
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		n = max(n, next)
	}
	return n
}

// Every key that analysis uses is a sentence with as many verbs as it gets values, and every sentence is used.
func TestSentencesAreUsed(t *testing.T) {
	require.Greater(t, len(sentences()), 200)
	used := map[string]bool{}
	var files []string
	for _, folder := range []string{"../../analysis", "..", "../text"} {
		more, err := filepath.Glob(folder + "/*.go")
		require.NoError(t, err)
		files = append(files, more...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				checkCall(t, file, call, used)
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING { // keys in tables and variables
				if key, err := strconv.Unquote(lit.Value); err == nil {
					used[key], used["warning."+key], used["work."+key] = true, true, true
				}
			}
			return true
		})
	}
	for key := range sentences() {
		put := false
		for _, p := range prefixes {
			put = put || strings.HasPrefix(key, p)
		}
		assert.True(t, put || used[key], "no code uses %q", key)
	}
}

func checkCall(t *testing.T, file string, call *ast.CallExpr, used map[string]bool) {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok && name == "add" {
			name = x.Name + "." + name
		}
	}
	k, ok := keyed[name]
	if !ok || len(call.Args) <= k.at || call.Ellipsis.IsValid() {
		return
	}
	lit, ok := call.Args[k.at].(*ast.BasicLit)
	if !ok {
		return
	}
	key, err := strconv.Unquote(lit.Value)
	require.NoError(t, err)
	key = k.prefix + key
	if name == "warn" && sentences()[key] == "" {
		key = strings.TrimPrefix(key, k.prefix) // warnings of rows of comparisons
	}
	text, ok := sentences()[key]
	if assert.True(t, ok, "%s: no sentence %q", filepath.Base(file), key) {
		assert.Equal(t, values(text), len(call.Args)-k.at-1, "%s: values of %q: %s", filepath.Base(file), key, text)
	}
	used[key] = true
}

// The table has no key twice, and no line without a text.
func TestSentencesAreUnique(t *testing.T) {
	raw, err := os.ReadFile("sentences.txt")
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		key, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "" || key == "#" {
			continue
		}
		assert.NotEmpty(t, strings.TrimSpace(text), key)
		assert.False(t, seen[key], key)
		seen[key] = true
	}
}

// Values as people read them.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		want string
		v    any
	}{
		{"1.50 GB/s", Amount{1.5e9, "B/s"}}, {"−2.00 MB", Amount{-2e6, "B"}}, {"no number", Number(math.Inf(1))}, {"2.05", Number(2.054)},
		{"2", Span{2, 2.0000001, "1"}}, {"1 to 2", Span{1, 2, "1"}}, {"1 round", Count{1, "round"}}, {"3 rounds", Count{3, "round"}},
		{"5 %", Percent(0.05)}, {"p below 0.0001", P(1e-9)}, {"p = 0.02", P(0.02)}, {"p = 1", P(0.9999)},
		{"Student t, 3 looks", Method{Name: "Student t", Looks: 3}}, {"Student t", Method{Name: "Student t", Looks: 1}},
		{"1, 2", Numbers{1, 2}}, {"2 times faster", Faster(-0.6931471805599453)}, {"2 times slower", Faster(0.6931471805599453)},
	} {
		assert.Equal(t, c.want, Say("text", c.v).String())
	}
	assert.Empty(t, Message{}.String())
	assert.Equal(t, "a; b; c", Join("a; b", "b; c"))
	list := []string{"a", "", "b"}
	assert.Equal(t, []string{"a", "b"}, NonEmpty(list))
	assert.Equal(t, "a, b", JoinFacts(list...))
	assert.Equal(t, []string{"a", "", "b"}, list, "a list stays as it was given")
	assert.Equal(t, "a in 3", Say("seen.few", nil, Number(3)).With("a").String())
}
