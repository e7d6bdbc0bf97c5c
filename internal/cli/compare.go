package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit statuses of compare alone.
const (
	exitRegression = 5
	exitUndecided  = 6
)

var compareFormats = []string{"text", "markdown", "json", "html", "junit", "summary"}

type compareOptions struct {
	Runs      []string
	Baseline  string
	Against   string
	Strict    bool
	By        []string
	Ops       []string
	Threshold string
	Estimator string
	Format    string
	share     float64
}

func (o *compareOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Baseline, "baseline", "", "`run` (or side of --by) that the others are set against (default the first)")
	f.StringVar(&o.Against, "against", "", "compare with this `run`, in addition to those given; \"baseline\": the one that history baseline marked")
	f.BoolVar(&o.Strict, "strict", false, "end with 6 where a regression is neither found nor excluded")
	f.StringSliceVar(&o.By, "by", nil, "`facts` that make the sides, such as model,os: runs that agree in them are sessions of one side")
	f.StringSliceVar(&o.Ops, "op", nil, "`quantities` to compare, such as write,read, or all (default the rates)")
	f.StringVar(&o.Threshold, "threshold", "5%", "`share` from which a change for the worse is a regression")
	f.StringVar(&o.Estimator, "estimator", "", "`name` of the estimator of rates (default the one that the plan quotes)")
	f.StringVar(&o.Format, "format", "text", "output `format`: text, markdown, json, html, junit (XML) or summary (short Markdown)")
}

func (o *compareOptions) validate() error {
	if !slices.Contains(compareFormats, o.Format) {
		return want("format", o.Format, compareFormats)
	}
	if o.Estimator != "" && !slices.Contains(analysis.Estimators(), o.Estimator) {
		return want("estimator", o.Estimator, analysis.Estimators())
	}
	if slices.Contains(o.Ops, "all") {
		o.Ops = analysis.CompareOps()
	}
	for _, op := range o.Ops {
		if !slices.Contains(analysis.CompareOps(), op) {
			return want("op", op, append([]string{"all"}, analysis.CompareOps()...))
		}
	}
	if o.Against != "" && o.Baseline != "" {
		return &usageError{err: errors.New("reading --against: --baseline is given as well"), hint: "--against RUN makes RUN the baseline"}
	}
	digits, percent := strings.CutSuffix(strings.TrimSpace(o.Threshold), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !percent || !(share > 0 && share < 100) {
		return &usageError{err: fmt.Errorf("reading --threshold: %q is not a percentage such as 5%%", o.Threshold),
			hint: "more than 0% and less than 100%"}
	}
	o.share = share / 100
	return nil
}

func (a *app) newCompareCommand(runF func(compareOptions) error) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use: "compare RUN...", GroupID: "report", Args: between(1, -1, "RUN"),
		Short: "set runs against each other; exit 5 on a regression",
		Long: `Set runs against each other: run folders, or the result.json out of them. A
folder that contains run folders, as run --sessions makes it, is one side. What
has the same case, phase, quantity and files is paired; what has not is listed
with the reason. What differs between the machines, systems, tools and plans
stands before any number.

The unit is the session. Whatever a session was like is in all its rounds and
files, so that one run on each side shows what was seen and decides nothing
("~ session effect unknown"). Repeat the runs, on another day or after a
restart, and take them together with --by: all runs that agree in the facts
named are the sessions of one side. Three on each side are good; two on both,
or three on one, are the least. The claims of a side are judged on all its runs
pooled, and decide from three sessions on.

--by takes facts of runs (` + wrapList(analysis.CompareFacts, 78, 32) + `)
and keys of cases, such as place or format: then the cases of one run are set
against each other, paired in the sessions that they share.

--format junit is XML for CI servers: a test for each row, case that could not
be compared and required claim; a regression is a failure, and what is undecided
is skipped (with --strict a failure). --format summary is Markdown for
$GITHUB_STEP_SUMMARY.

EXIT STATUS
  0  compared; no regression was found
  1  error
  2  bad usage, or runs of which nothing can be compared
  5  a regression: a row is worse by more than --threshold, significant after
     Holm's correction over all rows; or a claim with require = true holds on
     one side and does not on the other, over three sessions or more on each
  6  with --strict: no regression was found, and none is excluded: a row is
     undecided, or is worse by an amount that may exceed --threshold; a value
     was measured on one side alone; or a required claim is undecided`,
		Example: "  dmgbench compare runs/before runs/after\n" +
			"  dmgbench run quick --sessions 3 --out runs/after\n" +
			"  dmgbench compare runs/after --against baseline --strict\n" +
			"  dmgbench compare runs/26.4-* runs/26.5-* --by os --threshold 10%\n" +
			"  dmgbench compare runs/three-disks --by place --format markdown",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Runs = args
			if err := o.validate(); err != nil {
				return err
			}
			return runF(o)
		},
	}
	o.AddFlags(cmd.Flags())
	oneOf(cmd, "format", compareFormats)
	oneOf(cmd, "by", analysis.CompareFacts)
	oneOf(cmd, "op", append([]string{"all"}, analysis.CompareOps()...))
	oneOf(cmd, "estimator", analysis.Estimators())
	return cmd
}

