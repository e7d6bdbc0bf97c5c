package cli

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for plannew.toml and protocol.tmpl
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/image"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/result/runfolders"
	"dmgbench/internal/system/units"
	"dmgbench/plans"
)

// listPlans is the command "plans": a line for each built-in plan, cut at the
// width of the terminal.
func (a *app) listPlans(context.Context, []string) error {
	var rows [][]string
	for _, name := range plans.Names() {
		p, _, err := loadPlan(name)
		if err != nil {
			return err
		}
		rows = append(rows, []string{name, p.Title})
	}
	return printTable(a.stdout, rows, a.textOptions().Width, 0)
}

// showPlan is the command "plans show". With --toml only built-in plans are
// accepted: the text of others is in their own file.
func (a *app) showPlan(_ context.Context, args []string) error {
	if a.isSet("toml") {
		text, ok := plans.Get(args[0])
		if !ok {
			return unknownPlan(args[0])
		}
		_, err := a.stdout.Write(text)
		return err
	}
	p, _, err := loadPlan(args[0])
	if err != nil {
		return err
	}
	return printProtocol(a.stdout, p, min(cmp.Or(a.textOptions().Width, protocolWidth), maxProtocolWidth))
}

// copyPlan is the command "plans copy". The copy has a directive for editors
// before the text of the plan, which does not change its digest.
func (a *app) copyPlan(_ context.Context, args []string) error {
	text, ok := plans.Get(args[0])
	if !ok {
		return unknownPlan(args[0])
	}
	return a.writePlan(append(args, args[0]+".toml")[1], append([]byte(schemaLine), text...), "copying")
}

// schemaLine is a directive for editors with Taplo, such as Even Better TOML;
// it has to be the first line.
const schemaLine = `#:schema ./plan.schema.json
# Editors that know Taplo complete and check the plan by that file: dmgbench schema plan > plan.schema.json
`

// writePlan makes a plan file and prints its name. Existing files are never
// replaced, as they may contain a user's work. doing is the start of the error.
func (a *app) writePlan(path string, text []byte, doing string) error {
	a.chownAtExit(path)
	if err := runfolders.WriteNew(path, text); err != nil {
		return fmt.Errorf("%s plan %q: %w", doing, path, err)
	}
	return a.print("%s", path)
}

// newPlanTemplate is the text of a new plan. The values of the flags are
// inserted as they were typed, and the check of the plan finds what is wrong
// with them, so that the limits are not declared twice.
//
//go:embed plannew.toml
var newPlanTemplate string

// goldSizes are the sixteen file sizes of the plan gold-standard, 5.33 GB in
// all.
const goldSizes = "2 MB,4 MB,6 MB,8 MB,10 MB,20 MB,40 MB,60 MB,80 MB,100 MB,200 MB,400 MB,600 MB,800 MB,1000 MB,2000 MB"

// newPlan is the command "plans new". The plan is checked as check does it
// before the file is made.
func (a *app) newPlan(_ context.Context, args []string) error {
	values := map[string]string{"schemaLine": schemaLine}
	for _, row := range a.flags["plans new"] {
		values[row.name] = a.text(row.name)
	}
	if strings.EqualFold(values["files"], "gold") {
		values["files"] = goldSizes
	}
	items := func(list string) []string { return strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) }
	t := template.Must(template.New("plan").
		Funcs(template.FuncMap{"items": items, "trim": strings.TrimSpace}).Parse(newPlanTemplate))
	var text bytes.Buffer
	if err := t.Execute(&text, values); err != nil {
		return err
	}
	p, problems := plan.Parse(filepath.Base(args[0]), text.Bytes())
	if len(problems.Errors()) > 0 {
		return problems
	}
	if err := checkRunnable(p); err != nil {
		return err
	}
	for _, w := range problems.Warnings() {
		a.warn(w.String())
	}
	return a.writePlan(args[0], text.Bytes(), "making")
}

