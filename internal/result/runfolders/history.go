package runfolders

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/analysis"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// Run is one run of a history; history --format json prints it. Its keys are
// part of the interface for programs.
type Run struct {
	Dir        string         `json:"dir"` // relative to the folder of the history, with slashes
	Run        string         `json:"run"` // run id
	Plan       string         `json:"plan"`
	Title      string         `json:"title"`
	Digest     string         `json:"digest"`
	Status     string         `json:"status"`
	Started    time.Time      `json:"started"`
	Finished   time.Time      `json:"finished"` // of the last session; the zero time if it is not known
	Engine     string         `json:"engine"`   // its title
	EngineName string         `json:"engine_name"`
	System     string         `json:"system"`
	Machine    string         `json:"machine"`
	Host       string         `json:"host,omitempty"` // name of the machine
	Sessions   int            `json:"sessions"`
	Rounds     int            `json:"rounds"`
	Cases      map[string]int `json:"cases"`    // number by status
	Verdicts   map[string]int `json:"verdicts"` // number by verdict
	Departures int            `json:"departures"`
	Headline   *Headline      `json:"headline"` // null if no rate was measured
	Baseline   bool           `json:"baseline"`
	Pooled     int            `json:"pooled,omitempty"` // number of runs that the result was pooled from
	Quantity   *Headline      `json:"quantity"`         // in place of a headline; null if nothing was measured
	End        string         `json:"end"`              // how the last session ended, see [result.Session]
	RoundsDone int            `json:"case_rounds_done"` // of a run that has not ended
	RoundsOf   int            `json:"case_rounds"`      // that such a run will have, as far as that is known

	Path   string         `json:"-"` // of the run folder
	Result *result.Result `json:"-"` // only with headlines, see [Reader.List]
	report string         // path of the report as a link, "" for none
}

// Headline is the first rate of the first image, the one number that identifies
// a run in a list, or its first number of another unit.
type Headline struct {
	Case   string   `json:"case"`
	Phase  string   `json:"phase"`
	Op     string   `json:"op"`
	Value  float64  `json:"value"`
	Unit   string   `json:"unit"` // B/s of a headline
	Low    *float64 `json:"ci_low"`
	High   *float64 `json:"ci_high"`
	Native bool     `json:"-"` // the case is the native folder
}

// List reads the runs below a folder, newest first; unread names the folders
// that cannot be read, with the reason. With headlines each run keeps the part
// of its result that [Reader.History] needs.
func (rd *Reader) List(dir string, headlines bool) (list []Run, unread []string, err error) {
	list, unread, err = walk(rd, dir, func(rd *Reader, root, path string) (Run, error) {
		r, err := rd.listed(path, headlines)
		if err != nil {
			return Run{}, err
		}
		run := newRun(r)
		run.Path, run.Dir, run.report = path, slashPath(root, path), reportLink(root, path)
		run.Baseline = isFile(filepath.Join(path, BaselineFile)) || isFile(filepath.Join(path, "..", BaselineFile))
		if headlines {
			run.Result = r
		}
		return run, nil
	})
	slices.SortStableFunc(list, func(a, b Run) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(a.Dir, b.Dir))
	})
	return list, unread, err
}

// listed is the summary of one run. A list shows unfinished runs as their
// journals are, without estimates; headlines need an analysis, and fall back to
// the journal where the plan of an unfinished run is lost.
func (rd *Reader) listed(path string, headlines bool) (*result.Result, error) {
	if r := result.CurrentSummary(path); r != nil {
		return r, nil
	}
	if headlines {
		if r, err := rd.read(path, result.ReadSummary); err == nil {
			// The runs of a page may be a thousand, and steps hold the samples,
			// the largest part of a result.
			for i := range r.Cases {
				r.Cases[i].Steps = nil
			}
			return r, nil
		}
	}
	if !isFile(filepath.Join(path, result.ResultFile)) {
		return result.ReadSummary(path)
	}
	return rd.current(path, result.ReadSummary)
}