// wrapList writes names behind a first column, lines no longer than wide.
func wrapList(names []string, wide, column int) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
			column += 2
		}
		if column+len(n)+2 > wide {
			b.WriteString("\n")
			column = 0
		}
		b.WriteString(n)
		column += len(n)
	}
	return strings.ReplaceAll(b.String(), ", \n", ",\n")
}

func (a *app) runCompare(o compareOptions) error {
	in, err := a.readCompared(o)
	if err != nil {
		return err
	}
	c, err := analysis.Compare(in.runs, in.opts)
	if errors.Is(err, analysis.ErrCompare) {
		return &usageError{err: err, hint: "dmgbench help compare says what is compared with what"}
	}
	if err != nil {
		return err
	}
	if err := a.renderComparison(c, o); err != nil {
		return err
	}
	switch {
	case c.Regression:
		return status(exitRegression)
	case len(c.Rows) == 0:
		return &usageError{err: errors.New("comparing runs: nothing of them could be paired"), hint: "the comparison says of each what kept it from that"}
	case o.Strict && c.Undecided:
		return status(exitUndecided)
	}
	return nil
}

// readRun is the result of a run: its result.json, or what plan and journal say
// where there is none yet or they were changed since.
func (a *app) readRun(path string) (r *result.Result, err error) {
	if fi, err := os.Stat(path); err != nil || !fi.IsDir() {
		return result.ReadResult(path)
	}
	if hasResult(path) {
		r, err = a.upToDate(path, result.ReadResult)
	} else {
		r, err = soFar(path)
	}
	if err != nil && !strings.Contains(err.Error(), path) {
		err = fmt.Errorf("reading run %q: %w", path, err)
	}
	return r, err
}

// readOwnPlan reads the plan in the folder of a run; nil where there is none, or not the one that was executed.
func readOwnPlan(path string, r *result.Result) *plan.Plan {
	fi, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if !fi.IsDir() {
		path = filepath.Dir(path)
	}
	path = filepath.Join(path, result.PlanFile)
	if fi, err = os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() > plan.MaxSize {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	p, problems := plan.Parse(r.Plan.Name+".toml", text)
	if len(problems.Errors()) > 0 || !p.Is(r.Plan.Digest, text) {
		return nil
	}
	return p
}

// hasResult reports whether there is anything in the place of a result.json.
func hasResult(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, result.ResultFile))
	return !errors.Is(err, os.ErrNotExist)
}

// soFar is what plan and journal of a run folder say.
func soFar(dir string) (*result.Result, error) {
	d, err := result.OpenRun(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	_, r, err := judge(d)
	return r, err
}

// runNames calls the runs as the command line does, as far as that tells them apart.
func runNames(paths []string, runs []*result.Result) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		p = filepath.Clean(p)
		if filepath.Base(p) == result.ResultFile {
			p = filepath.Dir(p)
		}
		out[i] = strings.TrimSuffix(filepath.Base(p), ".json")
		if out[i] == "." || out[i] == string(filepath.Separator) {
			out[i] = runs[i].Run
		}
	}
	for i, n := range out {
		for k := range out[:i] {
			if out[k] == n && filepath.Clean(paths[k]) != filepath.Clean(paths[i]) {
				out[k], out[i] = filepath.Clean(paths[k]), filepath.Clean(paths[i])
			}
		}
	}
	return out
}

func (a *app) renderComparison(c *analysis.Comparison, o compareOptions) error {
	switch o.Format {
	case "junit":
		return report.ComparisonJUnit(a.out, c, report.JUnitOptions{Time: a.clock.Wall(), Strict: o.Strict})
	case "summary":
		return text.DocumentMarkdown(a.out, report.SummaryDocument(c))
	case "html":
		return report.ComparisonHTML(a.out, c)
	case "markdown":
		return text.DocumentMarkdown(a.out, report.ComparisonDocument(c))
	case "json":
		b, err := json.MarshalIndent(c, "", "  ")
		if err != nil {
			return fmt.Errorf("encoding the comparison: %w", err)
		}
		_, err = a.out.Write(append(b, '\n'))
		return err
	}
	return text.Document(a.out, report.ComparisonDocument(c), a.textOptions())
}
