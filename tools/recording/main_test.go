package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkSVG checks that a page can show the picture as an image: it is valid XML
// without scripts, and loads nothing.
func checkSVG(t *testing.T, svg string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		assert.Contains(t, []string{"svg", "title", "style", "text", "defs", "g", "use", "rect", "path"}, element.Name.Local)
		for _, a := range element.Attr {
			assert.False(t, strings.HasPrefix(a.Name.Local, "on"), "a script: %s", a.Name.Local)
			assert.True(t, a.Name.Local != "href" || strings.HasPrefix(a.Value, "#r"), "a reference to %s", a.Value)
		}
	}
	for _, loads := range []string{"url(", "@import", "@font-face", "javascript:"} {
		assert.NotContains(t, svg, loads)
	}
	assert.Contains(t, svg, "prefers-reduced-motion")
}

func TestRecordingOfTheREADME(t *testing.T) {
	data, err := os.ReadFile("../../docs/recording.svg")
	require.NoError(t, err)
	assert.Less(t, len(data), 1_000_000)
	svg := string(data)
	checkSVG(t, svg)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	picture := regexp.MustCompile(`(?s)!\[([^\]]{40,})\]\(docs/recording\.svg\)(.*?)(\n\n!|\z)`).FindStringSubmatch(string(readme))
	require.NotEmpty(t, picture[1], "the picture has a text")
	commands := regexp.MustCompile("`(dmgbench [^`]+)`").FindAllStringSubmatch(picture[2], -1)
	require.Len(t, commands, 2, "the text below names what is typed")
	for _, c := range commands {
		assert.Contains(t, svg, ">$ "+c[1]+"</text>")
	}
	for _, shown := range []string{">terminal 2<", ">in-process, running<", ">the run has ended<", ">report: runs/quick-", "Engine in-process", "shortened"} {
		assert.Contains(t, svg, shown)
	}
}

func TestWriteSVG(t *testing.T) {
	var b strings.Builder
	screen := "one\n\n  \x1b[1m\x1b[31ma<b\x1b[0m\x1b[39m c\n\x1b[38;2;1;2;3md\ne\n\n\n\f"
	input := "zero\n\f" + strings.Repeat(screen, 100) + "zero\n\f"
	require.NoError(t, writeSVG(&b, input, []string{"a machine & a <system>"}))
	svg := b.String()
	checkSVG(t, svg)
	assert.Contains(t, svg, `<text x="16.8" textLength="25.2" fill="#ff8787" font-weight="bold">a&lt;b</text>`+
		`<text x="42.0" textLength="16.8"> c</text>`)
	assert.Contains(t, svg, `<text x="0.0" textLength="8.4" fill="rgb(1,2,3)">e</text>`, "colours last over the ends of lines")
	assert.Contains(t, svg, "a machine &amp; a &lt;system&gt;")
	assert.Equal(t, 1, strings.Count(svg, ">zero<"), "each line is there once")
	// One frame, a pause of 100 cut to 15, one frame, and the last pause: 77 in all.
	assert.Contains(t, svg, "play 7700ms")
	assert.Contains(t, svg, "0.000%{transform:translateX(0px)}1.299%{transform:translateX(-704px)}20.779%{transform:translateX(-1408px)}")
	assert.Contains(t, svg, "#film{transform:translateX(-1408px);", "the last frame where there is no motion")
}
