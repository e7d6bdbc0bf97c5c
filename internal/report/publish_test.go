package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// saved are the files of the tables of the plan.
func saved(t *testing.T, m maker) map[string]string {
	t.Helper()
	p, r := m()
	out := map[string]string{}
	require.NoError(t, Tables(p, r, func(name string, text []byte) error {
		assert.NotContains(t, out, name)
		assert.NoError(t, result.SafeName(name))
		out[name] = string(text)
		return nil
	}))
	return out
}

func TestTablesAsFiles(t *testing.T) {
	files := saved(t, makers["sample"])
	for _, suffix := range []string{".html", ".md", ".tsv"} {
		golden(t, "new-images"+suffix, []byte(files["new-images"+suffix]))
	}
	assert.Len(t, files, 3)
	p, r := makers["sample"]()
	full := errors.New("no space left on device")
	require.ErrorIs(t, Tables(p, r, func(string, []byte) error { return full }), full)
}

// Every row of TSV has a cell for each column, and a cell is a number alone.
func TestTablesInSpreadsheets(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(saved(t, makers["sample"])["new-images.tsv"], "\n"), "\n")
	require.Len(t, lines, 5)
	for _, line := range lines {
		assert.Len(t, strings.Split(line, "\t"), len(strings.Split(lines[0], "\t")), line)
	}
	cells := strings.Split(lines[1], "\t")
	assert.Regexp(t, `^\d\.\d\d$`, cells[1])
	assert.Equal(t, "5.3", cells[3])
}

// The buttons of the page hand out what the files hold.
func TestPageBringsTheForms(t *testing.T) {
	page := html(t, makers["sample"])
	_, rest, ok := strings.Cut(page, `<script type="application/json" class="forms">`)
	require.True(t, ok)
	text, _, _ := strings.Cut(rest, "</script>")
	var forms map[string]string
	require.NoError(t, json.Unmarshal([]byte(text), &forms))
	files := saved(t, makers["sample"])
	assert.Equal(t, map[string]string{"HTML": files["new-images.html"], "Markdown": files["new-images.md"], "TSV": files["new-images.tsv"]}, forms)
}

// Names out of a hostile plan stay text in every form.
func TestHostileTables(t *testing.T) {
	for name, text := range saved(t, makers["hostile"]) {
		switch {
		case strings.HasSuffix(name, ".html"):
			assert.NotContains(t, strings.ToLower(text), "<script")
			assert.NotContains(t, strings.ToLower(text), "<img")
		case strings.HasSuffix(name, ".tsv"):
			rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			for _, row := range rows {
				cells := strings.Split(row, "\t")
				assert.Len(t, cells, len(strings.Split(rows[0], "\t")))
				for _, c := range cells {
					assert.NotRegexp(t, `^[=+@]`, c)
				}
			}
		}
	}
}
