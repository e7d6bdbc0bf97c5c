package safetext

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	tests := []struct{ text, want string }{
		{"two lines\n\twith a tab  and blanks\n", "two lines\n\twith a tab  and blanks\n"},
		{"\x1b]0;title\x07\x7f\r\n", "\uFFFD]0;title\uFFFD\uFFFD\uFFFD\n"},
		{"C1 \u009b31m, a mark \u202egpj.exe\u2066, a line\u2028end", "C1 \uFFFD31m, a mark \uFFFDgpj.exe\uFFFD, a line\uFFFDend"},
		{"not UTF-8 \xff\xfe.", "not UTF-8 \uFFFD."},
		{"Grüße, 家, עברית, 👩\u200d🚀", "Grüße, 家, עברית, 👩\u200d🚀"},
		{"::error::stop\n \u00a0::add-mask::x\nstd::string", ": :error::stop\n \u00a0: :add-mask::x\nstd::string"},
		{"a ##[add-mask]x", "a ## [add-mask]x"},
		{"\u202e::error::stop", "\uFFFD::error::stop"},
		{"", ""},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, Clean(test.text), "%q", test.text)
	}
}

// TestCleanTextHasNoControls: whatever the text is, no terminal and no runner acts upon it, and cleaning it again changes nothing.
func TestCleanTextHasNoControls(t *testing.T) {
	command := regexp.MustCompile(`(?m)^\s*::|##\[`) // as actions/runner parses them
	letters := []rune(":#[ \t\n\r\v\x00\x1b\u0085\u009b\u2028\u202e\u2066\U000e0041\uFFFDaé")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom(letters)), rapid.Map(rapid.SliceOf(rapid.Byte()),
			func(b []byte) string { return string(b) })).Draw(t, "text")
		clean := Clean(s)
		require.True(t, utf8.ValidString(clean))
		require.Equal(t, strings.Count(s, "\n"), strings.Count(clean, "\n"))
		require.NotRegexp(t, command, clean)
		require.Equal(t, clean, Clean(clean))
		for _, r := range clean {
			require.False(t, r != '\n' && r != '\t' && (unicode.IsControl(r) || IsHidden(r)), "%U", r)
		}
	})
}
