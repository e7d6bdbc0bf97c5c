package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagRow declares one flag, in a line of the section FLAGS of a help text: its
// name, its type with the default, the rule for its values, and its help, in
// which the word in backquotes names the value:
//
//	engine text="auto" [auto|hdiutil]: `engine` that makes the images
//
// Its setting is <command>.<name>, its environment variable
// DMGBENCH_<COMMAND>_<NAME>. Values from all three sources are checked alike.
type flagRow struct {
	name, kind, initial, help string
	values                    []string // completions
	oneOf                     bool     // no other values
	positive                  bool     // a number greater than 0
}

// flagLine has the fields of a flagRow: in brackets are the values that a flag
// accepts, in parentheses suggestions.
var flagLine = regexp.MustCompile(`^([a-z-]+) ([a-z0-9]+)(?:="(.*?)")?(?: \[(.*?)\]| \((.*?)\)| (>0))?: (.*)$`)

// parseFlag reads the declaration of a flag. A line of another form is a
// programming error, and panics.
func parseFlag(line string) flagRow {
	m := flagLine.FindStringSubmatch(line)
	if m == nil {
		panic("no flag in a help text: " + line)
	}
	row := flagRow{name: m[1], kind: m[2], initial: m[3], help: m[7], oneOf: m[4] != "", positive: m[6] != ""}
	if values := m[4] + m[5]; values != "" {
		row.values = strings.Split(values, "|")
	}
	return row
}

// add declares a flag in cobra, with the completions of its values.
func (row flagRow) add(cmd *cobra.Command) {
	f := cmd.Flags()
	switch row.kind {
	case "text":
		f.String(row.name, row.initial, row.help)
	case "bool":
		f.Bool(row.name, false, row.help)
	case "int":
		f.Int(row.name, 0, row.help)
	case "uint64":
		n, _ := strconv.ParseUint(row.initial, 10, 64) // in a file of this package
		f.Uint64(row.name, n, row.help)
	case "float64":
		f.Float64(row.name, 0, row.help)
	case "list": // may be given several times
		f.StringArray(row.name, nil, row.help)
	case "commas": // values separated by commas
		f.StringSlice(row.name, nil, row.help)
	}
	// Files do not complete these flags; flags without values complete to
	// files.
	complete := cobra.FixedCompletions(row.values, cobra.ShellCompDirectiveNoFileComp)
	if row.name == "only" {
		complete = completeOnly
	} else if row.values == nil {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(row.name, complete); err != nil {
		panic(err) // the flag was declared above
	}
}

// checkValue checks the value that a flag was given against its row. Empty
// values pass: they are the way to undo a setting of the settings file on the
// command line. What needs a plan or a unit is checked where the value is used.
func (row flagRow) checkValue(f *pflag.Flag) error {
	given := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		given = list.GetSlice()
	}
	for _, value := range given {
		var number float64
		switch {
		case value == "":
		case row.oneOf && !slices.Contains(row.values, value):
			return usageError("", "reading --%s: %q is not one of %s", row.name, value, strings.Join(row.values, ", "))
		case row.positive:
			if _, err := fmt.Sscan(value, &number); err != nil || !(number > 0) { // NaN is not
				return usageError("", "reading --%s: %s is not greater than 0", row.name, value)
			}
		}
	}
	return nil
}

// flag is a flag of the executed command. An unknown name is a programming error,
// and panics.
func (a *app) flag(name string) *pflag.Flag {
	f := a.command.Flags().Lookup(name)
	if f == nil {
		panic("no flag --" + name + " of " + a.command.CommandPath())
	}
	return f
}

// text is the value of a flag of any type in the form that the user types; ""
// is also the value of text flags that were not given.
func (a *app) text(name string) string { return a.flag(name).Value.String() }

// isSet reports whether a flag without a value was given.
func (a *app) isSet(name string) bool { return a.text(name) == "true" }

// isGiven reports whether a flag got a value from the command line, the
// environment or the settings file, even one that equals its default.
func (a *app) isGiven(name string) bool { return a.flag(name).Changed }

// list is the value of a flag that takes several values, in the order of the
// command line.
func (a *app) list(name string) []string { return a.flag(name).Value.(pflag.SliceValue).GetSlice() }

// number is the value of a flag that takes an integer, 0 if it was not given
// and has no default.
func (a *app) number(name string) int {
	n, err := a.command.Flags().GetInt(name)
	if err != nil {
		panic(err)
	}
	return n
}
