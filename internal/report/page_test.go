package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/result"
	"dmgbench/third_party/echarts"
)

// element is one start tag of a page.
type element struct {
	name  string
	attrs map[string]string
}

var scriptOrStyle = regexp.MustCompile(`<(script|style)\b[^>]*>`)

// parsed is a page in parts: its start tags, what is within each script and style, and all else.
type parsed struct {
	elements []element
	raw      []string
	shown    string
	err      error
}

// parsedOf is the page of a maker, parsed once.
var parsedOf = once(func(name string) parsed { return parse(pageOf(name)) })

// parse reads a page as the template writes it: raw text is cut out first, void
// elements close themselves. Anything else than well-formed markup is an error.
func parse(page string) (out parsed) {
	page = strings.TrimPrefix(page, "<!doctype html>")
	const library = "the charting library" // a megabyte, that nobody needs to search
	page = strings.Replace(page, echarts.Script, library, 1)
	var shown strings.Builder
	for at := scriptOrStyle.FindStringSubmatchIndex(page); at != nil; at = scriptOrStyle.FindStringSubmatchIndex(page) {
		shown.WriteString(page[:at[1]])
		text, rest, _ := strings.Cut(page[at[1]:], "</"+page[at[2]:at[3]]+">")
		if text == library {
			text = echarts.Script
		}
		out.raw, page = append(out.raw, text), "</"+page[at[2]:at[3]]+">"+rest
	}
	out.shown = shown.String() + page
	d := xml.NewDecoder(strings.NewReader(out.shown))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	for {
		token, err := d.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			out.err = err
			return out
		}
		if s, ok := token.(xml.StartElement); ok {
			e := element{s.Name.Local, map[string]string{}}
			for _, a := range s.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			out.elements = append(out.elements, e)
		}
	}
}

var allowed = strings.Fields(`html head meta title style body a header p h1 h2 h3 bdi dl div dt dd main section ul li span strong details summary
	table thead tbody tr th td sup figure script noscript pre footer`)

var attributes = strings.Fields(`lang charset http-equiv content name class href id aria-labelledby aria-label title scope colspan rowspan tabindex role
	data-for data-height type style`)

func TestPageHasOnlyOurElements(t *testing.T) {
	t.Parallel()
	for name := range makers {
		t.Run(name, func(t *testing.T) {
			page := parsedOf(name)
			require.NoError(t, page.err)
			require.NotEmpty(t, page.elements)
			scripts := 0
			for _, e := range page.elements {
				assert.Contains(t, allowed, e.name)
				for a, value := range e.attrs {
					assert.Contains(t, attributes, a, e.name)
					if a == "href" {
						assert.Contains(t, []string{"#main", "#h-warnings", "#h-notdone", "#h-claims"}, value)
					}
				}
				if e.name == "script" && e.attrs["type"] == "" {
					scripts++
				}
			}
			assert.Equal(t, 2, scripts, "the library and ours")
		})
	}
}

func TestPageLoadsNothing(t *testing.T) {
	page := pageOf("hostile")
	raw := parsedOf("hostile").raw
	for _, e := range parsedOf("hostile").elements {
		assert.Empty(t, e.attrs["src"], e.name)
	}
	assert.NotRegexp(t, `(?i)url\(|@import`, raw[0], "the style sheet")
	last := raw[len(raw)-1]
	assert.NotRegexp(t, `(?i)https?://|fetch\(|XMLHttpRequest|WebSocket|\beval\(|new Function|innerHTML|document\.write`, last, "our script")
	assert.LessOrEqual(t, strings.Index(page, "Content-Security-Policy"), strings.Index(page, "<title>"), "the policy comes before anything that it governs")
}

func TestPolicyNamesEveryScript(t *testing.T) {
	raw := parsedOf("sample").raw
	var content string
	for _, e := range parsedOf("sample").elements {
		if e.attrs["http-equiv"] == "Content-Security-Policy" {
			content = e.attrs["content"]
		}
	}
	require.NotEmpty(t, content)
	assert.True(t, strings.HasPrefix(content, "default-src 'none';"))
	assert.NotContains(t, content, "unsafe-eval")
	assert.NotRegexp(t, `script-src[^;]*unsafe`, content)
	for _, script := range raw[len(raw)-2:] {
		sum := sha256.Sum256([]byte(script))
		assert.Contains(t, content, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
}

// Every chart has its place, its data is JSON, its table and an id of its own.
func TestChartsOfPage(t *testing.T) {
	t.Parallel()
	for name := range makers {
		t.Run(name, func(t *testing.T) {
			raw := parsedOf(name).raw
			var places, blocks []string
			for _, e := range parsedOf(name).elements {
				if e.attrs["class"] == "chart" {
					assert.NotContains(t, places, e.attrs["id"])
					assert.NotEmpty(t, e.attrs["aria-label"])
					assert.Equal(t, "0", e.attrs["tabindex"])
					places = append(places, e.attrs["id"])
				}
				if e.attrs["type"] == "application/json" && e.attrs["class"] != "forms" {
					blocks = append(blocks, e.attrs["data-for"])
				}
			}
			assert.Equal(t, places, blocks)
			for _, block := range raw[1 : len(raw)-2] {
				if strings.HasPrefix(block, `{"HTML":`) { // what a table's buttons hand out
					assert.NotContains(t, block, "<")
					continue
				}
				var s struct {
					Notes  []string
					Option map[string]any
				}
				require.NoError(t, json.Unmarshal([]byte(block), &s))
				assert.NotContains(t, block, "<")
				require.NotEmpty(t, s.Notes)
				assert.NotEmpty(t, s.Option["title"].(map[string]any)["text"])
			}
		})
	}
}

func TestTablesAreRectangles(t *testing.T) {
	for name := range makers {
		v := NewView(shared(name)())
		for _, s := range v.Sections {
			for _, tb := range s.Tables {
				for _, row := range tb.Rows {
					assert.Len(t, row, len(tb.Columns), "%s %s", name, tb.Caption)
				}
			}
		}
	}
}

// A page of many files stays small.
func TestPageOfManyFilesIsSmall(t *testing.T) {
	t.Parallel()
	assert.Less(t, len(pageOf("large")), 2_500_000)
}

// Ten thousand files in as many pictures as a page has are still a page of less than 3 MB.
func TestManyPicturesStaySmall(t *testing.T) {
	t.Parallel()
	many := func() (*plan.Plan, *result.Result) {
		p, r := reporttest.Large(1_200)
		steps := r.Cases[0].Steps
		for i := 1; i < 8; i++ {
			for _, s := range steps {
				s.Phase, s.Index = s.Phase+strings.Repeat("+", i), s.Index+100*i
				r.Cases[0].Steps = append(r.Cases[0].Steps, s)
			}
		}
		second := r.Cases[0]
		second.ID, second.Keys, second.Target.Format = "format=UDRW", [][2]string{{"format", "UDRW"}}, "UDRW"
		r.Cases = append(r.Cases, second)
		return p, r
	}
	_, r := many()
	files := 0
	eachSample(r, func(*result.Sample) { files++ })
	require.Greater(t, files, 10_000)
	assert.Less(t, len(html(t, many)), 3_000_000)
}
