package watch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
)

// Layout is how a screen is drawn.
type Layout struct {
	Width, Height int // columns and lines; a Height of 0 draws all cases
	Theme         Theme
	Quantity      int // number of the quantity that is shown, from 0; it wraps around
	Top           int // number of the first case; -1: the case that is measured is on the screen
}

// Theme is the colours of a terminal.
type Theme int

// Plain has no colours and no styles.
const (
	Plain Theme = iota
	Light
	Dark
)

// Smallest layout, which smaller terminals cut off: a table with fewer columns
// would have no room for an interval.
const (
	minWidth  = 60
	minHeight = 16
)

// palette are the styles of a theme.
type palette struct{ title, muted, good, bad, busy lipgloss.Style }

// newPalette has colours with a contrast of at least 4.5:1 on the background of
// the theme. Where a terminal has fewer colours, the nearest ones are taken.
func newPalette(t Theme) (p palette) {
	if t == Plain {
		return p
	}
	pick := lipgloss.LightDark(t == Dark)
	style := func(light, dark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(pick(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	return palette{title: lipgloss.NewStyle().Bold(true), muted: style("#5f5f5f", "#a8a8a8"),
		good: style("#00702b", "#5fd787"), bad: style("#b3001b", "#ff8787"), busy: style("#005faf", "#87d7ff")}
}

// canvas draws lines of one width.
type canvas struct {
	palette
	strings.Builder
	width int
}

// line ends a line of styled parts. Blanks at its end would only be copied along
// when a user selects text.
func (c *canvas) line(parts ...string) {
	c.WriteString(strings.TrimRight(strings.Join(parts, ""), " ") + "\n")
}

// Draw draws the screen in lines of at most l.Width columns. It draws the same
// text in every theme.
func (s Screen) Draw(l Layout) string {
	c := &canvas{palette: newPalette(l.Theme), width: max(l.Width, minWidth)}
	s.drawHead(c)
	var q Quantity
	if n := len(s.Quantities); n > 0 {
		q = s.Quantities[((l.Quantity%n)+n)%n]
	}
	wrap := func(t string) []string { return strings.Split(text.Wrap("  ", t, 4, c.width), "\n") }
	warnings, intervals := report.FlatMap(s.Warnings, wrap), s.intervals(q, c.width)
	first, n, all := 0, len(s.Cases), len(warnings)
	if l.Height > 0 {
		// Headings, a blank line and help take 4 lines; warnings take what the cases
		// leave, and at least 4.
		room := max(l.Height, minHeight) - strings.Count(c.String(), "\n") - len(intervals) - 4
		lines := min(all, max(room-n, 4))
		warnings = warnings[all-lines:]
		// The rest of a warning without its first line would have no meaning.
		isFirst := func(line string) bool { return !strings.HasPrefix(line, "    ") }
		warnings = warnings[max(slices.IndexFunc(warnings, isFirst), 0):]
		first, n = s.visibleRows(l.Top, room-lines)
	}
	s.drawCases(c, first, n, q)
	for _, line := range intervals {
		c.line(c.muted.Render(line))
	}
	if c.line(); len(s.Warnings) > 0 {
		c.line(c.title.Render(report.Count(len(s.Warnings), "warning") + report.TextIf(len(warnings) < all, ", the last ones")))
		c.line(strings.Join(warnings, "\n"))
	}
	if l.Height > 0 {
		c.WriteString(strings.Repeat("\n", max(max(l.Height, minHeight)-1-strings.Count(c.String(), "\n"), 0)))
		c.WriteString(c.muted.Render(cell(help, c.width)))
	}
	return c.String()
}

// drawHead draws what runs, how far it is, and what happens now.
func (s Screen) drawHead(c *canvas) {
	state := report.TextIf(s.Replay, "replay, ") + s.Status
	if s.Engine != "" {
		state = s.Engine + ", " + state
	}
	title := cell(report.Plain(s.Title, 200), c.width-report.Width(state)-2)
	c.line(c.title.Render(title), "  ", s.style(c.palette, s.Status).Render(state))
	p, took := s.Progress, brief(time.Duration(s.Progress.ElapsedNS))
	canGrow := []string{running, result.Paused, result.Interrupted}
	took += report.TextIf(slices.Contains(canGrow, s.Status), " so far")
	if s.Left > 0 {
		took = "about " + brief(s.Left) + " left, " + took
	}
	// The share is one of time, not of case-rounds, as these may differ much.
	head := fmt.Sprintf("%d of %d case-rounds  ", p.CaseRound, p.OfRounds)
	share := min(float64(p.WorkNS+p.WaitedNS)/float64(max(p.OfWorkNS+p.OfWaitNS, 1)), 1)
	tail := cut(fmt.Sprintf(" %3.0f %%  %s", 100*share, took), c.width-report.Width(head))
	room := c.width - report.Width(head+tail)
	done := int(share * float64(room))
	c.line(head, c.busy.Render(strings.Repeat("━", done)), c.muted.Render(strings.Repeat("─", room-done)), tail)
	c.line(c.busy.Render(cell(s.now(), c.width)))
	c.line(report.TextIf(s.Advice != "", text.Wrap("", report.Plain(s.Advice, 1000), 2, c.width)+"\n"))
}

// now is what happens now; waits are counted down.
func (s Screen) now() string {
	name := ""
	for _, row := range s.Cases {
		if row.Current {
			name = row.Name + ": "
		}
	}
	switch {
	case s.Status == result.Paused || s.Status == result.Interrupted:
		return "no step is executed"
	case s.Status != running:
		return "the run has ended"
	case s.Step == "":
		return name + "preparing"
	case s.For < s.Wait: // rounded up, so that it never shows a wait of 0s
		return name + s.Step + ", " + brief(s.Wait-s.For+time.Second-1) + " of " + brief(s.Wait) + " to wait"
	}
	return name + s.Step + ", for " + brief(s.For)
}

// brief is a duration in seconds, from an hour on in minutes.
func brief(d time.Duration) string {
	precision := time.Second
	if d >= time.Hour {
		precision = time.Minute
	}
	return strings.Replace(d.Truncate(precision).String(), "m0s", "m", 1)
}

// style is the style of a status of runs and rounds.
func (s Screen) style(p palette, status string) lipgloss.Style {
	switch status {
	case result.Done:
		return p.good
	case result.Failed, result.Discarded, result.Interrupted:
		return p.bad
	case running:
		return p.busy
	}
	return p.muted
}

// visibleRows is the number of the first case that is drawn, and how many are: at
// most n, from the one at top or around the current one.
func (s Screen) visibleRows(top, n int) (first, count int) {
	n = min(max(n, 1), len(s.Cases))
	if top < 0 {
		for i := range s.Cases {
			if s.Cases[i].Current {
				top = i - n/2
			}
		}
	}
	return min(max(top, 0), len(s.Cases)-n), n
}

// intervals describes the intervals of a quantity, in lines of at most width
// columns. It is about all cases, so that scrolling does not move the rows.
func (s Screen) intervals(q Quantity, width int) []string {
	var methods []string
	for _, row := range s.Cases {
		if sum := row.Figures[q]; sum != nil && report.Headline(sum).CI != nil {
			methods = report.AppendNew(methods, report.DescribeInterval(report.Headline(sum).CI))
		}
	}
	if len(methods) == 0 {
		return nil
	}
	return strings.Split(text.Wrap("", "intervals: "+strings.Join(methods, "; "), 2, width), "\n")
}

// marks are the signs of the rounds of a case.
var marks = map[string]string{result.Done: "■", running: "▶", result.Failed: "×", result.Discarded: "×",
	result.Skipped: "–", "": "·"}

// help explains keys and marks.
const help = "q quit  ←→ figure  ↑↓ cases  r replay  ■ done ▶ now × failed – skipped · to do"

// drawCases draws the matrix of n cases and their rounds, and a quantity: its
// value so far with its interval, the rates of single files, and sizes on disk.
func (s Screen) drawCases(c *canvas, first, n int, q Quantity) {
	rows, title := s.Cases[first:first+n], "case"
	if n < len(s.Cases) { // otherwise nobody would know of the others
		title = fmt.Sprintf("cases %d–%d of %d", first+1, first+n, len(s.Cases))
	}
	most := 0
	for _, row := range rows {
		most = max(most, len(row.Rounds))
	}
	// Figures have fixed columns, so that they do not move while the run is executed;
	// names and lines of values share the rest. Intervals below zero are the longest:
	// -41.1 to 1590.
	const value, interval, size, gaps = 9, 13, 7, 10
	rounds := min(max(most, len("rounds")), c.width/8)
	roundsTitle := "rounds"
	if rounds < most {
		roundsTitle = fmt.Sprintf("%d of %d", rounds, most)
	}
	rest := c.width - rounds - value - interval - size - gaps
	spark, steps := rest/5, rest/8
	name := rest - spark - steps
	figure := report.FirstOf(report.Plain(strings.ReplaceAll(q.Op, "_", " ")+" "+q.Phase, 80), "no figure yet")
	head := []string{cell(title, name), cell(roundsTitle, rounds), left(figure, value+1+interval), cell("files", spark),
		left("on disk", size)}
	c.line(c.muted.Render(strings.Join(head, "  ")))
	for _, row := range rows {
		label := row.Name
		if report.Width(label) > name { // the types of formats are enough
			label = formatName.ReplaceAllString(label, "$1")
		}
		label = cell(label, name)
		if row.Current {
			label = c.busy.Render(label)
		}
		var figure report.FigureText
		if sum := row.Figures[q]; sum != nil {
			h := report.Headline(sum)
			figure = report.TextOf(sum, report.ScaleOf(h.Unit, h.Value))
		}
		onDisk := ""
		if n := len(row.Sizes); n > 0 {
			onDisk = report.Human(row.Sizes[n-1], "B")
		}
		c.line(strings.Join([]string{label, s.drawRounds(c, row.Rounds, rounds),
			left(figure.Value, value) + " " + c.muted.Render(left(figure.Interval, interval)),
			c.good.Render(sparkline(row.Rates[q], spark)),
			left(onDisk, size) + " " + c.good.Render(sparkline(row.Sizes, steps))}, "  "))
	}
}

// drawRounds draws a mark for each round. Without room for all it omits the
// first ones that have ended, then the last ones.
func (s Screen) drawRounds(c *canvas, rounds []string, width int) string {
	ended := 0
	for ended < len(rounds) && rounds[ended] != "" {
		ended++
	}
	first := max(min(ended, len(rounds))-width, 0)
	out := ""
	for _, status := range rounds[first:min(first+width, len(rounds))] {
		out += s.style(c.palette, status).Render(marks[status])
	}
	return out + strings.Repeat(" ", max(width-len(rounds), 0))
}

// sparkline draws values in at most width columns: each is the mean of a part
// of them.
func sparkline(values []float64, width int) string {
	n := min(len(values), width)
	means := make([]float64, n)
	for i := range means {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		for _, v := range part {
			means[i] += v / float64(len(part))
		}
	}
	return text.Spark(means) + strings.Repeat(" ", width-n)
}

// formatName is the name of a format with its type: sparse bundle (UDSB).
var formatName = regexp.MustCompile(`[^·() ][^·()]*\(([A-Z]+)\)`)

// cell cuts or pads text to a width, left the same with the text on the right
// side.
func cell(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", max(width-report.Width(s), 0))
}

func left(s string, width int) string { return fmt.Sprintf("%*s", width, cut(s, width)) }

// cut shortens text to a width; an ellipsis marks what was removed.
func cut(s string, width int) string {
	if report.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && report.Width(string(runes)) > width-1 {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}
