package cli

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result/export"
	"dmgbench/internal/selftest"
	"dmgbench/plans"

	"github.com/spf13/cobra"
)

// commandRow is one command. Its help text and its flags are in help/, in a
// file named after it; run is in the file of its name. A new command needs a
// row here, a text there and a method of [app].
type commandRow struct {
	path     string // "history prune"
	args     string // synopsis of its arguments
	group    string // section of the help, for commands without a parent
	min, max int    // number of arguments; unlimited is any number
	run      func(a *app, ctx context.Context, args []string) error
}

// unlimited is the max of commands that take any number of arguments.
const unlimited = -1

// commandRows lists all commands in the order of the help; parents come before
// their subcommands.
var commandRows = []commandRow{
	{"run", "PLAN...", "measure", 1, unlimited, (*app).runPlans},
	{"resume", "RUN", "measure", 1, 1, (*app).resumeRun},
	{"plans", "", "measure", 0, 0, (*app).listPlans},
	{"plans list", "", "", 0, 0, (*app).listPlans},
	{"plans show", "PLAN", "", 1, 1, (*app).showPlan},
	{"plans copy", "NAME [FILE]", "", 1, 2, (*app).copyPlan},
	{"plans new", "FILE", "", 1, 1, (*app).newPlan},
	{"check", "PLAN...", "measure", 1, unlimited, (*app).checkPlans},
	{"report", "RUN...", "report", 0, unlimited, (*app).reportRuns},
	{"compare", "RUN...", "report", 1, unlimited, (*app).compareRuns},
	{"export", "RUN...", "report", 1, unlimited, (*app).exportRuns},
	{"history", "[DIR]", "report", 0, 1, (*app).listHistory},
	{"history baseline", "RUN", "", 1, 1, (*app).markBaseline},
	{"history prune", "--keep N [DIR]", "", 0, 1, (*app).pruneHistory},
	{"schema", "{plan|result|comparison}", "report", 1, 1, (*app).printSchema},
	{"doctor", "", "maintain", 0, 0, (*app).runDoctor},
	{"selftest", "", "maintain", 0, 0, (*app).runSelftest},
	{"clean", "", "maintain", 0, 0, (*app).clean},
	{"hdiutil", "VERB", "maintain", 0, unlimited, (*app).helpImageTool},
	{"man", "DIR", "maintain", 1, 1, (*app).writeManPages},
	{"version", "", "maintain", 0, 0, (*app).printVersion},
}

//go:embed help
var helpFiles embed.FS

// defaultPause is long enough that a resumed session after it counts as a
// session of its own, too.
const defaultPause = "10 min"

// helpText is the help of one command, from help/<name>.txt: a line, a
// description that ends with the exit statuses, the section FLAGS with lines
// that declare a [flagRow], and the section EXAMPLES.
type helpText struct {
	short, long, examples string
	flags                 []flagRow
}

// helpValues are the lists in help texts that other packages define.
var helpValues = strings.NewReplacer("{PAUSE}", defaultPause,
	"{STUDIES}", strings.Join(selftest.IDs(), ", "), "{IDS}", strings.Join(selftest.IDs(), "|"),
	"{FACTS}", wrap("", strings.Join(analysis.CompareFacts, ", "), 0, 76),
	"{BY}", strings.Join(analysis.CompareFacts, "|"), "{OPS}", strings.Join(analysis.CompareOps(), "|"),
	"{ESTIMATORS}", strings.Join(analysis.Estimators(), "|"),
	"{FORMATS}", strings.Join(export.Formats, "|"), "{TABLES}", strings.Join(export.Tables, "|"))

