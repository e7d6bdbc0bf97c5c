package cli

import (
	"context"
	"io"
	"slices"

	"dmgbench/internal/imagetool"
)

const imageToolName = "hdiutil"

// isImageTool reports whether a command line is for hdiutil for Linux, whose grammar cobra cannot parse; a request
// for this program's own help is not.
func isImageTool(args []string) bool {
	if len(args) == 0 {
		return false
	}
	help := len(args) == 2 && slices.Contains([]string{"--help", "-h"}, args[1])
	return args[0] == imagetool.HelperVerb || args[0] == imageToolName && !help
}

// runImageTool executes one command line of hdiutil for Linux.
func runImageTool(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	if args[0] == imageToolName {
		args = args[1:]
	}
	defer imagetool.OutlivePipes()()
	env := imagetool.System()
	env.Stdin, env.Stdout, env.Stderr = stdin, stdout, stderr
	return imagetool.Main(ctx, args, env)
}

// helpImageTool is the command "hdiutil" as cobra sees it: [Main] executes all others.
func (a *app) helpImageTool(context.Context, []string) error { return a.command.Help() }
