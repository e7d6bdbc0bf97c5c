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

// flagRow declares one flag. Its setting is <command>.<name>, and its environment variable DMGBENCH_<COMMAND>_<NAME>.
type flagRow struct {
	commands string // that have it, with commas
	name     string
	initial  any    // the default; its type is the type of the flag
	help     string // the word in backquotes names the value
	values   []string
	check    check
}

// check is what a value has to be.
type check int

const (
	free     check = iota // values are suggestions for completion
	oneOf                 // one of values
	positive              // a number greater than 0
)

// repeated is the type of flags that may be given several times, commas that of flags whose value is a list with
// commas.
type (
	repeated []string
	commas   []string
)

// engineNames are the values of --engine of run and resume.
var engineNames = []string{"auto", "hdiutil", "inprocess"}

// defaultPause is long enough that a resumed session after it counts as a session of its own, too.
const defaultPause = "10 min"

// flagRows lists every flag of every command. The help lists flags by name.
var flagRows = []flagRow{
	{"run,resume", "engine", "auto", "`engine` that makes the images: auto, hdiutil or inprocess", engineNames, oneOf},
	{"run,resume", "on", repeated{}, "put the images of a place into a folder, as `[NAME=]DIR`, or with NAME=here " +
		"into the run folder, a deviation; repeatable", nil, free},
	{"run,resume", "input", repeated{}, "a file that the plan requires, as `NAME=PATH`; repeatable", nil, free},
	{"run,resume", "keep", false, "keep the images and print how to open them", nil, free},
	{"run,resume", "format", "text", "output `format`: text or json", []string{"text", "json"}, oneOf},
	{"run,resume,report", "verbose", false, "print the whole report", nil, free},
	{"run", "out", "", "the run `folder`, new or empty (default runs/<plan>-<UTC time>)", nil, free},
	{"run", "sets", 0, "at most `N` sets of the published sizes each: shortens a run without scaling sizes", nil, positive},
	{"run", "scale", 0., "multiply all sizes by this `factor`; a deviation", nil, positive},
	{"run", "rounds", "", "measure every case `N` times, each with a fresh image (intervals need 3), or auto: until " +
		"intervals are narrow", nil, free},
	{"run", "precision", "", "target half-width of intervals, as a `share` of the value (default 5% with --rounds auto)",
		nil, free},
	{"run", "max-rounds", 0, "with --rounds auto: at most `N` rounds (default 30)", nil, positive},
	{"run", "precondition", "", "`how` to prepare the disk: none, or steady: write to each place until its rate is " +
		"steady, before the rounds", nil, free},
	{"run", "max-time", "", "with --rounds auto: start no round that would end after this `time`, such as \"2 h\"",
		nil, free},
	{"run", "max-written", "", "with --rounds auto: start no round that would write more than this `size`, such as " +
		"\"200 GB\"", nil, free},
	{"run", "seed", "", "the `number` that data and orders are generated from", nil, free},
	{"run", "workers", 0, "read and write with `N` goroutines", nil, positive},
	{"run", "sessions", 0, "measure `N` sessions, which compare and report pool: N run folders in the run folder " +
		"(compare needs 3)", nil, positive},
	{"run", "pause", "", "`time` between sessions, such as \"1 h\" (default " + defaultPause + ")", nil, free},
	{"run", "only", "", "only the cases with `key=value[,...]`", nil, free},
	{"run", "fs", "", "`name` of the file system in the images, such as exFAT", nil, free},
	{"run", "dry-run", false, "print what would be done, and do nothing", nil, free},
	{"run", "identify", false, "record host name, user and paths", nil, free},
	{"run", "yes", false, "do not ask before a large run", nil, free},
	{"resume", "retry-failed", false, "measure again what failed or was discarded, also of a run that has ended",
		nil, free},

	{"report", "format", "text", "output `format`: text, markdown or html", []string{"text", "markdown", "html"}, oneOf},
	{"report", "out", "", "new `folder` for the pooled report of several runs", nil, free},
	{"report", "svg", "", "save every chart as SVG into a `folder` instead of printing text", nil, free},
	{"report", "tables", "", "save every table of the plan as HTML, Markdown and TSV into a `folder` instead of " +
		"printing text", nil, free},
	{"report", "methods", false, "print the Methods paragraphs of the run instead of the report", nil, free},
	{"report", "ledger", "", "verdicts of all runs below a `folder`, by claim, system, machine and engine", nil, free},

	{"compare", "baseline", "", "`run` (or side of --by) that the others are compared with (default the first)", nil, free},
	{"compare", "against", "", "compare with this `run`, in addition to those given; \"baseline\": the one that history " +
		"baseline marked", nil, free},
	{"compare", "strict", false, "exit with 6 where a regression is neither found nor excluded", nil, free},
	{"compare", "by", commas{}, "`facts` that make the sides, such as model,os: runs with equal facts are sessions of " +
		"one side", analysis.CompareFacts, free},
	{"compare", "op", commas{}, "`quantities` to compare, such as write,read, or all (default the rates)",
		append([]string{"all"}, analysis.CompareOps()...), oneOf},
	{"compare", "threshold", "5%", "a change for the worse of this `share` or more is a regression", nil, free},
	{"compare", "estimator", "", "`name` of the estimator of rates (default the one that the plan quotes)",
		analysis.Estimators(), oneOf},
	{"compare", "format", "text", "output `format`: text, markdown, json, html, junit (XML) or summary (short Markdown)",
		[]string{"text", "markdown", "json", "html", "junit", "summary"}, oneOf},

	{"history,history prune", "plan", commas{}, "only runs of the plan with this `name`; repeatable", nil, free},
	{"history", "engine", commas{}, "only runs on the engine with this `name`, such as inprocess, or whose title " +
		"contains it", []string{"hdiutil", "inprocess", "directory", "simulated"}, free},
	{"history", "status", commas{}, "only runs of this `status`: done, failed, skipped or unfinished",
		[]string{result.Done, result.Failed, result.Skipped, result.Unfinished}, oneOf},
	{"history", "since", "", "only runs started at this `time` or later: 2026-01-31, 2026-01-31T12:00:00Z, or 36h, 30d, " +
		"8w ago", nil, free},
	{"history", "format", "text", "output `format`: text, json or csv, or with runs in the order of time: trends, " +
		"markdown or html", []string{"text", "json", "csv", "trends", "markdown", "html"}, oneOf},
	{"history baseline", "clear", false, "remove the mark", nil, free},
	{"history prune", "keep", 0, "keep the newest `n` runs of each plan that have ended", nil, free},
	{"history prune", "yes", false, "do not ask", nil, free},

	{"export", "format", "csv", "output `format`: csv, json, jsonl, benchfmt or openmetrics", export.Formats, oneOf},
	{"export", "table", "", "the `table` that csv contains: samples, summaries, steps or tables (default samples)",
		export.Tables, oneOf},

	{"doctor", "on", repeated{}, "check the disk of a folder too, as `[NAME=]DIR`; repeatable", nil, free},
	{"doctor", "capture", "", "record the answers of the disk image tools in a new or empty `folder`", nil, free},
	{"doctor", "identify", false, "print host name, user and paths", nil, free},
	{"selftest", "format", "text", "output `format`: text or json", []string{"text", "json"}, oneOf},
	{"selftest", "seed", uint64(1), "`number` that the simulated runs are generated from", nil, free},
	{"selftest", "study", repeated{}, "one `study` instead of all; repeatable: " + strings.Join(selftest.IDs(), ", "),
		selftest.IDs(), oneOf},

	{"plans show", "toml", false, "print the text of the plan file", nil, free},
	{"plans new", "title", "My plan", "`title` of the plan, one line", nil, free},
	{"plans new", "format", "UDRW,UDSB", "`formats` of the images: UDRW, UDSB, UDSP, ASIF", nil, free},
	{"plans new", "encryption", "none", "`encryption`: none, AES-128, AES-256", nil, free},
	{"plans new", "filesystem", "APFS,ext4,exFAT", "`file systems`, the preferred one first: APFS, HFS+, exFAT, FAT32, " +
		"ext4, XFS, btrfs", nil, free},
	{"plans new", "size", "500 MB", "nominal `size` of the images, such as 500 MB", nil, free},
	{"plans new", "files", "1 MB,2 MB,4 MB,8 MB,16 MB", "`sizes` of the files, or gold for the sixteen of the gold " +
		"standard", nil, free},
	{"plans new", "sets", "3", "`number` of files of each size", nil, free},
	{"plans new", "rounds", "3", "number of `rounds`: intervals and verdicts need three", nil, free},
}