// readHelp reads the help of a command by its path, "" for the program. In the
// name of the file blanks are hyphens. A missing file is a programming error.
func readHelp(path string) (h helpText) {
	name := cmp.Or(strings.ReplaceAll(path, " ", "-"), "dmgbench")
	text, err := helpFiles.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // a test prints the help of every command
	}
	var rest, flags string
	h.short, rest, _ = strings.Cut(strings.TrimSpace(helpValues.Replace(string(text))), "\n\n")
	rest, h.examples, _ = strings.Cut(rest, "\n\nEXAMPLES\n")
	h.long, flags, _ = strings.Cut(rest, "\n\nFLAGS\n")
	for line := range strings.SplitSeq(strings.ReplaceAll(flags, "\n  ", " "), "\n") {
		if line != "" {
			h.flags = append(h.flags, parseFlag(line))
		}
	}
	return h
}

// newRootCommand builds the tree of commands. It is built for every execution,
// so that two executions in one process, as in tests, share no flags.
func (a *app) newRootCommand() *cobra.Command {
	help := readHelp("")
	root := &cobra.Command{Use: "dmgbench", Short: help.short, Long: help.long, Example: help.examples,
		SilenceErrors: true, SilenceUsage: true}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetFlagErrorFunc(flagError)
	root.DisableSuggestions = true // they are printed as hints
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) }
	root.AddGroup(&cobra.Group{ID: "measure", Title: "Measure:"},
		&cobra.Group{ID: "report", Title: "Report:"}, &cobra.Group{ID: "maintain", Title: "Maintain:"})
	built := map[string]*cobra.Command{"": root}
	for _, row := range commandRows {
		parent, _, _ := cutLast(row.path, " ")
		built[row.path] = a.newCommand(row)
		built[parent].AddCommand(built[row.path])
	}
	root.SetHelpCommandGroupID("maintain")
	root.SetCompletionCommandGroupID("maintain")
	root.InitDefaultCompletionCmd("completion")
	root.InitDefaultHelpCmd()
	refuseUnknownOperands(root)
	return root
}

// newCommand builds the command of a row, with its help, flags and completions.
// Its arguments are checked before its settings are read, and its settings
// before it is executed.
func (a *app) newCommand(row commandRow) *cobra.Command {
	_, name, _ := cutLast(row.path, " ")
	help := readHelp(row.path)
	cmd := &cobra.Command{
		Short: help.short, Long: help.long, Example: help.examples,
		Use: strings.TrimSpace(name + " " + row.args), GroupID: row.group, Args: row.checkArgs,
		// cobra cannot parse the grammar of hdiutil, see isImageTool.
		DisableFlagParsing: row.path == imageToolName, Hidden: row.path == "man",
		RunE: func(cmd *cobra.Command, args []string) error { return row.run(a, cmd.Context(), args) },
	}
	switch {
	case row.path == "schema":
		cmd.ValidArgs = schemas
	case strings.HasPrefix(row.args, "PLAN"), strings.HasPrefix(row.args, "NAME"):
		cmd.ValidArgsFunction = completePlans
	}
	a.flags[row.path] = help.flags
	for _, flag := range help.flags {
		flag.add(cmd)
	}
	return cmd
}

// cutLast splits a text at the last separator; before is "" without one.
func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// completePlans completes a plan argument: the names of built-in plans, and
// files, because a plan may also be a path.
func completePlans(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return plans.Names(), cobra.ShellCompDirectiveDefault
}

// completeOnly completes the value of run --only from the plans on the command
// line: the keys of their cases, and after "key=" the values, also after
// "key=value|" and for further pairs after a comma. Plans that cannot be loaded
// add no completions: a shell has no place for their errors.
func completeOnly(_ *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	start := strings.LastIndexAny(typed, ",") + 1
	key, _, valued := strings.Cut(typed[start:], "=")
	if valued {
		start = strings.LastIndexAny(typed, ",=|") + 1
	}
	for _, name := range args {
		p, _, err := loadPlan(name)
		if err != nil {
			continue
		}
		for _, c := range p.CaseValues() {
			words := []string{c.Key + "="}
			if valued {
				words = c.Values
			}
			for _, word := range words {
				if strings.HasPrefix(word, typed[start:]) && (!valued || c.Key == key) {
					out = append(out, typed[:start]+word)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
