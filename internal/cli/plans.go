package cli

import (
	"bytes"
	"context"
	_ "embed" // for plannew.toml
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/plan"
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
	return printTable(a.stdout, rows, a.textOptions().Width)
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
	width := protocolWidth
	if w := a.textOptions().Width; w > 0 {
		width = min(w, maxProtocolWidth)
	}
	return printProtocol(a.stdout, p, width)
}

// copyPlan is the command "plans copy". The copy has a directive for editors
// before the text of the plan, which does not change its digest.
func (a *app) copyPlan(_ context.Context, args []string) error {
	text, ok := plans.Get(args[0])
	if !ok {
		return unknownPlan(args[0])
	}
	path := append(args, args[0]+".toml")[1]
	return a.writePlan(path, append([]byte(schemaLine), text...), fmt.Sprintf("copying plan %q", args[0]),
		"give another name: dmgbench plans copy "+args[0]+" FILE")
}

// schemaLine is a directive for editors with Taplo, such as Even Better TOML;
// it has to be the first line.
const schemaLine = `#:schema ./plan.schema.json
# Editors that know Taplo complete and check the plan by that file: dmgbench schema plan > plan.schema.json
`

// writePlan makes a plan file and prints its name. Existing files are never
// replaced, as they may contain a user's work; existsHint is the hint for that
// error, doing its start.
func (a *app) writePlan(path string, text []byte, doing, existsHint string) error {
	a.chownAtExit(path)
	if err := runfolders.WriteNew(path, text); err != nil {
		err = fmt.Errorf("%s: %w", doing, err)
		if errors.Is(err, fs.ErrExist) {
			return withHint(err, existsHint)
		}
		return err
	}
	_, err := fmt.Fprintln(a.stdout, path)
	return err
}

// newPlanTemplate is the text of a new plan. The values of the flags are
// inserted as they were typed, and the check of the plan finds what is wrong
// with them, so that the limits are not declared twice.
//
//go:embed plannew.toml
var newPlanTemplate string

// newPlanKeys are the flags of "plans new" by the key of the plan that they
// set, which starts its line in the template.
var newPlanKeys = map[string]string{"title": "title", "size": "size", "filesystem_preference": "filesystem",
	"format": "format", "encryption": "encryption", "sizes": "files", "sets": "sets", "rounds": "rounds"}

// goldSizes are the sixteen file sizes of the plan gold-standard, 5.33 GB in
// all.
const goldSizes = "2 MB,4 MB,6 MB,8 MB,10 MB,20 MB,40 MB,60 MB,80 MB,100 MB,200 MB,400 MB,600 MB,800 MB,1000 MB,2000 MB"

// newPlan is the command "plans new". The plan is checked as check does it
// before the file is made.
func (a *app) newPlan(_ context.Context, args []string) error {
	text, err := a.newPlanText()
	if err != nil {
		return err
	}
	p, problems := plan.Parse(filepath.Base(args[0]), text)
	if errs := problems.Errors(); len(errs) > 0 {
		return badPlanFlags(string(text), errs)
	}
	if err := checkRunnable(p); err != nil {
		return err
	}
	for _, w := range problems.Warnings() {
		a.warn(w.String())
	}
	return a.writePlan(args[0], text, fmt.Sprintf("making plan %q", args[0]),
		"give another name: an existing file is never replaced")
}

// newPlanText inserts the flags into the template.
func (a *app) newPlanText() ([]byte, error) {
	values := map[string]any{"schemaLine": schemaLine}
	for _, flag := range newPlanKeys {
		values[flag] = a.text(flag)
	}
	if strings.EqualFold(a.text("files"), "gold") {
		values["files"] = goldSizes
	}
	t := template.Must(template.New("plan").Funcs(template.FuncMap{
		"text": tomlText, "list": tomlList, "number": tomlNumber, "split": splitList}).Parse(newPlanTemplate))
	var b bytes.Buffer
	err := t.Execute(&b, values)
	return b.Bytes(), err
}

