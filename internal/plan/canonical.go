package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Canonical writes the plan with every default filled in and in one fixed order:
// two plans that mean the same have the same canonical form, and reading it
// gives the plan back (but for the places of steps).
func (p *Plan) Canonical() []byte {
	w := &writer{}
	w.lines(rootTable.lines(&Plan{Title: p.Title, Summary: p.Summary, Choices: p.Choices}), "schema", "title", "summary",
		"choices")
	if p.Source != nil {
		w.table("[source]", sourceTable.lines(p.Source))
	}
	for _, group := range groupNames {
		w.table("["+group+"]", groupTable(group).lines(&p.Defaults))
	}
	w.matrix(p)
	for _, s := range p.Extra {
		w.table("[[case]]", extraLines(s))
	}
	for i := range p.Manual {
		w.table("[[manual]]", manualTable.lines(&p.Manual[i]))
	}
	for i := range p.Inputs {
		w.table("[inputs."+tomlKey(p.Inputs[i].Name)+"]", inputTable.lines(&p.Inputs[i]))
	}
	for _, f := range p.Files {
		form := f.form()
		w.table("[files."+tomlKey(f.Name)+"]", fileTable.lines(&form))
	}
	for i := range p.Protocol {
		w.table("[[protocol]]", blockTable.lines(&p.Protocol[i]))
	}
	w.table("[run]", runTable.lines(&p.Run))
	w.published(p.Published)
	for i := range p.Claims {
		w.table("[[claim]]", claimTable.lines(&p.Claims[i]))
	}
	for i := range p.Fits {
		w.table("[[fit]]", fitTable.lines(&p.Fits[i]))
	}
	for i := range p.Relations {
		w.table("[[relation]]", relationTable.lines(&p.Relations[i]))
	}
	for i := range p.Tables {
		w.table("[[table]]", tableTable.lines(&p.Tables[i]))
	}
	for i := range p.Changes {
		w.table("[[change]]", changeTable.lines(&p.Changes[i]))
	}
	return w.Bytes()
}

// Digest is the SHA-256 of the canonical form in hexadecimal.
func (p *Plan) Digest() string {
	sum := sha256.Sum256(p.Canonical())
	return hex.EncodeToString(sum[:])
}

// Is reports whether text, which p was read from, is the plan with this digest: by its meaning, or byte for byte. The
// latter are plans that an earlier version wrote into run folders, when the canonical form had fewer keys: changes of
// the plan language are additive.
func (p *Plan) Is(digest string, text []byte) bool {
	sum := sha256.Sum256(text)
	return p.Digest() == digest || hex.EncodeToString(sum[:]) == digest
}

type writer struct{ bytes.Buffer }

// lines writes those of the lines whose key is listed.
func (w *writer) lines(lines []string, keys ...string) {
	for _, l := range lines {
		if name, _, _ := strings.Cut(l, " = "); slices.Contains(keys, name) {
			fmt.Fprintln(w, l)
		}
	}
}

func (w *writer) table(header string, lines []string) {
	fmt.Fprintf(w, "\n%s\n", header)
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
}

func (w *writer) matrix(p *Plan) {
	var lines []string
	for _, a := range p.Axes {
		t := findSetting(a.Key).value
		values := make([]string, len(a.Values))
		for i, v := range a.Values {
			values[i] = t.toml(v)
		}
		lines = append(lines, a.Key+" = ["+strings.Join(values, ", ")+"]")
	}
	if len(p.Exclude) > 0 {
		var b strings.Builder
		for _, s := range p.Exclude {
			b.WriteString("  " + s.toml() + ",\n")
		}
		lines = append(lines, "exclude = [\n"+b.String()+"]")
	}
	if len(lines) > 0 {
		w.table("[matrix]", lines)
	}
}

func extraLines(s Selector) []string {
	out := make([]string, len(s))
	for i, c := range s {
		out[i] = tomlKey(c.Key) + " = " + choiceType(c.Key).toml(c.Values[0])
	}
	return out
}

// published writes neighbouring figures of one cell into one table.
func (w *writer) published(list []Published) {
	for i := 0; i < len(list); {
		form := publishedForm{Published: list[i]}
		head := publishedFormTable.lines(&form)
		lines, have := slices.Clone(head), map[Quantity]bool{}
		for ; i < len(list) && !have[list[i].Quantity]; i++ {
			next := publishedForm{Published: list[i]}
			if !slices.Equal(head, publishedFormTable.lines(&next)) {
				break
			}
			have[list[i].Quantity] = true
			lines = append(lines, string(list[i].Quantity)+" = "+tomlString(list[i].Value.Text))
		}
		w.table("[[published]]", lines)
	}
}

// tomlString writes a basic string of one line.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlKey quotes a key that needs quotes.
func tomlKey(s string) string {
	if bareKey.MatchString(s) {
		return s
	}
	return tomlString(s)
}

func tomlStrings(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = tomlString(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
