package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"text/template"

	"dmgbench/internal/analysis"
	"dmgbench/internal/cli"
	"dmgbench/internal/plan"
	"dmgbench/plans"
)

// planPage is the data of the page of a shipped plan.
type planPage struct {
	*plan.Plan
	Protocol string
	Example  string // path of the example report on the site
	System   string // that the example ran on
	Scale    string // of sizes in the example, "" for those of the plan
	Rounds   int    // of the example
	Skipped  int    // cases of the example that its engine does not support
	Waits    bool   // the plan has waits, which the example leaves out
}

// writeSite writes the pages of all shipped plans as Markdown and their example reports as HTML below folder,
// where site/hugo.toml expects them.
func writeSite(ctx context.Context, folder string) error {
	var all sync.WaitGroup
	names := plans.Names()
	errs := make([]error, len(names))
	// A run waits for its disk most of the time, and no figure of an example has to be exact.
	limit := make(chan bool, runtime.NumCPU())
	for i, name := range names {
		limit <- true
		all.Go(func() {
			defer func() { <-limit }()
			if err := writePlanPage(ctx, folder, name); err != nil {
				errs[i] = fmt.Errorf("writing the page of plan %s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// writePlanPage writes the page of one plan, and its example report.
func writePlanPage(ctx context.Context, folder, name string) error {
	text, _ := plans.Get(name)
	p, problems := plan.Parse(name, text)
	if p == nil {
		return problems
	}
	page := planPage{Plan: p}
	protocol, err := program(ctx, "plans", "show", name)
	if err != nil {
		return err
	}
	page.Protocol = markdownOf(protocol)
	page.Example = "examples/" + name + ".html"
	if err := writeExample(ctx, filepath.Join(folder, filepath.FromSlash(page.Example)), &page); err != nil {
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
