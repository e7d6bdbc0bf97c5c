package watch

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	// poll is how often the journal is looked at, which is one system call where
	// there is no new record, and the clock on the screen moves.
	poll = time.Second

	// redraws is the number of times a second that the library looks for a screen
	// to draw. It is low, as the processor belongs to the run.
	redraws = 8

	// replayFrames is the number of screens of a replay.
	replayFrames = 60
)

// program is the run on a terminal, as bubbletea calls it.
type program struct {
	run    *Run
	layout Layout
	replay bool
	err    error
}

// tick is the message of the clock. It has no time: the clock of the run counts,
// which tests replace.
type tick struct{}

// Follow shows the run on a terminal until the user quits or ctx is done. env is
// in the form of os.Environ and describes the terminal.
func (r *Run) Follow(ctx context.Context, in io.Reader, out io.Writer, env []string, theme Theme) error {
	// Signals cancel ctx, as they do for every command; the library restores the
	// terminal then. It reads no variable but those that are given to it.
	p := &program{run: r, layout: Layout{Width: 80, Height: 24, Theme: theme, Top: -1}}
	_, err := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(env),
		tea.WithFPS(redraws), tea.WithoutSignalHandler()).Run()
	if p.err != nil || ctx.Err() != nil { // the library reports a cancelled ctx as an error
		return p.err
	}
	return err
}

// Init starts the clock, and asks the terminal for the colour of its background.
func (p *program) Init() tea.Cmd { return tea.Batch(p.wait(), tea.RequestBackgroundColor) }

// wait is the next tick of the clock.
func (p *program) wait() tea.Cmd {
	pause := poll
	if p.replay {
		pause /= 4 // a replay takes a quarter of a minute
	}
	return tea.Tick(pause, func(time.Time) tea.Msg { return tick{} })
}

// Update changes what is shown after a message of the terminal or the clock.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.layout.Width, p.layout.Height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		switch { // without colours it stays so
		case p.layout.Theme != Plain && msg.IsDark():
			p.layout.Theme = Dark
		case p.layout.Theme != Plain:
			p.layout.Theme = Light
		}
	case tea.KeyPressMsg:
		return p, p.press(msg.String())
	case tick:
		if p.err = p.advance(); p.err != nil {
			return p, tea.Quit
		}
		return p, p.wait()
	}
	return p, nil
}

// advance shows new records, or the next ones of a replay.
func (p *program) advance() error {
	records := len(p.run.follower.Records())
	if !p.replay {
		return p.run.Poll()
	}
	next := min(p.run.shown+1+records/replayFrames, records)
	p.replay = next < records
	return p.run.show(next)
}

// press is what a key does.
func (p *program) press(key string) tea.Cmd {
	switch key {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "ctrl+z": // the terminal gives the key to us, not to the shell
		return tea.Suspend
	case "right":
		p.layout.Quantity++
	case "left":
		p.layout.Quantity--
	case "down":
		p.layout.Top = min(max(p.layout.Top, 0)+1, len(p.run.screen.Cases)-1)
	case "up":
		p.layout.Top = max(p.layout.Top-1, -1)
	case "r":
		first := 1
		if p.replay = !p.replay; !p.replay {
			first = len(p.run.follower.Records())
		}
		p.err = p.run.show(first)
	}
	return nil
}

// View draws the screen. A replay shows the time of its last record.
func (p *program) View() tea.View {
	at := p.run.now()
	if p.replay {
		at = p.run.lastTime()
	}
	s := p.run.Screen(at)
	s.Replay = p.replay
	v := tea.NewView(s.Draw(p.layout))
	v.AltScreen = true
	return v
}
