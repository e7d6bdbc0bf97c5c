package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/result"
)

// pastRun is one run of a history, as --format json prints it.
type pastRun struct {
	Dir        string         `json:"dir"` // below the folder of the history, with slashes
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
	Sessions   int            `json:"sessions"`
	Rounds     int            `json:"rounds"`
	Cases      map[string]int `json:"cases"`    // number by status
	Verdicts   map[string]int `json:"verdicts"` // number by verdict
	Departures int            `json:"departures"`
	Headline   *headline      `json:"headline"` // null if no rate was measured
	Baseline   bool           `json:"baseline"`
	Pooled     int            `json:"pooled,omitempty"` // how many runs the result was made of
	path       string
	result     *result.Result // only for a page
}

// headline is the first rate of the first image: one number to know a run by.
type headline struct {
	Case  string   `json:"case"`
	Phase string   `json:"phase"`
	Op    string   `json:"op"`
	Value float64  `json:"value"` // B/s
	Low   *float64 `json:"ci_low"`
	High  *float64 `json:"ci_high"`
}

// pastRuns reads the runs below a folder, newest first, and says of which others why they cannot be read.
func pastRuns(dir string, read func(path string) (pastRun, error)) (runs []pastRun, lost []string, err error) {
	dir, err = folderOf(dir)
	if err != nil {
		return nil, nil, err
	}
	runs, lost, err = readBelow(dir, func(path string) (pastRun, error) {
		p, err := read(path)
		p.path, p.Dir = path, relative(dir, path)
		return p, err
	})
	if err != nil {
		return nil, nil, err
	}
	marks := map[string][]string{} // baselines by the folder that holds them
	for i := range runs {
		own, err := isMarked(runs[i].path, marks)
		if err != nil {
			return nil, nil, err
		}
		set, err := isMarked(filepath.Dir(runs[i].path), marks) // the folder of run --sessions
		if err != nil {
			return nil, nil, err
		}
		runs[i].Baseline = own || set
	}
	slices.SortStableFunc(runs, func(a, b pastRun) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(a.Dir, b.Dir))
	})
	return runs, lost, nil
}

// isMarked reports whether the folder that holds a path marks it as a baseline.
func isMarked(path string, marks map[string][]string) (bool, error) {
	parent := filepath.Dir(path)
	if _, read := marks[parent]; !read {
		var err error
		if marks[parent], err = baselines(parent); err != nil {
			return false, err
		}
	}
	return slices.Contains(marks[parent], filepath.Base(path)), nil
}

// glanced is what a list shows of a run.
func (a *app) glanced(path string) (pastRun, error) {
	r, err := a.upToDate(path, result.ReadSummary)
	if err != nil {
		return pastRun{}, err
	}
	return newPastRun(r), nil
}

func newPastRun(r *result.Result) pastRun {
	p := pastRun{Run: r.Run, Plan: r.Plan.Name, Title: r.Plan.Title, Digest: r.Plan.Digest, Status: r.Status,
		Sessions: len(r.Sessions), Rounds: r.Rounds, Departures: len(r.Departures), Pooled: len(r.Runs),
		Cases: map[string]int{}, Verdicts: map[string]int{}, Headline: headlineOf(r)}
	for _, c := range r.Cases {
		p.Cases[c.Status]++
	}
	for _, c := range r.Claims {
		p.Verdicts[c.Verdict]++
	}
	if n := len(r.Sessions); n > 0 {
		first := r.Sessions[0]
		p.Started, p.Finished = first.Started.UTC(), r.Sessions[n-1].Finished.UTC()
		p.Engine, p.EngineName = first.Engine.Title, first.Engine.Name
		p.System = strings.Join(strings.Fields(first.Host.OS+" "+first.Host.OSVersion+" "+first.Host.OSBuild), " ")
		p.Machine = strings.Trim(first.Host.Model+", "+first.Host.CPU, ", ")
	}
	return p
}

// headlineOf prefers what was measured on an image; a run of folders alone has that of a folder.
func headlineOf(r *result.Result) *headline {
	native := map[string]bool{}
	for _, c := range r.Cases {
		native[c.ID] = c.Baseline
	}
	var found *headline
	for _, s := range r.Summaries {
		if found != nil && native[s.Case] {
			continue
		}
		for _, e := range s.Estimates {
			if e.Name != s.Headline || e.Unit != "B/s" {
				continue
			}
			h := &headline{Case: s.Case, Phase: s.Phase, Op: s.Op, Value: e.Value}
			if e.CI != nil {
				h.Low, h.High = &e.CI.Low, &e.CI.High
			}
			if !native[s.Case] {
				return h
			}
			found = h
		}
	}
	return found
}

// baselineFile stands beside run folders and names those that are baselines, a name a line.
const baselineFile = "baselines.txt"

// baselines are the names in the file of a folder, none if there is no such file.
func baselines(dir string) ([]string, error) {
	path := filepath.Join(dir, baselineFile)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!fi.Mode().IsRegular() || fi.Size() > 1<<20) {
		err = errors.New("it is not a list of baselines")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading baselines %q: %w", path, err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimRight(line, "\r\n"); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	return names, nil
}
