// Package wording makes the sentences of results. Analysis finds kinds and
// values; here they become text: reasons, evidence, warnings, deviations and
// changes.
//
// sentences.txt has the sentences by key, and the types of this package write
// the values in them: an [Amount] with its unit, a [Span], a [Count] with its
// noun, a [Percent], a [P] value. A [Message] is a key with values and is
// written only where somebody reads it, since most findings of an analysis are
// compared and never shown.
package wording

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed sentences.txt
var sentencesText string

var sentences = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(sentencesText) {
		if key, text, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok && !strings.HasPrefix(key, "#") {
			out[key] = strings.TrimLeft(text, " ")
		}
	}
	return out
})

// Message is a sentence or a part of one: a key of sentences.txt and the values
// in it. The zero Message is empty.
type Message struct {
	key  string
	args []any
}

// Say is a message; the values are those of the verbs of the sentence, in their
// order.
func Say(key string, args ...any) Message { return Message{key, args} }

// Text writes a message at once.
func Text(key string, args ...any) string { return Say(key, args...).String() }

// String writes the message.
func (m Message) String() string {
	switch m.key {
	case "":
		return ""
	case fullSize:
		return fullSizeText(fmt.Sprint(m.args[0]), m.args[1].(string), m.args[2].(string))
	}
	return fmt.Sprintf(sentences()[m.key], m.args...)
}

// IsZero reports whether there is no message.
func (m Message) IsZero() bool { return m.key == "" }

// With is the message with another first value.
func (m Message) With(v any) Message {
	args := slices.Clone(m.args)
	args[0] = v
	return Message{m.key, args}
}

const fullSize = "full-size"

// FullSize is how the size on disk of a compares with the full size of the
// image b; its value is the ratio: "UDRW, when created, takes up its full size
// (ratio 1.00)".
func FullSize(a, b string) Message { return Say(fullSize, nil, a, b) }

func fullSizeText(ratio, a, b string) string {
	of := "the full size of " + b
	if a == b {
		of = "its full size"
	}
	if name, phase, ok := strings.Cut(a, ", phase "); ok {
		a = name + ", when " + phase + ","
	}
	if ratio == "1" {
		return fmt.Sprintf("%s takes up %s (ratio 1.00)", a, of)
	}
	return fmt.Sprintf("%s takes up %s times %s", a, ratio, of)
}

// Join adds b to a with a semicolon. Parts that a has are not repeated, as
// several operands may share a reason.
func Join(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	for part := range strings.SplitSeq(b, "; ") {
		if !slices.Contains(strings.Split(a, "; "), part) {
			a += "; " + part
		}
	}
	return a
}

// NonEmpty joins the texts that are not empty by commas.
func NonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), ", ")
}