// newRun takes what a list shows out of a result or of its summary. System,
// machine and engine are those of the first session.
func newRun(r *result.Result) Run {
	run := Run{Run: r.Run, Plan: r.Plan.Name, Title: r.Plan.Title, Digest: r.Plan.Digest, Status: r.Status,
		Sessions: len(r.Sessions), Rounds: r.Rounds, Departures: len(r.Departures), Pooled: len(r.Runs),
		Cases: map[string]int{}, Verdicts: map[string]int{}, Headline: findHeadline(r, "B/s")}
	for _, unit := range []string{"1/s", "s"} {
		if run.Headline == nil && run.Quantity == nil {
			run.Quantity = findHeadline(r, unit)
		}
	}
	for _, c := range r.Cases {
		run.Cases[strings.ReplaceAll(r.DisplayStatus(&c), " ", "_")]++
		if r.Status != result.Unfinished || c.Status == result.Skipped {
			continue
		}
		run.RoundsOf += r.Rounds
		for _, round := range c.Rounds {
			if round.Status == result.Done {
				run.RoundsDone++
			}
		}
	}
	for _, c := range r.Claims {
		run.Verdicts[c.Verdict]++
	}
	if n := len(r.Sessions); n > 0 {
		first, host := r.Sessions[0], r.Sessions[0].Host
		run.End = r.Sessions[n-1].End
		run.Started, run.Finished = first.Started.UTC(), r.Sessions[n-1].Finished.UTC()
		run.Engine, run.EngineName = first.Engine.Title, first.Engine.Name
		run.System = strings.Join(strings.Fields(host.OS+" "+host.OSVersion+" "+host.OSBuild), " ")
		run.Machine, run.Host = strings.Trim(host.Model+", "+host.CPU, ", "), host.Name
	}
	return run
}

// findHeadline is the first number of this unit; it prefers that of an image to
// that of a native folder. nil if none was measured.
func findHeadline(r *result.Result, unit string) (headline *Headline) {
	native := map[string]bool{} // by case
	for _, c := range r.Cases {
		native[c.ID] = c.Baseline
	}
	for _, s := range r.Summaries {
		is := func(e result.Estimate) bool { return e.Name == s.Headline && e.Unit == unit }
		i := slices.IndexFunc(s.Estimates, is)
		if i < 0 || headline != nil && (native[s.Case] || !headline.Native) {
			continue
		}
		headline = &Headline{Case: s.Case, Phase: s.Phase, Op: s.Op, Value: s.Estimates[i].Value, Unit: unit,
			Native: native[s.Case]}
		if ci := s.Estimates[i].CI; ci != nil {
			headline.Low, headline.High = &ci.Low, &ci.High
		}
	}
	return headline
}

// History sorts listed runs, which have headlines, into series of one plan,
// machine and engine.
func (rd *Reader) History(list []Run) *analysis.History {
	entries, paths := make([]analysis.HistoryRun, len(list)), map[string]string{}
	for i, run := range list {
		entries[i] = analysis.HistoryRun{Result: run.Result, Name: run.Dir, Baseline: run.Baseline, Path: run.report}
		paths[run.Dir] = run.Path
	}
	return analysis.NewHistory(entries, rd.inFull(paths))
}

// inFull reads runs by the names that they have in a history or ledger.
func (rd *Reader) inFull(paths map[string]string) analysis.ReadRun {
	return func(run analysis.HistoryRun) (*plan.Plan, *result.Result, error) {
		path := paths[run.Name]
		r, err := rd.Result(path)
		if err != nil {
			return nil, nil, err
		}
		return Plan(path, r), r, nil
	}
}

// reportLink is the path of a run's report relative to root, "" where the run
// has no report.
func reportLink(root, run string) string {
	if page := filepath.Join(run, result.ReportFile); isFile(page) {
		return slashPath(root, page)
	}
	return ""
}

// Ledger collects the verdicts of all runs below a folder, unfinished ones
// included. Runs that cannot be read are listed as left out; an error is that
// none can be.
func (rd *Reader) Ledger(dir string) (*analysis.Ledger, error) {
	list, unread, err := walk(rd, dir, func(rd *Reader, root, path string) (analysis.HistoryRun, error) {
		r, err := rd.read(path, result.ReadSummary)
		if err != nil {
			return analysis.HistoryRun{}, err
		}
		r.Cases, r.Summaries = nil, nil // those of a thousand runs are many; runs that are pooled are read again
		return analysis.HistoryRun{Result: r, Name: slashPath(root, path), Path: reportLink(root, path)}, nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		err := fmt.Errorf("no readable run found below it%s", strings.Join(append([]string{""}, unread...), "; "))
		return nil, &result.Error{Doing: "reading folder", File: dir, Err: err, Hint: hintRuns}
	}
	paths := map[string]string{} // by name; walk reads several at once
	for _, run := range list {
		paths[run.Name] = filepath.Join(dir, filepath.FromSlash(run.Name))
	}
	l := analysis.NewLedger(list, rd.inFull(paths))
	l.LeftOut = append(l.LeftOut, unread...)
	return l, nil
}

// Prunable are the runs that have ended, except the newest keep of each plan.
// Baselines are neither deleted nor counted. runs are newest first.
func Prunable(runs []Run, keep int) (old []Run) {
	seen := map[string]int{}
	for _, r := range runs {
		if r.Baseline || r.Pooled > 0 || r.Status == result.Unfinished {
			continue
		}
		seen[r.Plan]++
		if seen[r.Plan] > keep {
			old = append(old, r)
		}
	}
	return old
}
