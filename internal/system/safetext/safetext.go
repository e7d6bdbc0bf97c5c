// Package safetext makes text of others (of images, volumes, run folders, other machines) safe to print.
//
// A program calls [Clean] on every message before it leaves the program, so that no terminal obeys what is in a
// name, and no workflow. It changes no data: what goes into a file for a program is escaped as its format asks.
package safetext

import (
	"strings"
	"unicode"
)

// Clean is text that can be printed on a terminal and in the log of a workflow. Line ends, tabs and blanks stay;
// other control characters, those that [IsHidden] finds, and invalid UTF-8 become U+FFFD, and commands are broken up,
// see [BreakCommands].
func Clean(s string) string {
	return strings.Map(replace, BreakCommands(strings.ToValidUTF8(s, "\uFFFD")))
}

// BreakCommands puts a blank into what GitHub's runner takes for a command in a log: "::" where a line starts, and
// "##[" anywhere.
func BreakCommands(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		text := strings.TrimLeftFunc(line, unicode.IsSpace)
		if strings.HasPrefix(text, "::") {
			line = line[:len(line)-len(text)] + ": " + text[1:]
		}
		b.WriteString(strings.ReplaceAll(line, "##[", "## ["))
	}
	return b.String()
}

// replace is what Clean prints in place of a character.
func replace(r rune) rune {
	if r != '\n' && r != '\t' && (unicode.IsControl(r) || IsHidden(r)) {
		return unicode.ReplacementChar
	}
	return r
}

// IsHidden reports whether a character has no shape of its own but changes what is read: bidirectional controls,
// zero-width spaces, separators of lines and paragraphs, tags, interlinear marks, and private use, which has no agreed
// shape. The joiner U+200D, which connects emoji, is none of them.
//
// The Unicode report UTR 36 describes how such characters are used to deceive.
func IsHidden(r rune) bool { return unicode.Is(hidden, r) }

var hidden = &unicode.RangeTable{
	R16: []unicode.Range16{{0xAD, 0xAD, 1}, {0x34F, 0x34F, 1}, {0x61C, 0x61C, 1}, {0x180E, 0x180E, 1},
		{0x200B, 0x200C, 1}, {0x200E, 0x200F, 1}, {0x2028, 0x202E, 1}, {0x2060, 0x206F, 1}, {0xE000, 0xF8FF, 1},
		{0xFEFF, 0xFEFF, 1}, {0xFFF9, 0xFFFB, 1}},
	R32:         []unicode.Range32{{0xE0000, 0xE0FFF, 1}, {0xF0000, 0x10FFFF, 1}},
	LatinOffset: 1,
}
