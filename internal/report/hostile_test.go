package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/report/reporttest"
	"dmgbench/internal/system/safetext"
)

func TestHostileTextStaysText(t *testing.T) {
	require.NoError(t, parsedOf("hostile").err)
	shown := parsedOf("hostile").shown
	for _, bad := range []string{"<img", "<svg", "onerror=alert(1)>", "<script>alert"} {
		assert.NotContains(t, shown, bad)
	}
	assert.Contains(t, shown, "&lt;/script&gt;&lt;script&gt;alert(1)", "it is shown, not removed")
	for _, r := range shown {
		assert.False(t, unicode.Is(unicode.Bidi_Control, r) && r != '\u2068' && r != '\u2069', "%U", r)
	}
	assert.Equal(t, strings.Count(shown, "\u2068"), strings.Count(shown, "\u2069"), "isolates are balanced")
}

func TestHostileTerminal(t *testing.T) {
	out := verboseOf("hostile")
	for _, r := range out {
		if r != '\n' {
			assert.False(t, unicode.IsControl(r), "%U", r)
		}
	}
	assert.True(t, utf8.ValidString(out))
}

func TestHostileMarkdown(t *testing.T) {
	out := markdownOf("hostile")
	body, _, _ := strings.Cut(out, "## How to repeat")
	assert.NotRegexp(t, `<(script|img|svg|!--)`, body)
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|-") {
			assert.NotContains(t, line, "javascript:alert(1)]", line)
		}
	}
}

func TestTerminalKeepsWidth(t *testing.T) {
	t.Parallel()
	for name := range makers {
		if name == "hostile" { // with words that are longer than a line
			continue
		}
		for _, columns := range []int{60, 80, 120} {
			for line := range strings.Lines(text(t, shared(name), TextOptions{Width: columns, Verbose: true})) {
				line = strings.TrimSuffix(line, "\n")
				if w := Width(line); w > columns {
					t.Errorf("%s at %d columns: %d in %q", name, columns, w, line)
				}
			}
		}
	}
}

func TestTerminalColour(t *testing.T) {
	plainText, colour := verboseOf("sample"), text(t, shared("sample"), TextOptions{Color: true, Verbose: true})
	assert.NotContains(t, plainText, "\x1b")
	assert.Contains(t, colour, "\x1b[32m")
	strip := func(s string) string {
		for _, style := range []string{"0", "1", "2", "31", "32", "33", "36"} {
			s = strings.ReplaceAll(s, "\x1b["+style+"m", "")
		}
		return s
	}
	assert.Equal(t, plainText, strip(colour))
}

func TestCleanInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.SampledFrom(reporttest.Nasty), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		limit := rapid.IntRange(1, 50).Draw(t, "limit")
		out := Clean(s)
		require.True(t, utf8.ValidString(out))
		require.Equal(t, out, Clean(out), "cleaning twice changes nothing")
		require.LessOrEqual(t, utf8.RuneCountInString(Shorten(s, limit)), limit)
		for _, r := range out {
			require.False(t, unicode.IsControl(r) || safetext.IsHidden(r), "%U", r)
		}
		require.GreaterOrEqual(t, Width(out), 0)
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\tc  d": "a b c d", "\u202Egpj.exe": "gpj.exe", "x\x1b[31my": "x[31my", "👩‍🚀": "👩‍🚀", "  a ": "a", "a\u200Bb": "ab", "\u2028": "",
	} {
		assert.Equal(t, want, Clean(in), "%q", in)
	}
	assert.Equal(t, "abc…", Shorten("abcdefgh", 4))
	assert.Equal(t, "\u2068עברית\u2069", Plain("עברית", 20))
	assert.Equal(t, 4, Width("漢字"))
}
