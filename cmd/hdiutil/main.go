// Command hdiutil makes, attaches and changes disk images, with the grammar of
// Apple's hdiutil. Called diskutil, it is the part of that tool that knows
// images.
package main

import (
	"context"
	"os"
	"path/filepath"

	"dmgbench/internal/linuxhdiutil/imagetool"
	"dmgbench/internal/system/signals"
)

func main() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "diskutil" {
		args = append([]string{"diskutil"}, args...)
	}
	ctx, stop := signals.Context(context.Background())
	imagetool.OutlivePipes()
	code := imagetool.Main(ctx, args, imagetool.System())
	stop()
	os.Exit(code)
}
