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

// spoken makes cobra speak like the rest: help of 80 columns, and errors of the
// form that all errors here have.
func spoken(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetFlagErrorFunc(flagError)
	root.DisableSuggestions = true // they come as hints
}

// notUnderstood is the error of a command line that no command was begun for.
func notUnderstood(root *cobra.Command, args []string, err error) error {
	if _, ok := errors.AsType[*usageError](err); ok {
		return err
	}
	e := &usageError{err: err}
	if len(args) > 0 && strings.HasPrefix(err.Error(), "unknown command") {
		e.err = fmt.Errorf("unknown command %q", args[0])
		e.hint = "dmgbench --help lists the commands"
		if near := nearestCommand(root, args[0]); near != "" {
			e.hint = "did you mean " + near + "?"
		}
	}
	return e
}

// saysJSON reports whether a command line that could not be read wants its errors as lines of JSON:
// the flag may stand behind the one that is wrong.
func saysJSON(cmd *cobra.Command, args []string) bool {
	if cmd.Name() != "run" && cmd.Name() != "resume" {
		return false
	}
	i := slices.Index(args, "--format")
	return slices.Contains(args, "--format=json") || i >= 0 && i+1 < len(args) && args[i+1] == "json"
}

// nearestCommand is the command below cmd that word was probably meant to be, or "".
func nearestCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return plan.Nearest(word, names)
}

// refuseUnknown makes an error of what cobra's own commands print their help for, with status 0.
func refuseUnknown(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				if err != nil {
					err = notUnderstood(root, args, err)
				}
				return err
			}
		case "completion":
			for _, shell := range c.Commands() {
				shell.Args, shell.Example = between(0, 0, ""), "  source <(dmgbench completion bash)"
			}
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) == 0 {
					return c.Help()
				}
				return &usageError{err: fmt.Errorf("writing completions for %q: want bash, zsh, fish or powershell", args[0])}
			}
		}
	}
}

// flagError says what is wrong with a flag, without the words of a library.
func flagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("%s --help lists the flags", cmd.CommandPath())
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := plan.Nearest(e.GetSpecifiedName(), names); near != "" {
			help = "did you mean --" + near + "?"
		} else if near := nearestCommand(cmd, e.GetSpecifiedName()); near != "" {
			help = "did you mean " + cmd.CommandPath() + " " + near + "?"
		}
		return &usageError{err: errors.New(err.Error()), hint: help}
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return &usageError{err: fmt.Errorf("reading --%s: %w", e.GetFlag().Name, wrongValue(e.GetFlag(), e.GetValue(), err)), hint: help}
	}
	return &usageError{err: err, hint: help}
}

// wrongValue says what the flag takes instead; err is what to say where that is not known.
func wrongValue(f *pflag.Flag, value string, err error) error {
	kinds := map[string]string{"int": "a whole number", "float64": "a number", "bool": "true or false"}
	if kind := kinds[f.Value.Type()]; kind != "" {
		return fmt.Errorf("%q is not %s", value, kind)
	}
	return err
}

// between wants least to most arguments, of which names says what they are; most
// below 0 is any number.
func between(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		doing := "reading the arguments of " + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		hint := "for example:" + strings.TrimPrefix(firstLine(cmd.Example), " ")
		switch {
		case len(args) < least:
			return &usageError{err: fmt.Errorf("%s: %s is missing", doing, names), hint: hint}
		case most >= 0 && len(args) > most:
			if cmd.HasAvailableSubCommands() {
				hint = cmd.CommandPath() + " --help lists its commands"
				if near := nearestCommand(cmd, args[most]); near != "" {
					hint = "did you mean " + cmd.CommandPath() + " " + near + "?"
				}
			}
			return &usageError{err: fmt.Errorf("%s: %q is one too many", doing, args[most]), hint: hint}
		}
		return nil
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
