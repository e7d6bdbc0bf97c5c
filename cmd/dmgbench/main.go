// Command dmgbench executes disk image benchmark plans.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"dmgbench/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal the default comes back, so that a second one ends
	// the program at once.
	context.AfterFunc(ctx, stop)
	code := cli.Main(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:], os.Environ())
	stop()
	os.Exit(code)
}
