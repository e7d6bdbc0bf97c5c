package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTreeAgreesWithDecoder draws small documents full of repeated keys, dotted
// keys and reopened tables: the tree must refuse exactly what go-toml's decoder
// refuses, and hold the same values where both accept.
func TestTreeAgreesWithDecoder(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", `"c d"`})
		path := func() string {
			return strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "path"), rapid.SampledFrom([]string{".", " . "}).Draw(t, "dot"))
		}
		var lines []string
		for range rapid.IntRange(1, 7).Draw(t, "lines") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				lines = append(lines, "["+path()+"]")
			case 1:
				lines = append(lines, "[["+path()+"]]")
			default:
				value := rapid.SampledFrom([]string{"1", `"x"`, "[1, 2]", "{ a = 1 }", "{ a.b = 1, a.c = 2 }", "{ a = 1, a = 2 }", "[{ a = 1 }, { b = 2 }]", "{}", "[]"}).Draw(t, "value")
				lines = append(lines, path()+" = "+value)
			}
		}
		text := strings.Join(lines, "\n") + "\n"
		var want map[string]any
		err := toml.Unmarshal([]byte(text), &want)
		r := newReader("t.toml", []byte(text))
		root := r.parseTree()
		if err != nil {
			refused++
			require.NotEmpty(t, r.found, "go-toml: %v\n%s", err, text)
			return
		}
		accepted++
		require.Empty(t, r.found, text)
		a, err := json.Marshal(jsonOf(root))
		require.NoError(t, err)
		b, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(b), string(a), text)
	})
	assert.Positive(t, accepted)
	assert.Positive(t, refused)
}

// TestPlaces: every key and value knows its line and column, in characters.
func TestPlaces(t *testing.T) {
	text := "\ufefftop = 1\r\n[a]\r\n  \"größe\" = \t\"ä\" # note\n[[list]]\nx.y = [ 1,\n  { z = true } ]\nempty = []\n"
	r := newReader("t.toml", []byte(text))
	root := r.parseTree()
	require.Empty(t, r.found)
	for _, c := range []struct {
		n               *node
		keyLine, keyCol int
		line, col       int
		kind            nodeKind
	}{
		{root.get("top"), 1, 1, 1, 7, intNode},
		{root.get("a"), 2, 2, 2, 2, tableNode},
		{root.at("a", "größe"), 3, 3, 3, 14, stringNode},
		{root.at("list", 0, "x", "y"), 5, 3, 5, 3, arrayNode},
		{root.at("list", 0, "x", "y", 0), 5, 9, 5, 9, intNode},
		{root.at("list", 0, "x", "y", 1, "z"), 6, 5, 6, 9, boolNode},
		{root.at("list", 0, "empty"), 7, 1, 7, 1, arrayNode},
		{root.at("list", 0, "none", "deeper"), 4, 3, 4, 3, tableNode},
	} {
		line, col := r.place(c.n.key)
		assert.Equal(t, [2]int{c.keyLine, c.keyCol}, [2]int{line, col}, "key %q", c.n.name)
		line, col = r.place(c.n.off)
		assert.Equal(t, [2]int{c.line, c.col}, [2]int{line, col}, "value of %q", c.n.name)
		assert.Equal(t, c.kind, c.n.kind)
	}
}

// TestExcerpt: the caret stands below the character, hostile characters are
// shown as dots, long lines are cut.
func TestExcerpt(t *testing.T) {
	r := newReader("t.toml", []byte("a\tb = \x1b[31m\u202e\nshort\n"+strings.Repeat("x", 300)+"!"+strings.Repeat("y", 300)+"\n"))
	assert.Equal(t, "    a b = ·[31m·\n      ^", r.excerpt(1, 3))
	assert.Equal(t, "    short\n         ^", r.excerpt(2, 6))
	lines := strings.Split(r.excerpt(3, 301), "\n")
	require.Len(t, lines, 2)
	assert.Equal(t, '!', []rune(lines[0])[len([]rune(lines[1]))-1])
	assert.Less(t, len(lines[0]), 140)
	assert.Empty(t, r.excerpt(99, 1))
}

func TestNearest(t *testing.T) {
	words := []string{"format", "workers", "write", "encryption", "qos"}
	for word, want := range map[string]string{
		"formt": "format", "fromat": "format", "Format": "format", "worker": "workers", "wriet": "write", "encyrption": "encryption", "zzz": "", "foo": "", "": "", strings.Repeat("x", 100): "",
	} {
		assert.Equal(t, want, Nearest(word, words), word)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[a-c]{0,6}`).Draw(t, "a"), rapid.StringMatching(`[a-c]{0,6}`).Draw(t, "b")
		require.Equal(t, editDistance(a, b), editDistance(b, a))
		require.Equal(t, a == b, editDistance(a, b) == 0)
		require.LessOrEqual(t, editDistance(a, b), max(len(a), len(b)))
	})
}

// TestLongTextIsCut: a message never repeats a text without end.
func TestLongTextIsCut(t *testing.T) {
	_, problems := Parse("t.toml", []byte("schema = 1\ntitle = \"x\"\n[image]\nbackend = \""+strings.Repeat("x", 900_000)+"\"\n"))
	require.NotEmpty(t, problems.Errors())
	assert.Less(t, len(problems.Error()), 4000)
}

// TestSyntaxHints: slips of people who write their first TOML get the rules.
func TestSyntaxHints(t *testing.T) {
	for _, line := range []string{"format = UDSB", "format = “UDSB”", "size = 100 GB", "größe = 1", "flag = True", "x = [1"} {
		r := newReader("t.toml", []byte("[image]\n"+line+"\n"))
		r.parseTree()
		require.Len(t, r.found, 1, line)
		assert.Contains(t, r.found[0].Hint, "straight quotes, such as \"100 GB\"", line)
	}
}
