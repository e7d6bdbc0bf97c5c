package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"dmgbench/internal/plan"
	"dmgbench/internal/units"
)

// protocolWidth is how many columns the text takes where no terminal says otherwise.
const protocolWidth = 80

// protocol writes a plan as an article prints it: what is measured, the files, and the steps with their numbers.
type protocol struct {
	w     io.Writer
	width int
	steps int // numbered so far
	// folder says that there are no images, parted that the steps before are of some cases only.
	folder, parted bool
	err            error
}

func (t *protocol) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}

// item writes text behind a prefix, its further lines below the text.
func (t *protocol) item(prefix, text string) {
	hang := strings.Repeat(" ", utf8.RuneCountInString(prefix))
	line := prefix
	for i, word := range strings.Fields(printable(text)) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > t.width:
			t.line("%s", line)
			line = hang + word
		default:
			line += " " + word
		}
	}
	t.line("%s", line)
}

func (t *protocol) plan(p *plan.Plan) error {
	t.item("", p.Title)
	if s := p.Source; s != nil {
		t.item("", "after "+strings.Join(nonempty(s.Author, "“"+s.Title+"”", day(s)), ", "))
		if s.URL != "" {
			t.line("%s", printable(s.URL))
		}
	}
	if p.Summary != "" {
		t.line("")
		t.item("", p.Summary)
	}
	t.cases(p)
	t.files(p)
	t.line("\nPROTOCOL (in brackets: the phase by which tables and claims find a step)")
	for i := range p.Protocol {
		t.block(&p.Protocol[i])
	}
	t.fits(p)
	t.tables(p)
	t.judged(p)
	return t.err
}

func day(s *plan.Source) string {
	if s.Date.IsZero() {
		return ""
	}
	return s.Date.Format("2 January 2006")
}

func nonempty(parts ...string) []string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

func (t *protocol) cases(p *plan.Plan) {
	cases := p.Cases()
	t.line("\nCASES: %d, in %s, each with a fresh container", len(cases), p.Run.RoundsText())
	for _, a := range p.Axes {
		t.item("  "+a.Key+": ", strings.Join(a.Values, ", "))
	}
	for _, e := range p.Exclude {
		t.item("  not where ", e.Prose())
	}
	also := "  one where "
	if len(p.Axes) > 0 {
		also = "  and one where "
	}
	for _, e := range p.Extra {
		t.item(also, e.Prose())
	}
	if p.Run.Baseline {
		t.item("  ", "and a native folder of each place, in the same steps")
	}
	for _, m := range p.Manual {
		t.item("  by hand, "+m.Name+": ", strings.Join(m.Values, ", ")+". "+m.Instructions)
	}
	if names := p.Places(); len(names) > 0 {
		t.item("  places: ", strings.Join(names, ", ")+"; run needs "+onFlags(names, "DIR"))
	}
	t.folder = onlyFolders(cases)
	t.image(p)
	for _, in := range p.Inputs {
		t.item("  to bring, "+in.Name+": ", in.About)
	}
}

func (t *protocol) files(p *plan.Plan) {
	if len(p.Files) == 0 && !does(p, "stream") {
		return
	}
	t.line("\nFILES")
	for i := range p.Files {
		f := &p.Files[i]
		n, bytes := 0, units.Bytes(0)
		for _, set := range f.Draw(p.Run.Seed) {
			n += len(set)
			for _, size := range set {
				bytes += size
			}
		}
		t.item("  "+f.Name+": ", fmt.Sprintf("%s; %d in all, %s", f.Prose(), n, bytes.Human()))
	}
	t.timed(p)
}

func (t *protocol) block(b *plan.Block) {
	switch {
	case len(b.When) > 0:
		t.line("")
		t.item("  ", "Only where "+b.When.Prose()+":")
	case t.parted:
		t.line("\n  In all cases again:")
	}
	t.parted = len(b.When) > 0
	for i := range b.Steps {
		t.steps++
		t.step(fmt.Sprintf("%4d. ", t.steps), &b.Steps[i])
	}
}

// step writes a step, and the steps inside it below it with letters.
func (t *protocol) step(number string, s *plan.Step) {
	text, opens := strings.CutSuffix(s.Prose(), ":")
	if t.folder {
		text = strings.ReplaceAll(cmp.Or(folderProse[s.Do], text), "the image", "the folder")
	}
	if s.Phase != "" {
		text += " (" + s.Phase + ")"
	}
	text += map[bool]string{true: ":", false: "."}[opens]
	first, size := utf8.DecodeRuneInString(text)
	t.item(number, strings.ToUpper(string(first))+text[size:])
	for i := range s.Steps {
		t.step(strings.Repeat(" ", len(number))+string(rune('a'+i%26))+". ", &s.Steps[i])
	}
}

// tables names what the report prints as the article does.
func (t *protocol) tables(p *plan.Plan) {
	if len(p.Tables) == 0 {
		return
	}
	t.line("\nTABLES")
	heads := func(lines []plan.TableLine) string {
		out := make([]string, len(lines))
		for i := range lines {
			out[i] = strings.Join(nonempty(lines[i].Group, lines[i].Heading()), " · ")
		}
		return strings.Join(out, "; ")
	}
	for i := range p.Tables {
		one := &p.Tables[i]
		t.item("  - ", one.Title)
		t.item("    columns: ", heads(one.Columns))
		t.item("    rows: ", heads(one.Rows))
	}
}

func (t *protocol) judged(p *plan.Plan) {
	if len(p.Choices) > 0 {
		t.line("\nLEFT OPEN BY THE SOURCE, CHOSEN HERE")
		for _, c := range p.Choices {
			t.item("  - ", c)
		}
	}
	if len(p.Claims) > 0 {
		t.line("\nJUDGED: %d published figures, %d claims", len(p.Published), len(p.Claims))
		for _, c := range p.Claims {
			by := ""
			if c.By == "us" {
				by = " (ours)"
			}
			t.item("  - ", c.Says+by)
		}
	}
}
