package cli

import (
	"context"
	"io"
	"slices"

	"dmgbench/internal/imagetool"

	"github.com/spf13/cobra"
)

const imageToolName = "hdiutil"

// imageTool says whether a command line is for the work-alike of hdiutil, whose
// grammar cobra cannot read: all but a plain request for this program's own help.
func imageTool(args []string) bool {
	switch {
	case len(args) == 0:
		return false
	case args[0] == imagetool.HelperVerb:
		return true
	}
	return args[0] == imageToolName && !(len(args) == 2 && slices.Contains([]string{"--help", "-h"}, args[1]))
}

// runImageTool executes one command line of the work-alike.
func runImageTool(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	if args[0] == imageToolName {
		args = args[1:]
	}
	defer imagetool.OutlivePipes()()
	env := imagetool.System()
	env.Stdin, env.Stdout, env.Stderr = stdin, stdout, stderr
	return imagetool.Main(ctx, args, env)
}

// newImageToolCommand lists the work-alike in the help. It is not executed: Main sees to that before.
func (a *app) newImageToolCommand() *cobra.Command {
	return &cobra.Command{
		Use: imageToolName + " VERB", GroupID: "maintain", DisableFlagParsing: true,
		Short: "make, attach and change disk images with Apple's grammar",
		Long: `Make, attach and change disk images: an hdiutil for Linux, with the verbs,
options, messages, property lists and exit statuses of Apple's, and the image
verbs of diskutil. "dmgbench hdiutil help" lists the verbs, "dmgbench hdiutil
help VERB" explains one, "dmgbench hdiutil man" is its manual page. The program
hdiutil, which can be built beside this one, is the same.

EXIT STATUS
  0    done
  1    not done, or not understood
  16   the volume to be detached is busy
  35   the image to be resized is in use
  130  interrupted
  141  done, and nobody read the output to its end`,
		Example: "  dmgbench hdiutil create -size 100m -volname Test test.dmg\n  dmgbench hdiutil attach test.dmg\n  dmgbench hdiutil diskutil image info test.dmg",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}
