package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandLineError turns an error of cobra, before any command was executed,
// into one of this program with a hint. Unknown commands get the most similar
// name as their hint.
func commandLineError(root *cobra.Command, args []string, err error) error {
	if is[*hintedError](err) {
		return err
	}
	if len(args) == 0 || !strings.HasPrefix(err.Error(), "unknown command") {
		return usageError("", "%w", err)
	}
	hint := "dmgbench --help lists the commands"
	if near := nearestCommand(root, args[0]); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usageError(hint, "unknown command %q", args[0])
}

// requestsJSON reports whether an invalid command line asks for errors as JSON:
// cobra stops at the first bad flag, so --format may not have been parsed yet.
func requestsJSON(cmd *cobra.Command, args []string) bool {
	if cmd.Name() != "run" && cmd.Name() != "resume" {
		return false
	}
	i := slices.Index(args, "--format")
	return slices.Contains(args, "--format=json") || i >= 0 && i+1 < len(args) && args[i+1] == "json"
}

// nearestCommand is the subcommand of cmd with the name that is most like word,
// or "".
func nearestCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return plan.Nearest(word, names)
}

// refuseUnknownOperands makes usage errors of operands for which cobra's own
// commands print their help and exit with 0: "help" with an unknown command,
// and "completion" with an unknown shell.
func refuseUnknownOperands(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				if err != nil {
					err = commandLineError(root, args, err)
				}
				return err
			}
		case "completion":
			for _, shell := range c.Commands() {
				shell.Args, shell.Example = commandRow{}.checkArgs, "  source <(dmgbench completion bash)"
			}
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) == 0 {
					return c.Help()
				}
				return usageError("", "writing completions for %q: want bash, zsh, fish or powershell", args[0])
			}
		}
	}
}

// flagError rewords errors of pflag and adds the name that was probably meant:
// of a flag, else of a subcommand, as in dmgbench --version.
func flagError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("%s --help lists the flags", cmd.CommandPath())
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := plan.Nearest(e.GetSpecifiedName(), names); near != "" {
			hint = "did you mean --" + near + "?"
		} else if near := nearestCommand(cmd, e.GetSpecifiedName()); near != "" {
			hint = "did you mean " + cmd.CommandPath() + " " + near + "?"
		}
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usageError(hint, "reading --%s: %w", e.GetFlag().Name, wrongValue(e.GetFlag(), e.GetValue(), err))
	}
	return usageError(hint, "%s", err)
}

// wrongValue names the type of value that a flag takes instead of the error of
// strconv; err is the error where the type has no such name.
func wrongValue(f *pflag.Flag, value string, err error) error {
	types := map[string]string{"int": "a whole number", "uint64": "a whole number", "float64": "a number",
		"bool": "true or false"}
	if name := types[f.Value.Type()]; name != "" {
		return fmt.Errorf("%q is not %s", value, name)
	}
	return err
}

// checkArgs checks the number of arguments of a command. It is used instead of
// the checks of cobra: their messages name neither argument nor example.
func (row commandRow) checkArgs(cmd *cobra.Command, args []string) error {
	example, _, _ := strings.Cut(cmd.Example, "\n")
	hint, name := "for example:"+strings.TrimPrefix(example, " "), commandPath(cmd)
	switch {
	case len(args) < row.min:
		missing, _, _ := strings.Cut(row.args, " ")
		return usageError(hint, "reading the arguments of %s: %s is missing", name, strings.TrimSuffix(missing, "..."))
	case row.max == unlimited || len(args) <= row.max:
		return nil
	}
	if near := nearestCommand(cmd, args[row.max]); near != "" {
		hint = "did you mean " + cmd.CommandPath() + " " + near + "?"
	} else if cmd.HasAvailableSubCommands() {
		hint = cmd.CommandPath() + " --help lists its commands"
	}
	return usageError(hint, "reading the arguments of %s: %q is one too many", name, args[row.max])
}
