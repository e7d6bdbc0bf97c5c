package cli

import (
	"fmt"
	"os"
	"text/tabwriter"

	"dmgbench/plans"

	"github.com/spf13/cobra"
)

func (a *app) newPlansCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "plans", GroupID: "measure", Args: cobra.NoArgs,
		Short:   "list the built-in plans",
		Long:    "List the built-in plans: the name that run, check and plans show take, and the title.\n\n" + exitText,
		Example: "  dmgbench plans\n  dmgbench plans show quick\n  dmgbench plans copy quick mine.toml",
		RunE:    func(*cobra.Command, []string) error { return a.listPlans() },
	}
	list := &cobra.Command{Use: "list", Short: "list the built-in plans", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listPlans() }}
	show := &cobra.Command{Use: "show NAME", Short: "print a built-in plan", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completePlans,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := builtIn(args[0])
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		}}
	cp := &cobra.Command{Use: "copy NAME [FILE]", Short: "copy a built-in plan into a file to change it",
		Long: "Copy a built-in plan into FILE, or NAME.toml. A file that is there is never replaced.",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: completePlans,
		RunE: func(_ *cobra.Command, args []string) error { return a.copyPlan(args) }}
	cmd.AddCommand(list, show, cp)
	return cmd
}

func (a *app) listPlans() error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, name := range plans.Names() {
		p, _, err := load(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\n", name, p.Title)
	}
	return w.Flush()
}

func (a *app) copyPlan(args []string) error {
	text, err := builtIn(args[0])
	if err != nil {
		return err
	}
	path := args[0] + ".toml"
	if len(args) > 1 {
		path = args[1]
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("copying plan %q: %w", args[0], err)
	}
	_, err = f.Write(text)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("copying plan %q: %w", args[0], err)
	}
	_, err = fmt.Fprintln(a.out, path)
	return err
}

func builtIn(name string) ([]byte, error) {
	text, ok := plans.Get(name)
	if !ok {
		return nil, noPlan(name)
	}
	return text, nil
}

func completePlans(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return plans.Names(), cobra.ShellCompDirectiveDefault
}
