package hdiutil

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/linuxhdiutil/attach"
)

var _ engine.Killer = (*attachment)(nil)

// servers are parts of the command lines of processes that serve images: the
// helper of dmgbench, and those of DiskImages.framework and DiskImages2.
var servers = []string{attach.HelperVerb, "diskimages-helper", "diskimagesiod"}

// findServer finds the process that serves the image, as the tool lists it, and
// checks that it is such a process and that this user may kill it.
func (a *attachment) findServer(ctx context.Context) error {
	at, _, err := a.c.findAttached(ctx, &a.report, a.disk)
	if err != nil {
		return err
	}
	line := a.c.e.host.CommandLine(ctx, at.Server)
	isServer := slices.ContainsFunc(servers, func(name string) bool { return strings.Contains(line, name) })
	if !isServer || at.Server <= 1 || syscall.Kill(at.Server, 0) != nil {
		return a.c.e.refuse(a.c.backend, "killing what serves "+a.c.format.Name+" images",
			"the list of attached images names no process of this user that serves it")
	}
	a.server = at.Server
	return nil
}

// Kill ends the process that serves the image.
func (a *attachment) Kill() error {
	if err := syscall.Kill(a.server, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing the process that serves %q: %w", a.c.File, err)
	}
	return nil
}
