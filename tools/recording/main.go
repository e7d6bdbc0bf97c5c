// Command recording makes an animated SVG of what a terminal showed.
//
// Standard input has ten frames for each second. Each is the title of the
// terminal, an empty line, and the lines of the terminal as `tmux capture-pane -e
// -p` prints them, and ends with a form feed. The arguments are the lines of the caption. Pauses are
// shortened. The SVG loads nothing and has no script, so that a page may show it as
// a picture; readers who want no motion see its last frame.
//
//	recording CAPTION... <frames >FILE.svg
//
// Exit status: 0 written, 1 an error.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"strings"
	"text/template"
	"unicode/utf8"
)

// longestPause is the number of frames after which a screen that stays is skipped.
const longestPause = 15

// lastPause is the number of frames for which the last screen stays, so that it can
// be read before the film starts again.
const lastPause = 60

// charWidth is the width of a column in pixels, as most monospaced fonts of 14
// pixels have it.
const charWidth = 8.4

//go:embed recording.svg.tmpl
var page string

func main() {
	log.SetFlags(0)
	input, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = writeSVG(os.Stdout, string(input), os.Args[1:])
	}
	if err != nil {
		log.Fatal("recording: ", err)
	}
}

// movie is what the template shows.
type movie struct {
	Caption []string
	Rows    map[string]int // each different line once, as SVG, with its number
	Screens [][]int        // the rows of each screen that differs from the one before
	Starts  []int          // of Screens, in frames of the input
	Length  int            // in frames of the input
}

// writeSVG writes all screens of the input.
func writeSVG(w io.Writer, input string, caption []string) error {
	m := movie{Caption: caption, Rows: map[string]int{}}
	last, pause := "", 0
	for screen := range strings.SplitSeq(strings.TrimSuffix(input, "\f"), "\f") {
		if screen != last {
			m.add(screen)
			last, pause = screen, 0
		}
		if pause++; pause <= longestPause {
			m.Length++
		}
	}
	m.Length += lastPause
	percent := func(start int) float64 { return 100 * float64(start) / float64(m.Length) }
	place := func(first, step, n int) int { return first + step*n }
	functions := template.FuncMap{"percent": percent, "place": place}
	return template.Must(template.New("").Funcs(functions).Parse(page)).Execute(w, m)
}

// add adds a screen.
func (m *movie) add(screen string) {
	var rows []int
	var s style
	for line := range strings.SplitSeq(strings.TrimRight(screen, "\n"), "\n") {
		row := s.drawRow(line)
		if _, known := m.Rows[row]; !known {
			m.Rows[row] = len(m.Rows)
		}
		rows = append(rows, m.Rows[row])
	}
	m.Screens, m.Starts = append(m.Screens, rows), append(m.Starts, m.Length)
}

// style is how the terminal shows the text that follows, as attributes. It lasts
// over the ends of lines.
type style struct{ fill, weight string }

// fills and weights are the attributes of parameters of escape sequences. Colours
// that terminals have by number get a contrast of at least 4.5:1 on the background.
var fills = map[string]string{"39": "", "31": ` fill="#ff8787"`, "32": ` fill="#5fd787"`, "33": ` fill="#ffd75f"`}
var weights = map[string]string{"0": "", "1": ` font-weight="bold"`, "0;1": ` font-weight="bold"`}

// part is an escape sequence, if there is one, and the text after it. tmux prints
// each colour in a sequence of its own.
var part = regexp.MustCompile("(?:\x1b\\[([0-9;]*)m)?([^\x1b]*)")

// drawRow draws a line. Each text gets the width that it has in a terminal,
// whatever font the reader has.
func (s *style) drawRow(line string) (row string) {
	column := 0
	for _, match := range part.FindAllStringSubmatch(line, -1) {
		s.apply(match[1])
		if width := utf8.RuneCountInString(match[2]); width > 0 {
			row += fmt.Sprintf(`<text x="%.1f" textLength="%.1f"%s%s>%s</text>`, float64(column)*charWidth,
				float64(width)*charWidth, s.fill, s.weight, template.HTMLEscapeString(match[2]))
			column += width
		}
	}
	return row
}

// apply changes the style as the parameters of an escape sequence ask.
func (s *style) apply(parameters string) {
	if fill, ok := fills[parameters]; ok {
		s.fill = fill
	}
	if weight, ok := weights[parameters]; ok {
		s.weight = weight
	}
	if rgb, ok := strings.CutPrefix(parameters, "38;2;"); ok {
		s.fill = fmt.Sprintf(` fill="rgb(%s)"`, strings.ReplaceAll(rgb, ";", ","))
	}
}