// flagsOf are the flags of a command.
func flagsOf(path string) (rows []flagRow) {
	for _, row := range flagRows {
		if slices.Contains(strings.Split(row.commands, ","), path) {
			rows = append(rows, row)
		}
	}
	return rows
}

// addFlags declares the flags of a command, with the completions of their values.
func addFlags(cmd *cobra.Command, path string) {
	f := cmd.Flags()
	for _, row := range flagsOf(path) {
		switch initial := row.initial.(type) {
		case string:
			f.String(row.name, initial, row.help)
		case bool:
			f.Bool(row.name, initial, row.help)
		case int:
			f.Int(row.name, initial, row.help)
		case uint64:
			f.Uint64(row.name, initial, row.help)
		case float64:
			f.Float64(row.name, initial, row.help)
		case repeated:
			f.StringArray(row.name, nil, row.help)
		case commas:
			f.StringSlice(row.name, nil, row.help)
		}
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

// checkValue checks the value that a flag was given against its row.
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

// isPositive reports whether a number, as pflag prints it, is greater than 0. NaN is not.
func isPositive(number string) bool {
	var v float64
	_, err := fmt.Sscan(number, &v)
	return err == nil && v > 0
}

// flag is a flag of the executed command. A name that is not in flagRows is a programming error.
func (a *app) flag(name string) *pflag.Flag {
	f := a.command.Flags().Lookup(name)
	if f == nil {
		panic("no flag --" + name + " of " + a.command.CommandPath())
	}
	return f
}

// text is the value of a flag of any type in the form that the user types.
func (a *app) text(name string) string { return a.flag(name).Value.String() }

// isSet reports whether a flag without a value was given.
func (a *app) isSet(name string) bool { return a.text(name) == "true" }

// isGiven reports whether a flag got a value from the command line, the environment or the settings file.
func (a *app) isGiven(name string) bool { return a.flag(name).Changed }

// list is the value of a flag that takes several values.
func (a *app) list(name string) []string { return a.flag(name).Value.(pflag.SliceValue).GetSlice() }

// number is the value of a flag that takes an integer.
func (a *app) number(name string) int {
	n, err := a.command.Flags().GetInt(name)
	if err != nil {
		panic(err)
	}
	return n
}