// loadUsable loads a plan and prints everything that is wrong with it, with the
// cases that no engine supports. It returns nil for a plan that cannot be used.
func (a *app) loadUsable(name string) *plan.Plan {
	p, warnings, err := loadPlan(name)
	if err != nil {
		a.printError(err)
		return nil
	}
	usable := true
	for _, w := range warnings {
		a.warn(w.String())
		usable = usable && !w.Refused
	}
	// A claim of the author that the author's own published values contradict: one
	// of the two was transcribed wrongly.
	for _, c := range analysis.JudgePublished(p) {
		if c.Verdict == result.DoesNotHold && len(p.Changes) == 0 { // those of a changed plan are of other cases
			a.warn(fmt.Sprintf("%s: warning: the author's claim %q does not hold on the author's own figures: %s\n"+
				"  hint: read the source again: the claim or a figure differs there", name, c.Says, c.Reason))
		}
	}
	for _, problem := range unsupportedByAll(name, p) {
		if problem.Warning {
			a.warn(problem.String())
			continue
		}
		a.printError(&plan.Problems{Items: []plan.Problem{problem}})
		usable = false
	}
	if !usable {
		return nil
	}
	return p
}

// loadPlan loads a plan by its path or by the name of a built-in plan, which is
// preferred to a file of that name. It returns the warnings of the plan; its
// problems are an error of type plan.Problems.
func loadPlan(name string) (*plan.Plan, []plan.Problem, error) {
	isPath := strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml")
	if text, ok := plans.Get(name); ok && !isPath {
		p, problems := plan.Parse(name+".toml", text) // a test finds the errors of these plans
		return p, problems.Warnings(), nil
	}
	// A name without a file is a misspelt built-in plan more often than a path.
	if !isPath && !exists(name) {
		return nil, nil, unknownPlan(name)
	}
	p, warnings, err := plan.LoadAll(name)
	if err != nil && !is[*plan.Problems](err) {
		err = usageError("", "%w", err)
	}
	// The plan of a run folder, where the file is always plan.toml, gets the name
	// that it was run as: results and run folders of a repetition then have the
	// same name. A file that was changed since is another plan.
	if err == nil && filepath.Base(name) == result.PlanFile {
		state, noRun := runfolders.State(filepath.Dir(name))
		text, unread := os.ReadFile(name)
		// The name becomes that of a folder, and the journal may be somebody else's.
		if noRun == nil && unread == nil && p.Is(state.Run.Plan.Digest, text) &&
			result.SafeName(state.Run.Plan.Name) == nil {
			p.Name = state.Run.Plan.Name
		}
	}
	return p, warnings, err
}

// unknownPlan suggests the built-in plan with the most similar name.
func unknownPlan(name string) error {
	near := plan.Nearest(name, plans.Names())
	hint := report.TextIf(near != "", fmt.Sprintf("there is a built-in plan %q", near))
	hint = cmp.Or(hint, "dmgbench plans lists the built-in plans")
	return usageError(hint, "finding plan %q: neither a built-in plan nor a file", name)
}

// checkRunnable refuses plans that are valid but cannot be run, as their limits do
// not allow a round. A report of an earlier run of such a plan can still be made,
// so this is not part of the check of plans.
func checkRunnable(p *plan.Plan) error {
	if _, err := runner.AutoRounds(p); err != nil {
		return usageError(moreWritten, "%w", err)
	}
	return nil
}

// moreWritten is what helps where no round is allowed.
const moreWritten = "allow more with --max-written, or shorten a round with --sets 1"

// problemOfRounds is what checkRunnable finds in a plan file, with its place.
func problemOfRounds(name string, p *plan.Plan) error {
	_, err := runner.AutoRounds(p)
	if err == nil {
		return nil
	}
	text := planText(name)
	line, column := plan.PlaceOf(text, "run", "max_written")
	problem := plan.Problem{Line: line, Column: column, Key: "max_written", Message: err.Error(), Hint: moreWritten}
	return &plan.Problems{Items: []plan.Problem{problem.In(name, text)}}
}

// planText is the text of a built-in plan or of a file, for excerpts.
func planText(name string) []byte {
	if text, ok := plans.Get(name); ok {
		return text
	}
	text, _ := os.ReadFile(name)
	return text
}

