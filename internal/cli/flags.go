package cli

import (
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
	"dmgbench/internal/result/export"
	"dmgbench/internal/selftest"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagRow declares one flag. Its setting is <command>.<name>, its environment
// variable DMGBENCH_<COMMAND>_<NAME>, and its help is in the text of the
// command, see [helpText]. Values from all three sources are checked alike. A
// new flag needs a row here and a line of help.
type flagRow struct {
	commands string // that have it, with commas
	name     string
	initial  any // the default; its type is the type of the flag
	values   []string
	check    check
}

// check is the rule for the values of a flag that is checked before the command
// is executed. Rules that need a plan or a unit are checked where the value is
// used.
type check int

const (
	free     check = iota // values are suggestions for completion
	oneOf                 // one of values
	positive              // a number greater than 0
)

// The types of flags that take several values are types of their own, so that
// the default in a row determines the type of the flag.
//
// repeated is the type of flags that may be given several times, commas the
// type of flags with a list of values separated by commas.
type (
	repeated []string
	commas   []string
)

// engineNames are the values of --engine of run and resume. Results record the
// last two; auto is a request only.
var engineNames = []string{"auto", "hdiutil", "inprocess"}

// defaultPause is long enough that a resumed session after it counts as a
// session of its own, too.
const defaultPause = "10 min"

// flagRows lists every flag of every command. The order is that of the text of
// the commands; the help sorts flags by name.
var flagRows = []flagRow{
	{"run,resume", "engine", "auto", engineNames, oneOf},
	{"run,resume", "on", repeated{}, nil, free},
	{"run,resume", "input", repeated{}, nil, free},
	{"run,resume", "keep", false, nil, free},
	{"run,resume", "format", "text", []string{"text", "json"}, oneOf},
	{"run,resume,report", "verbose", false, nil, free},
	{"run", "out", "", nil, free},
	{"run", "sets", 0, nil, positive},
	{"run", "scale", 0., nil, positive},
	{"run", "rounds", "", nil, free},
	{"run", "precision", "", nil, free},
	{"run", "max-rounds", 0, nil, positive},
	{"run", "precondition", "", nil, free},
	{"run", "max-time", "", nil, free},
	{"run", "max-written", "", nil, free},
	{"run", "seed", "", nil, free},
	{"run", "workers", 0, nil, positive},
	{"run", "sessions", 0, nil, positive},
	{"run", "pause", "", nil, free},
	{"run", "only", "", nil, free},
	{"run", "fs", "", nil, free},
	{"run", "dry-run", false, nil, free},
	{"run", "identify", false, nil, free},
	{"run", "yes", false, nil, free},

	{"resume", "retry-failed", false, nil, free},

	{"report", "format", "text", []string{"text", "markdown", "html"}, oneOf},
	{"report", "out", "", nil, free},
	{"report", "svg", "", nil, free},
	{"report", "tables", "", nil, free},
	{"report", "methods", false, nil, free},
	{"report", "ledger", "", nil, free},

	{"compare", "baseline", "", nil, free},
	{"compare", "against", "", nil, free},
	{"compare", "strict", false, nil, free},
	{"compare", "by", commas{}, analysis.CompareFacts, free},
	{"compare", "op", commas{}, append([]string{"all"}, analysis.CompareOps()...), oneOf},
	{"compare", "threshold", "5%", nil, free},
	{"compare", "estimator", "", analysis.Estimators(), oneOf},
	{"compare", "format", "text", []string{"text", "markdown", "json", "html", "junit", "summary"}, oneOf},

	{"history,history prune", "plan", commas{}, nil, free},
	{"history", "engine", commas{}, []string{"hdiutil", "inprocess", "directory", "simulated"}, free},
	{"history", "status", commas{}, []string{result.Done, result.Failed, result.Skipped, result.Unfinished}, oneOf},
	{"history", "since", "", nil, free},
	{"history", "format", "text", []string{"text", "json", "csv", "trends", "markdown", "html"}, oneOf},
	{"history baseline", "clear", false, nil, free},
	{"history prune", "keep", 0, nil, free},
	{"history prune", "yes", false, nil, free},

	{"export", "format", "csv", export.Formats, oneOf},
	{"export", "table", "", export.Tables, oneOf},

	{"doctor", "on", repeated{}, nil, free},
	{"doctor", "capture", "", nil, free},
	{"doctor", "identify", false, nil, free},

	{"selftest", "format", "text", []string{"text", "json"}, oneOf},
	{"selftest", "seed", uint64(1), nil, free},
	{"selftest", "study", repeated{}, selftest.IDs(), oneOf},

	{"plans show", "toml", false, nil, free},
	{"plans new", "title", "My plan", nil, free},
	{"plans new", "format", "UDRW,UDSB", nil, free},
	{"plans new", "encryption", "none", nil, free},
	{"plans new", "filesystem", "APFS,ext4,exFAT", nil, free},
	{"plans new", "size", "500 MB", nil, free},
	{"plans new", "files", "1 MB,2 MB,4 MB,8 MB,16 MB", nil, free},
	{"plans new", "sets", "3", nil, free},
	{"plans new", "rounds", "3", nil, free},
}

// flagsOf are the rows of a command, by its path such as "history prune".
func flagsOf(path string) (rows []flagRow) {
	for _, row := range flagRows {
		if slices.Contains(strings.Split(row.commands, ","), path) {
			rows = append(rows, row)
		}
	}
	return rows
}

// addFlags declares the flags of a command in cobra, with the completions of
// their values. help has the texts by name.
func addFlags(cmd *cobra.Command, path string, help map[string]string) {
	f := cmd.Flags()
	for _, row := range flagsOf(path) {
		help := help[row.name]
		switch initial := row.initial.(type) {
		case string:
			f.String(row.name, initial, help)
		case bool:
			f.Bool(row.name, initial, help)
		case int:
			f.Int(row.name, initial, help)
		case uint64:
			f.Uint64(row.name, initial, help)
		case float64:
			f.Float64(row.name, initial, help)
		case repeated:
			f.StringArray(row.name, nil, help)
		case commas:
			f.StringSlice(row.name, nil, help)
		}
		// Files do not complete these flags; flags without values complete to
		// files.
		complete := cobra.FixedCompletions(row.values, cobra.ShellCompDirectiveNoFileComp)
		if row.name == "only" {
			complete = completeOnly
		} else if row.values == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(row.name, complete); err != nil {
			panic(err) // the flag was declared above
		}
	}
}

// checkValue checks the value that a flag was given against its row. Empty
// values pass: they are the way to undo a setting of the settings file on the
// command line.
func (row flagRow) checkValue(f *pflag.Flag) error {
	given := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		given = list.GetSlice()
	}
	for _, value := range given {
		switch {
		case value == "":
		case row.check == oneOf && !slices.Contains(row.values, value):
			return usageError("", "reading --%s: %q is not one of %s", row.name, value, strings.Join(row.values, ", "))
		case row.check == positive && !isPositive(value):
			return usageError("", "reading --%s: %s is not greater than 0", row.name, value)
		}
	}
	return nil
}

// isPositive reports whether a number, as pflag prints it, is greater than 0.
// NaN is not.
func isPositive(number string) bool {
	var v float64
	_, err := fmt.Sscan(number, &v)
	return err == nil && v > 0
}

// flag is a flag of the executed command. A name that is not in flagRows is a
// programming error, and panics.
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
