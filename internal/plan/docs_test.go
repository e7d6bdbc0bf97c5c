package plan

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image"
)

// documented is one key as docs/plan-language.md describes it.
type documented struct{ name, standard string }

func documentedKeys[T any](t *table[T], leave ...string) []documented {
	var out []documented
	for _, k := range t.keys {
		if !slices.Contains(leave, k.name) {
			standard := k.fallback
			if k.required {
				standard = "required"
			}
			out = append(out, documented{k.name, standard})
		}
	}
	return out
}

// sections maps headings of the page to the keys that their table must hold.
func sections() map[string][]documented {
	var tests []documented
	for _, t := range assertTable.keys {
		if t.json()["type"] == "object" {
			for name := range t.json()["properties"].(map[string]any) {
				if !slices.ContainsFunc(tests, func(d documented) bool { return d.name == name }) {
					tests = append(tests, documented{name: name})
				}
			}
		}
	}
	var steps []documented
	for _, k := range stepKindList {
		for _, key := range k.keys {
			if !slices.ContainsFunc(steps, func(d documented) bool { return d.name == key.name }) {
				steps = append(steps, documented{name: key.name})
			}
		}
	}
	return map[string][]documented{
		"Top level":                documentedKeys(&rootTable, "source", "target", "image", "io", "stream", "matrix", "case", "manual", "inputs", "files", "protocol", "run", "published", "claim", "fit", "relation", "table", "change"),
		"`[source]`":               documentedKeys(&sourceTable),
		"`[target]`":               documentedKeys(groupTable("target")),
		"`[image]`":                documentedKeys(groupTable("image")),
		"`[io]`":                   documentedKeys(groupTable("io")),
		"`[stream]`":               documentedKeys(groupTable("stream")),
		"`[matrix]`":               {{"exclude", ""}},
		"`[[manual]]`":             documentedKeys(&manualTable),
		"`[inputs.NAME]`":          documentedKeys(&inputTable),
		"File sets":                documentedKeys(&fileTable),
		"Steps":                    documentedKeys(&blockTable),
		"Keys of every step":       documentedKeys(&table[Step]{keys: commonStepKeys(nil)}),
		"Keys of single kinds":     steps,
		"Run":                      documentedKeys(&runTable),
		"Published figures":        documentedKeys(&publishedFormTable),
		"Claims":                   documentedKeys(&claimTable, append(testNames(), "left", "right")...),
		"Claims/Keys inside":       tests,
		"Claims/An **operand** is": documentedKeys(&operandTable, "value"),
		"Fits":                     documentedKeys(&fitTable),
		"Relations":                documentedKeys(&relationTable),
		"Tables":                   documentedKeys(&tableTable),
		"Tables/A **line** is":     documentedKeys(&lineTable),
		"Tables/An **outcome** is": documentedKeys(&lineOutcomeTable),
		"Changes":                  documentedKeys(&changeTable),
	}
}

var codeWord = regexp.MustCompile("`([^`]+)`")

// page reads the "| key | …" tables of the page: heading → key → default cell.
func page(t *testing.T) (map[string]map[string]string, string) {
	text, err := os.ReadFile("../../docs/plan-language.md")
	require.NoError(t, err)
	out := map[string]map[string]string{}
	heading, part, inTable := "", "", false
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			heading, _, _ = strings.Cut(strings.TrimLeft(line, "# "), ":")
			part, inTable = "", false
		case strings.HasPrefix(line, "Keys inside tests"):
			part = "/Keys inside"
		case strings.HasPrefix(line, "An **operand** is"):
			part = "/An **operand** is"
		case strings.HasPrefix(line, "An **outcome** is"):
			part = "/An **outcome** is"
		case strings.HasPrefix(line, "A **line** is"):
			part = "/A **line** is"
		case strings.HasPrefix(line, "| key "):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.ReplaceAll(line, `\|`, "¦"), "|")
			at := heading + part
			if out[at] == nil {
				out[at] = map[string]string{}
			}
			for _, m := range codeWord.FindAllStringSubmatch(cells[1], -1) {
				out[at][m[1]] = strings.TrimSpace(cells[3])
			}
		}
	}
	return out, string(text)
}

// TestDocs holds docs/plan-language.md against the table of keys that decodes
// plans: every key is on the page with its default, and nothing else is.
func TestDocs(t *testing.T) {
	have, text := page(t)
	for heading, keys := range sections() {
		require.Contains(t, have, heading, "a section of the page")
		var names []string
		for _, k := range keys {
			names = append(names, k.name)
			cell, ok := have[heading][k.name]
			if assert.True(t, ok, "%s: the page lacks the key %q", heading, k.name) && k.standard != "" {
				assert.Contains(t, cell, strings.Trim(k.standard, "\""), "%s: default of %q", heading, k.name)
			}
		}
		for name := range have[heading] {
			assert.Contains(t, names, name, "%s: the page has a key that the language has not", heading)
		}
		delete(have, heading)
	}
	assert.Empty(t, have, "sections with keys that are no part of the language")
	for _, words := range [][]string{settingNames(), quantityNames(), stepNames(), testNames(), estimators, image.FormatNames(nil), image.FilesystemNames(), image.Encryptions, syncs, caches, codecs, qualities} {
		for _, w := range words {
			assert.Contains(t, text, "`"+w+"`", "the page lacks %q", w)
		}
	}
	for model, names := range coefficients {
		assert.Contains(t, text, "`"+model+"`")
		for _, n := range names {
			assert.Contains(t, text, "`"+n+"`")
		}
	}
}

// TestDocsSteps holds the table of step kinds against the language.
func TestDocsSteps(t *testing.T) {
	_, text := page(t)
	row := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|([^|]*)\\|([^|]*)\\|[^|]*\\|$")
	found := map[string]bool{}
	_, kinds, ok := strings.Cut(text, "### Kinds of step")
	require.True(t, ok)
	kinds, _, _ = strings.Cut(kinds, "### Keys of single kinds")
	for _, m := range row.FindAllStringSubmatch(kinds, -1) {
		if m[1] == "do" {
			continue
		}
		k := findStepKind(m[1])
		require.NotNil(t, k, m[1])
		found[m[1]] = true
		var want, have []string
		for _, key := range k.keys {
			want = append(want, key.name)
		}
		for _, w := range codeWord.FindAllStringSubmatch(m[3], -1) {
			have = append(have, w[1])
		}
		slices.Sort(want)
		slices.Sort(have)
		assert.Equal(t, want, have, "keys of %s", m[1])
		states := map[state]string{fresh: "once, first", detached: "detached", attached: "attached", onVolume: "volume", notInUse: "not mounted", anyState: "any"}
		if word, ok := states[k.state]; ok {
			assert.Equal(t, word, strings.TrimSpace(m[2]), "state of %s", m[1])
		}
	}
	for _, name := range stepNames() {
		assert.True(t, found[name], "the page lacks the step %q", name)
		assert.NotNil(t, findStepKind(name))
	}
}

var tomlExample = regexp.MustCompile("(?s)```toml\n(.*?)```")

// TestDocsExamples reads every example of the page as part of one plan.
func TestDocsExamples(t *testing.T) {
	_, text := page(t)
	for _, m := range tomlExample.FindAllStringSubmatch(text, -1) {
		r := newReader("example", []byte(m[1]))
		root := r.parseTree()
		r.manual = []string{"cores"}
		rootTable.read(r, root, &Plan{})
		for _, p := range r.found {
			if !strings.HasPrefix(p.Message, "plan: ") { // an example leaves out what every plan must have
				t.Error(p.String())
			}
		}
	}
}
