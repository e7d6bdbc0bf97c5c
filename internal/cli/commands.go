package cli

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/plans"

	"github.com/spf13/cobra"
)

// commandRow is one command. Its help text is in help/, in a file named after it; its flags are in flags.go.
type commandRow struct {
	path     string // "history prune"
	args     string // synopsis of its arguments
	group    string // section of the help, for commands without a parent
	min, max int    // number of arguments; unlimited is any number
	run      func(a *app, ctx context.Context, args []string) error
}

const unlimited = -1

// commandRows lists all commands in the order of the help; parents come before their subcommands.
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

// helpFiles has a text for each command: the one-line description, an empty line, the description with the exit
// statuses, the line "EXAMPLES", and example command lines.
//
//go:embed help
var helpFiles embed.FS

// newRootCommand builds the tree of commands.
func (a *app) newRootCommand() *cobra.Command {
	root := &cobra.Command{Use: "dmgbench", SilenceErrors: true, SilenceUsage: true}
	setHelp(root, "dmgbench")
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

func (a *app) newCommand(row commandRow) *cobra.Command {
	_, name, _ := cutLast(row.path, " ")
	cmd := &cobra.Command{
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
	setHelp(cmd, strings.ReplaceAll(row.path, " ", "-"))
	addFlags(cmd, row.path)
	return cmd
}

// setHelp fills in the text of help/<name>.txt.
func setHelp(cmd *cobra.Command, name string) {
	text, err := helpFiles.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // a test executes the help of every command
	}
	help := strings.ReplaceAll(string(text), "{FACTS}", wrap("", strings.Join(analysis.CompareFacts, ", "), 0, 76))
	cmd.Short, help, _ = strings.Cut(help, "\n\n")
	cmd.Long, cmd.Example, _ = strings.Cut(help, "\n\nEXAMPLES\n")
	cmd.Example = strings.TrimRight(cmd.Example, "\n")
}

// cutLast splits a text at the last separator; before is "" without one.
func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// completePlans completes the names of built-in plans, and files.
func completePlans(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return plans.Names(), cobra.ShellCompDirectiveDefault
}

// completeOnly completes the value of run --only: the keys of the plans' cases, and after "key=" their values.
func completeOnly(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, pair, ok := cutLast(typed, ",")
	if ok {
		before += ","
	}
	key, value, valued := strings.Cut(pair, "=")
	if valued {
		before += key + "="
		if first, last, ok := cutLast(value, "|"); ok {
			before, value = before+first+"|", last
		}
	}
	var out []string
	for _, name := range args {
		p, _, err := loadPlan(name)
		if err != nil {
			continue
		}
		for _, c := range p.CaseValues() {
			words, prefix := []string{c.Key + "="}, key
			if valued {
				words, prefix = c.Values, value
			}
			for _, word := range words {
				if strings.HasPrefix(word, prefix) && cmp.Or(!valued, c.Key == key) {
					out = append(out, before+word)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
