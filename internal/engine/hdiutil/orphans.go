package hdiutil

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"dmgbench/internal/attach"
)

// How long tools that a killed run had started are waited for, and how often they are looked for.
const (
	orphanTime = time.Minute
	orphanPoll = 50 * time.Millisecond
)

// awaitTools waits until no tool works below the folder any more: one that a run had
// started runs on when the run is killed, and would attach an image behind our back.
// The processes that serve images are none: they end when their image is detached.
// The folder may have several names: command lines have the one that the run was given.
func (e *Engine) awaitTools(ctx context.Context, folder ...string) error {
	if e.host.CommandLines == nil {
		return nil
	}
	c := e.d.clock
	for until := c.Now() + orphanTime; c.Now() < until && working(e.host.CommandLines(ctx), folder...); {
		if err := c.Sleep(ctx, orphanPoll); err != nil {
			return err
		}
	}
	return nil
}

// working says whether one of the command lines, arguments ended by zero bytes or
// blanks, is that of a tool at work on something below the folder, by any of its names.
func working(lines []string, folder ...string) bool {
	for _, line := range lines {
		tool := strings.Contains(line, "hdiutil") || strings.Contains(line, "diskutil")
		there := slices.ContainsFunc(folder, func(name string) bool { return strings.Contains(line, name+"/") })
		if tool && there && !strings.Contains(line, attach.HelperVerb) {
			return true
		}
	}
	return false
}

// linesBut are the command lines in a list of processes, each line a number and a command line, without that of one process.
func linesBut(pid int, list string) (lines []string) {
	for line := range strings.Lines(list) {
		number, command, ok := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(number); ok && err == nil && n != pid {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}
