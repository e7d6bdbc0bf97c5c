// Command hdiutil makes, attaches and changes disk images, with the grammar of
// Apple's hdiutil. Called diskutil, it is the part of that tool that knows
// images.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"dmgbench/internal/linuxhdiutil/imagetool"
)

func main() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "diskutil" {
		args = append([]string{"diskutil"}, args...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal the default comes back, so that a second one ends
	// the program at once.
	context.AfterFunc(ctx, stop)
	imagetool.OutlivePipes()
	code := imagetool.Main(ctx, args, imagetool.System())
	stop()
	os.Exit(code)
}