// unsupportedByAll are the cases that no engine on any machine supports: a
// warning that names them, or an error where no image is left to measure. In a
// changed plan they are warnings, as --only may have selected them. Cases with
// the same step and reason are one problem.
func unsupportedByAll(name string, p *plan.Plan) (problems []plan.Problem) {
	// Ideal engines support all that any version of the tools does.
	engines := []engine.Engine{inprocess.New(nil)}
	for _, e := range hdiutil.Ideal() {
		engines = append(engines, e)
	}
	refusals := map[string]int{}                 // number of engines by case
	furthest := map[string]*runner.Unsupported{} // the refusal of the engine that can make the image, if one can
	var list []*runner.Unsupported
	for _, e := range engines {
		list = runner.UnsupportedCases(p, e)
		for _, u := range list {
			refusals[u.Case.ID]++
			if old := furthest[u.Case.ID]; old == nil || old.Step.Do == "create" {
				furthest[u.Case.ID] = u
			}
		}
	}
	// The list of the last engine has every case that all refuse. Native
	// folders are measured by every engine.
	isImage := func(c plan.Case) bool { return c.Settings.Target == "image" }
	list = slices.DeleteFunc(list, func(u *runner.Unsupported) bool {
		return refusals[u.Case.ID] < len(engines) || !isImage(u.Case)
	})
	for i, u := range list {
		list[i] = furthest[u.Case.ID]
	}
	images := slices.DeleteFunc(p.Cases(), func(c plan.Case) bool { return !isImage(c) })
	cases := map[plan.Problem][]string{}
	for _, u := range list {
		problem := plan.Problem{Line: u.Step.Line, Column: u.Step.Column, Key: u.Step.Do, Hint: u.Err.Hint,
			Message: fmt.Sprintf("%s: no engine supports %s", u.Step.Do, u.Err.What),
			Warning: len(list) < len(images) || len(p.Changes) > 0}
		problems, cases[problem] = report.AppendNew(problems, problem), append(cases[problem], u.Case.ID)
	}
	text := planText(name)
	for i, problem := range problems {
		problem.Message += ", as asked for by " + strings.Join(cases[problem], " and ")
		problems[i] = problem.In(name, text)
	}
	return problems
}

// checkPlans is the command "check".
func (a *app) checkPlans(_ context.Context, names []string) error {
	code := 0
	for _, name := range names {
		p := a.loadUsable(name)
		if p == nil {
			code = exitUsage
			continue
		}
		if err := problemOfRounds(name, p); err != nil {
			a.printError(err)
			code = exitUsage
			continue
		}
		all := p.Cases()
		a.warnOnlyApple(name, p, len(all))
		images := slices.DeleteFunc(slices.Clone(all), func(c plan.Case) bool { return c.Baseline })
		text := units.Count(len(images), "case") + report.TextIf(len(images) < len(all), " and the native baseline")
		if err := a.print("%s: ok, %s", name, text); err != nil {
			return err
		}
	}
	return exitWith(code)
}

// warnOnlyApple warns of cases whose images only Apple's tools make.
func (a *app) warnOnlyApple(name string, p *plan.Plan, of int) {
	list := slices.DeleteFunc(runner.UnsupportedCases(p, inprocess.New(nil)), func(u *runner.Unsupported) bool {
		s := u.Case.Settings
		format, _ := image.FormatNamed(s.Format)
		return u.Step.Do != "create" || s.Encryption == image.NotEncrypted || format.Encrypted
	})
	if len(list) > 0 {
		a.warn(name + ": warning: without Apple's tools, " + runner.DescribeUnsupported(list, of))
	}
}

// protocolWidth is the width of lines in characters where the output is no terminal,
// maxProtocolWidth the upper limit.
const (
	protocolWidth    = 80
	maxProtocolWidth = 100
)

//go:embed protocol.tmpl
var protocolTemplate string

// protocol prints a plan as an article prints its method: what is measured, the
// files, and the steps with numbers. The template calls its methods, except step.
type protocol struct {
	plan  *plan.Plan
	width int
	text  strings.Builder // of the steps
}

