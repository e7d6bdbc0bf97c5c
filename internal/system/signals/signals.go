// Package signals turns the signals that end a program into a context.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that the first SIGINT, SIGTERM or SIGHUP cancels.
// After it the default comes back, so that a second signal ends the program at
// once. SIGHUP and SIGINT stay ignored if they were when the program started, as
// nohup and trap ” arrange; of SIGTERM Go cannot tell.
func Context(parent context.Context) (context.Context, context.CancelFunc) {
	var end []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			end = append(end, s)
		}
	}
	if len(end) == 0 { // NotifyContext would take every signal
		return context.WithCancel(parent)
	}
	ctx, stop := signal.NotifyContext(parent, end...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
