package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/cli"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/plans"
)

// law is the simulated device of the example reports. Its rates belong to no real disk: an example shows what a
// report of the plan contains, and not how fast anything is.
const law = `
write      = 2 GB/s
read       = 3 GB/s
latency    = 100 us
file_noise = 5%
[UDSB]
write      = 1 GB/s
`

// planPage is the data of the page of a shipped plan.
type planPage struct {
	*plan.Plan
	Law, Protocol string
	Example       string // path of the example report on the site, "" if there is none
	Reason        string // why there is none
}

// writeSite writes the pages of all shipped plans as Markdown and their example reports as HTML below folder,
// where site/hugo.toml expects them.
func writeSite(ctx context.Context, folder string) error {
	var err error
	for _, name := range plans.Names() {
		if wrong := writePlanPage(ctx, folder, name); wrong != nil {
			err = errors.Join(err, fmt.Errorf("writing the page of plan %s: %w", name, wrong))
		}
	}
	return err
}

// writePlanPage writes the page of one plan, and its example report.
func writePlanPage(ctx context.Context, folder, name string) error {
	text, _ := plans.Get(name)
	p, problems := plan.Parse(name, text)
	if p == nil {
		return problems
	}
	page := planPage{Plan: p, Law: strings.Join(strings.Fields(law), " ")}
	protocol, err := program(ctx, "plans", "show", name)
	if err != nil {
		return err
	}
	page.Protocol = markdownOf(protocol)
	page.Example = "examples/" + name + ".html"
	page.Reason, err = writeExample(ctx, filepath.Join(folder, filepath.FromSlash(page.Example)), p)
	if err != nil {
		return err
	}
	t, err := template.New("plan.md.tmpl").Funcs(template.FuncMap{
		"cell": cell, "quantity": analysis.QuantityName,
	}).ParseFS(templates, "plan.md.tmpl")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, "plan", name+".md"), b.Bytes())
}

// writeExample runs the plan on the simulated device, with two sets and three rounds, and writes its report to path.
// It returns the reason where the device cannot execute the plan, which is no error.
func writeExample(ctx context.Context, path string, published *plan.Plan) (reason string, err error) {
	p, _, err := published.Apply(plan.Overrides{Sets: 2, Rounds: 3})
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "dmgbench-site-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	machine, err := simulated.Parse(law)
	if err != nil {
		return "", err
	}
	now := clock.NewVirtual(time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC))
	device, err := simulated.New(machine, now, 1, 1)
	if err != nil {
		return "", err
	}
	run := filepath.Join(dir, "run")
	c := runner.Config{Plan: p, Tool: result.Tool{Name: "dmgbench", Version: "example"}, Out: run, Engine: device,
		Why: device.Simulated(), Clock: now, Volatile: true}
	isImage := func(c plan.Case) bool { return !c.Baseline }
	if refused := runner.UnsupportedCases(p, device); len(refused) > 0 &&
		len(refused) >= len(report.Where(p.Cases(), isImage)) {
		return refused[0].Err.What, nil
	}
	if len(p.Manual) > 0 || len(p.Inputs) > 0 {
		return "steps or files of a person", nil
	}
	for _, place := range p.Places() {
		c.Places = append(c.Places, runner.Place{Name: place, Path: filepath.Join(dir, place)})
		if err := os.Mkdir(filepath.Join(dir, place), 0o755); err != nil {
			return "", err
		}
	}
	outcome, err := runner.Run(ctx, c)
	if err != nil {
		return "", err
	}
	if outcome.Status == runner.StatusFailed { // its verdicts would be about the device
		return "contents of files to verify", nil
	}
	if _, err := program(ctx, "report", run); err != nil {
		return "", err
	}
	page, err := os.ReadFile(filepath.Join(run, result.ReportFile))
	if err != nil {
		return "", err
	}
	return "", writeFile(path, page)
}

// program executes a command line of dmgbench and returns what it prints.
func program(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	if status := cli.Main(ctx, nil, &stdout, &stderr, args, nil); status != 0 {
		return "", fmt.Errorf("executing dmgbench %s: status %d: %s", strings.Join(args, " "), status, &stderr)
	}
	return stdout.String(), nil
}

// headings are the lines that start a part of a printed protocol.
var headings = regexp.MustCompile(
	`(?m)^(CASES|FILES|PROTOCOL|FITTED|TABLES|LEFT OPEN|JUDGED)( BY THE SOURCE, CHOSEN HERE)?:? ?(.*)$`)

// toMarkdown turns what the program prints into Markdown, in this order.
var toMarkdown = []struct {
	printed  *regexp.Regexp
	markdown string
}{
	{regexp.MustCompile(`([<*])`), `\$1`},
	{regexp.MustCompile(`(?m)^    (columns|rows): `), "    - $1: "},
	{regexp.MustCompile(`(?m)^  ([a-z])`), "  - $1"},
	// The style sheet numbers these with letters again.
	{regexp.MustCompile(`(?m)^( {6,})[a-z]\. `), "${1}1. "},
	{regexp.MustCompile(`:\n( {2,3}\d+\. )`), ":\n\n$1"}, // a list that does not start with 1 needs a blank line
}

// markdownOf is a printed protocol as Markdown, without its title.
func markdownOf(protocol string) string {
	_, text, _ := strings.Cut(protocol, "\n")
	for _, r := range toMarkdown {
		text = r.printed.ReplaceAllString(text, r.markdown)
	}
	return headings.ReplaceAllStringFunc(text, func(line string) string {
		m := headings.FindStringSubmatch(line)
		return "## " + m[1][:1] + strings.ToLower(m[1][1:]+m[2]) + "\n\n" + m[3] + "\n"
	})
}

// writeFile writes a file and makes its folder.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
