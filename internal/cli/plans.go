package cli

import (
	"bytes"
	"context"
	_ "embed" // for plannew.toml
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"dmgbench/internal/plan"
	"dmgbench/internal/runfolders"
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
