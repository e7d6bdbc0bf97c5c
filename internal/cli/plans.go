package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"dmgbench/plans"

	"github.com/spf13/cobra"
)

func (a *app) newPlansCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "plans", GroupID: "measure", Args: between(0, 0, ""),
		Short: "list the built-in plans",
		Long: `List the built-in plans: the name that run, check and plans show take, and the
title. A year in the name is that of the publication.

` + exitPrinted,
		Example: "  dmgbench plans\n  dmgbench plans show quick\n  dmgbench plans copy quick mine.toml",
		RunE:    func(*cobra.Command, []string) error { return a.listPlans() },
	}
	list := &cobra.Command{
		Use: "list", Args: between(0, 0, ""),
		Short: "list the built-in plans", Long: "List the built-in plans, as plans alone does.\n\n" + exitPrinted,
		Example: "  dmgbench plans list",
		RunE:    func(*cobra.Command, []string) error { return a.listPlans() },
	}
	cmd.AddCommand(list, a.newPlansShowCommand(), a.newPlansCopyCommand(), a.newPlansNewCommand())
	return cmd
}

func (a *app) newPlansShowCommand() *cobra.Command {
	asTOML := false
	cmd := &cobra.Command{
		Use: "show PLAN", Args: between(1, 1, "PLAN"), ValidArgsFunction: completePlans,
		Short: "print a plan's protocol in numbered steps",
		Long: `Print what a plan does, as an article prints its method: the cases, the files,
the steps with their numbers, and what is judged. PLAN is the name of a built-in
plan or the path of a plan file. --toml prints a built-in plan as it is written,
comments included.

` + exitPrinted,
		Example: "  dmgbench plans show quick\n  dmgbench plans show encryption-cost-2026 --toml",
		RunE:    func(_ *cobra.Command, args []string) error { return a.showPlan(args[0], asTOML) },
	}
	cmd.Flags().BoolVar(&asTOML, "toml", false, "print the plan as it is written")
	return cmd
}

func (a *app) showPlan(name string, asTOML bool) error {
	if asTOML {
		text, err := builtIn(name)
		if err != nil {
			return err
		}
		_, err = a.out.Write(text)
		return err
	}
	p, _, err := load(name)
	if err != nil {
		return err
	}
	t := &protocol{w: a.out, width: protocolWidth}
	if width := a.textOptions().Width; width > 0 {
		t.width = min(width, 100)
	}
	return t.plan(p)
}

func (a *app) newPlansCopyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "copy NAME [FILE]", Args: between(1, 2, "NAME"), ValidArgsFunction: completePlans,
		Short: "copy a built-in plan into a file to change it",
		Long: `Copy a built-in plan into FILE, or NAME.toml, and print the file's name. A file
that is there is never replaced. Its first line names the schema for editors
with Taplo (Even Better TOML): dmgbench schema plan > plan.schema.json.

EXIT STATUS
  0  copied
  1  error, such as a file that is there
  2  bad usage`,
		Example: "  dmgbench plans copy quick mine.toml",
		RunE:    func(_ *cobra.Command, args []string) error { return a.copyPlan(args) },
	}
}

func (a *app) listPlans() error {
	names, widest := plans.Names(), 0
	for _, name := range names {
		widest = max(widest, len(name))
	}
	width := a.textOptions().Width // 0: no terminal, and nothing is cut
	for _, name := range names {
		p, _, err := load(name)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%-*s  %s", widest, name, p.Title)
		if width > 0 {
			text = cut(text, width)
		}
		if _, err := fmt.Fprintln(a.out, text); err != nil {
			return err
		}
	}
	return nil
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
	a.leaves(path)
	if err := writeNew(path, append([]byte(schemaLine), text...)); err != nil {
		err = fmt.Errorf("copying plan %q: %w", args[0], err)
		if errors.Is(err, fs.ErrExist) {
			return &hintedError{err, "give another name: dmgbench plans copy " + args[0] + " FILE"}
		}
		return err
	}
	_, err = fmt.Fprintln(a.out, path)
	return err
}

// schemaLine is for editors: the directive of Taplo, which Even Better TOML is made with, has to stand before all else.
const schemaLine = `#:schema ./plan.schema.json
# Editors that know Taplo complete and check the plan by that file: dmgbench schema plan > plan.schema.json
`

// writeNew makes a file that was not there.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
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
