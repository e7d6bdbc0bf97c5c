package cli

import (
	"os"
	"path/filepath"

	"dmgbench/internal/analysis"
	"dmgbench/internal/report"
	"dmgbench/internal/report/text"
	"dmgbench/internal/result"
)

// historyPages are the formats that show run after run, in the order of time.
var historyPages = []string{"trends", "markdown", "html"}

func (a *app) historyPage(o historyOptions) error {
	runs, err := a.past(o, a.headlined)
	if err != nil {
		return err
	}
	at, err := folderOf(o.Dir)
	if err != nil {
		return err
	}
	list := make([]analysis.HistoryRun, len(runs))
	for i, p := range runs {
		list[i] = analysis.HistoryRun{Result: p.result, Name: p.Dir, Baseline: p.Baseline}
		if page := filepath.Join(p.path, result.ReportFile); isFile(page) {
			list[i].Path = relative(at, page)
		}
	}
	h := analysis.NewHistory(list, func(r analysis.HistoryRun) (*result.Result, error) {
		return a.readRun(filepath.Join(at, filepath.FromSlash(r.Name)))
	})
	switch o.Format {
	case "html":
		return report.HistoryHTML(a.out, h)
	case "markdown":
		return text.DocumentMarkdown(a.out, report.HistoryDocument(h))
	}
	return text.Document(a.out, report.HistoryDocument(h), a.textOptions())
}

// headlined is what a page shows of a run: the headlines of its result.json, or of what
// plan and journal of an unfinished run say so far.
func (a *app) headlined(path string) (pastRun, error) {
	var r *result.Result
	err := os.ErrNotExist
	if !hasResult(path) {
		r, err = soFar(path)
	}
	if err != nil { // a journal whose plan is lost has a place on the page still
		if r, err = a.upToDate(path, result.ReadSummary); err != nil {
			return pastRun{}, err
		}
	}
	p := newPastRun(r)
	for i := range r.Cases {
		r.Cases[i].Steps = nil // a page of a thousand runs holds their headlines only
	}
	r.Claims, r.Fits, r.Relations, r.Tables = nil, nil, nil, nil
	p.result = r
	return p, nil
}

func isFile(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}