// tomlText quotes a value, without its control characters, for which TOML and
// Go have different escapes.
func tomlText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// splitList are the items of a list with commas.
func splitList(s string) (items []string) {
	for item := range strings.SplitSeq(s, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return nonempty(items...)
}

// tomlList is a TOML array of the items of a list with commas.
func tomlList(s string) string {
	items := splitList(s)
	for i, item := range items {
		items[i] = tomlText(item)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// tomlNumber quotes values other than numbers, so that the check of the plan
// refuses it.
func tomlNumber(s string) string {
	if n, err := strconv.Atoi(s); err == nil {
		return strconv.Itoa(n)
	}
	return tomlText(s)
}

// badPlanFlags turns the problems of a new plan into errors of the flags,
// because the user does not see its text: the line of a problem has the key
// that a flag sets. Problems of other lines follow from them and are printed
// only where no flag is wrong alone.
func badPlanFlags(text string, problems []plan.Problem) error {
	lines := strings.Split(text, "\n")
	var wrong, hints, other, otherHints []string
	// The problem is in the line of a key; the template has one key a line.
	for _, p := range problems {
		key, _, _ := strings.Cut(lines[min(max(p.Line, 1), len(lines))-1], "=")
		key = strings.TrimSpace(key)
		if flag, ok := newPlanKeys[key]; ok {
			message := strings.TrimPrefix(strings.TrimPrefix(p.Message, key+": "), key+" ")
			wrong, hints = append(wrong, fmt.Sprintf("reading --%s: %s", flag, message)), append(hints, p.Hint)
		} else {
			other, otherHints = append(other, p.Message), append(otherHints, p.Hint)
		}
	}
	if len(wrong) == 0 {
		return usageError(joinUnique(otherHints), "making the plan: these flags together cannot be run: %s",
			joinUnique(other))
	}
	return usageError(joinUnique(hints), "%s", joinUnique(wrong))
}

// joinUnique joins the different texts of a list with semicolons.
func joinUnique(texts []string) string { return strings.Join(unique(texts), "; ") }

// minFileSize is the smallest file that can be timed on a device of 10 GB/s: it
// takes twenty times the third of a microsecond that the program itself needs
// for a file. docs/accuracy.md has the measurement, which dmgbench selftest
// repeats on any machine. The analysis checks the real times after a run.
const minFileSize units.Bytes = 64_000

// loadPlans loads plans and prints everything that is wrong with any of them,
// so that a user mends all in one go. Its error is only the exit status.
func (a *app) loadPlans(names []string) ([]*plan.Plan, error) {
	var out []*plan.Plan
	bad := false
	for _, name := range names {
		p, warnings, err := loadPlan(name)
		if err != nil {
			a.printError(err)
			bad = true
			continue
		}
		for _, w := range warnings {
			a.warn(w.String())
			bad = bad || w.Refused
		}
		a.warnAuthorClaims(name, p)
		for _, problem := range unsupportedByAll(name, p) {
			if !problem.Warning {
				a.printError(&plan.Problems{Items: []plan.Problem{problem}})
				bad = true
			}
		}
		out = append(out, p)
	}
	if bad {
		return nil, status(exitUsage)
	}
	return out, nil
}

// loadPlan loads a plan by its path or by the name of a built-in plan, which is
// preferred to a file of that name. It returns the warnings of the plan; its
// problems are an error of type plan.Problems.
func loadPlan(name string) (*plan.Plan, []plan.Problem, error) {
	if text, ok := builtIn(name); ok {
		p, problems := plan.Parse(name+".toml", text)
		if len(problems.Errors()) > 0 {
			return nil, nil, problems
		}
		return p, problems.Warnings(), nil
	}
	// A name without a file is a misspelt built-in plan more often than a path.
	if !isPath(name) && !exists(name) {
		return nil, nil, unknownPlan(name)
	}
	p, warnings, err := plan.LoadAll(name)
	if err == nil {
		restoreName(p, name)
	} else if !is[*plan.Problems](err) {
		err = usageError("", "%w", err)
	}
	return p, warnings, err
}

// builtIn is the text of a built-in plan, unless its argument is a path.
func builtIn(name string) ([]byte, bool) {
	if isPath(name) {
		return nil, false
	}
	return plans.Get(name)
}

// restoreName gives the plan of a run folder, where the file is always
// plan.toml, the name that it was run as: results and run folders of a
// repetition then have the same name. A file that was changed since is another
// plan.
func restoreName(p *plan.Plan, path string) {
	if filepath.Base(path) != result.PlanFile {
		return
	}
	state, err := runfolders.State(filepath.Dir(path))
	if err != nil {
		return // a plan.toml without a journal
	}
	text, err := os.ReadFile(path)
	if ran := state.Run.Plan; err == nil && p.Is(ran.Digest, text) && result.SafeName(ran.Name) == nil {
		p.Name = ran.Name
	}
}

// unknownPlan suggests the built-in plan that has the text in its name, or the
// most similar name.
func unknownPlan(name string) error {
	near := plan.Nearest(name, plans.Names())
	for _, n := range plans.Names() {
		if len(name) > 2 && (strings.HasPrefix(n, strings.ToLower(name)) || strings.HasPrefix(name, n)) {
			near = n
			break
		}
	}
	hint := "dmgbench plans lists the built-in plans"
	if near != "" {
		hint = fmt.Sprintf("there is a built-in plan %q", near)
	}
	return usageError(hint, "finding plan %q: neither a built-in plan nor a file", name)
}

// isPath reports whether a plan argument is a path rather than the name of a
// built-in plan.
func isPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".toml")
}

// warnAuthorClaims warns of claims of the author that the author's own
// published values contradict: one of the two was transcribed wrongly. The
// published values of a changed plan are of other cases.
func (a *app) warnAuthorClaims(name string, p *plan.Plan) {
	if len(p.Changes) > 0 {
		return
	}
	for _, c := range analysis.JudgePublished(p) {
		if c.Verdict == result.DoesNotHold {
			a.warn(fmt.Sprintf("%s: warning: the author's claim %q does not hold on the author's own figures: %s\n"+
				"  hint: read the source again: the claim or a figure differs there", name, c.Says, c.Reason))
		}
	}
}

// checkRunnable refuses plans that are valid but cannot be run. A report of an
// earlier run of such a plan can still be made, so this is not part of the
// check of plans.
func checkRunnable(p *plan.Plan) error {
	if err := checkFileSizes(p); err != nil {
		return err
	}
	if _, err := runner.AutoRounds(p); err != nil {
		return usageError("allow more with --max-written, or shorten a round with --sets 1", "%w", err)
	}
	return nil
}

// checkFileSizes refuses files that are too small to be timed, from lists and
// from ranges. Scaling keeps sizes above that limit itself.
func checkFileSizes(p *plan.Plan) error {
	if slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Kind == "scale" }) {
		return nil
	}
	for _, f := range p.Files {
		for _, part := range f.Parts {
			sizes := part.Sizes
			if part.High > 0 {
				sizes = append(slices.Clone(sizes), part.Low)
			}
			if len(sizes) > 0 && slices.Min(sizes) < minFileSize {
				hint := fmt.Sprintf("use files of %s or more; dmgbench selftest measures the overhead", minFileSize)
				return usageError(hint, "running plan %q: files of %s in set %q are too small to be timed: "+
					"the overhead of the program would show in their rate", p.Name, slices.Min(sizes), f.Name)
			}
		}
	}
	return nil
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
	refusals := map[string]int{} // number of engines by case
	var list []*runner.Unsupported
	for _, e := range engines {
		list = runner.UnsupportedCases(p, e)
		for _, u := range list {
			refusals[u.Case.ID]++
		}
	}
	// The list of the last engine has every case that all refuse. Native
	// folders are measured by every engine.
	isImage := func(c plan.Case) bool { return c.Settings.Target == "image" }
	list = slices.DeleteFunc(list, func(u *runner.Unsupported) bool {
		return refusals[u.Case.ID] < len(engines) || !isImage(u.Case)
	})
	images := slices.DeleteFunc(p.Cases(), func(c plan.Case) bool { return !isImage(c) })
	warning := len(list) < len(images) || len(p.Changes) > 0
	file, text := name+".toml", []byte(nil) // for the excerpt of a problem
	if builtIn, ok := builtIn(name); ok {
		text = builtIn
	} else {
		file = name
		text, _ = os.ReadFile(name) // nil if the file was deleted since
	}
	for len(list) > 0 {
		first, ids := list[0], []string{}
		list = slices.DeleteFunc(list, func(u *runner.Unsupported) bool {
			same := u.Step.Line == first.Step.Line && u.Step.Column == first.Step.Column && u.Error() == first.Error()
			if same {
				ids = append(ids, u.Case.ID)
			}
			return same
		})
		asks := "the case " + ids[0] + " asks"
		if len(ids) > 1 {
			asks = "the cases " + strings.Join(ids, " and ") + " ask"
		}
		step := first.Step
		problem := plan.Problem{Line: step.Line, Column: step.Column, Key: step.Do, Hint: first.Err.Hint,
			Message: fmt.Sprintf("%s: no engine supports %s, which %s for", step.Do, first.Err.What, asks),
			Warning: warning}
		problems = append(problems, problem.In(file, text))
	}
	return problems
}

// checkPlans is the command "check".
func (a *app) checkPlans(_ context.Context, names []string) error {
	code := 0
	for _, name := range names {
		ps, err := a.loadPlans([]string{name})
		if err == nil {
			err = checkRunnable(ps[0])
		}
		if err != nil {
			a.printError(err)
			code = exitUsage
			continue
		}
		for _, warning := range unsupportedByAll(name, ps[0]) { // run names what its own engine skips
			a.warn(warning.String())
		}
		if _, err := fmt.Fprintf(a.stdout, "%s: ok, %s\n", printable(name), countCases(ps[0])); err != nil {
			return err
		}
	}
	return status(code)
}

// countCases counts the cases of a plan in words, without the native baseline.
func countCases(p *plan.Plan) string {
	all := p.Cases()
	images := slices.DeleteFunc(slices.Clone(all), func(c plan.Case) bool { return c.Baseline })
	if len(images) < len(all) {
		return units.Count(len(images), "case") + " and the native baseline"
	}
	return units.Count(len(images), "case")
}
