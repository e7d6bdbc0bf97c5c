package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/safetext"
	"dmgbench/internal/watch"
)

// watchRun is the command "watch". Without a terminal it prints one screen. It
// uses one processor at a time, as the others are the run's.
func (a *app) watchRun(ctx context.Context, args []string) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dir := newestRun(args)
	if a.isSet("serve") {
		return watch.Serve(ctx, dir, a.clock.Wall, func(url string) error { return a.print("%s", url) })
	}
	run, err := watch.Open(dir, a.clock.Wall)
	if err != nil {
		return err
	}
	defer run.Close()
	theme := watch.Plain
	if a.usesColor() {
		theme = watch.Dark // until the terminal reports its background
	}
	// Terminals that do not report it may set this: foreground;background, where 7
	// and 15 are light.
	if c := a.env["COLORFGBG"]; theme == watch.Dark && (strings.HasSuffix(c, ";7") || strings.HasSuffix(c, ";15")) {
		theme = watch.Light
	}
	_, in := terminal(a.stdin)
	if _, out := terminal(a.stdout); in && out && a.env["TERM"] != "dumb" {
		env := []string{"TERM=" + a.env["TERM"], "COLORTERM=" + a.env["COLORTERM"], "TMUX=" + a.env["TMUX"]}
		return run.Follow(ctx, a.stdin, a.stdout, env, theme)
	}
	screen := run.Screen(a.clock.Wall()).Draw(watch.Layout{Width: 80, Theme: theme})
	_, err = io.WriteString(a.stdout, safetext.BreakCommands(screen))
	return err
}

// newestRun is the run folder whose journal was written last: of those that are
// given, or are in folders that are, without one in "runs".
func newestRun(args []string) string {
	if len(args) == 0 {
		args = []string{"runs"}
	}
	written := func(dir string) time.Time {
		fi, err := os.Stat(filepath.Join(dir, result.JournalFile))
		if err != nil {
			return time.Time{} // opening it reports why, if there is no other
		}
		return fi.ModTime()
	}
	dirs := report.FlatMap(args, func(arg string) []string { return runfolders.Folders(runFolder(arg)) })
	return slices.MaxFunc(dirs, func(a, b string) int { return written(a).Compare(written(b)) })
}