// printProtocol prints a plan in lines of at most width characters.
func printProtocol(w io.Writer, p *plan.Plan, width int) error {
	t := &protocol{plan: p, width: width}
	return template.Must(template.New("protocol").Funcs(template.FuncMap{
		"item": t.item, "has": t.has, "onlyFolders": t.onlyFolders, "files": t.files, "setting": t.setting,
		"steps": t.steps, "onFlags": onFlags, "prose": func(value string) string { return valueProse[value] },
		"list":  func(parts ...string) string { return strings.Join(nonempty(parts...), ", ") },
		"join":  func(separator string, list ...string) string { return strings.Join(nonempty(list...), separator) },
		"all":   func(separator string, list []string) string { return strings.Join(list, separator) },
		"words": func(key any) string { return strings.ReplaceAll(fmt.Sprint(key), "_", " ") },
	}).Parse(protocolTemplate)).Execute(w, p)
}

// valueProse maps values of settings to their descriptions.
var valueProse = map[string]string{
	"none": "not flushed", "fsync": "each write with its fsync", "full": "each write flushed to the medium",
	"direct": "uncached", "buffered": "through the cache",
	"cold": "through the cache, from which files are evicted before they are read",
	"line": "a straight line", "power": "a power law", "two-lines": "two straight lines",
}

// item is text after a prefix, the next lines indented as far.
func (t *protocol) item(prefix, text string) string {
	return wrap(prefix, text, utf8.RuneCountInString(prefix), t.width) + "\n"
}

// onlyFolders reports whether every case measures a folder, so that no disk image is
// made.
func (t *protocol) onlyFolders() bool {
	return !slices.ContainsFunc(t.plan.Cases(), func(c plan.Case) bool { return c.Settings.Target != "directory" })
}

// has reports whether the plan has a step of one of these kinds, at any depth.
func (t *protocol) has(kinds ...string) bool {
	var within func([]plan.Step) bool
	within = func(steps []plan.Step) bool {
		return slices.ContainsFunc(steps, func(s plan.Step) bool {
			return slices.Contains(kinds, s.Do) || within(s.Steps)
		})
	}
	return slices.ContainsFunc(t.plan.Protocol, func(b plan.Block) bool { return within(b.Steps) })
}

// files describes a file set with the number and size of its files for the seed
// of the plan.
func (t *protocol) files(f plan.FileSet) string {
	n, bytes := 0, units.Bytes(0)
	for _, set := range f.Draw(t.plan.Run.Seed) {
		n += len(set)
		for _, size := range set {
			bytes += size
		}
	}
	return fmt.Sprintf("%s; %d in all, %s", f.Prose(), n, bytes.Human())
}

// setting returns text, the description of a setting, or "" if its key is an axis:
// the values of axes are listed with the cases.
func (t *protocol) setting(key, text string) string {
	isAxis := slices.ContainsFunc(t.plan.Axes, func(a plan.Choice) bool { return a.Key == key })
	return report.TextIf(!isAxis, text)
}

// steps numbers the steps through all blocks, and names the cases of blocks
// that are not for all cases.
func (t *protocol) steps() string {
	number := 0
	conditional := false // the previous block is only for some cases
	for i := range t.plan.Protocol {
		b := &t.plan.Protocol[i]
		switch {
		case len(b.When) > 0:
			t.text.WriteString("\n" + t.item("  ", "Only where "+b.When.Prose()+":"))
		case conditional:
			t.text.WriteString("\n  In all cases again:\n")
		}
		conditional = len(b.When) > 0
		for i := range b.Steps {
			number++
			t.step(fmt.Sprintf("%4d. ", number), &b.Steps[i])
		}
	}
	return t.text.String()
}

// folderProse is the text of steps that differ where the plan makes no image.
var folderProse = map[string]string{"create": "make the folder", "attach": "open the folder",
	"detach": "leave the folder", "remount": "open the folder again"}

// step writes a step, and the steps inside it with letters.
func (t *protocol) step(number string, s *plan.Step) {
	text, end := s.Prose(), "."
	if before, ok := strings.CutSuffix(text, ":"); ok {
		text, end = before, ":"
	}
	if t.onlyFolders() {
		text = strings.ReplaceAll(cmp.Or(folderProse[s.Do], text), "the image", "the folder")
	}
	text += report.TextIf(s.Phase != "", " ("+s.Phase+")")
	t.text.WriteString(t.item(number, report.Capitalize(text)+end))
	for i := range s.Steps {
		t.step(strings.Repeat(" ", len(number))+string(rune('a'+i%26))+". ", &s.Steps[i])
	}
}
