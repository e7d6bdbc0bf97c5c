package chart

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/analysis"
	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// Bounds of the charts of single files.
const (
	casesPerChart  = 10     // series that can be told apart
	pointsPerChart = 4000   // beyond it every k-th file is drawn, and the chart says so
	pointsPerPage  = 18_000 // of all charts of time and residuals together: the page stays below 3 MB
	maxSizes       = 32     // different sizes up to which each is a class of its own
)

// timedFile is one sample with the round that it belongs to.
type timedFile struct {
	bytes, seconds float64
	round          int
}

func (f timedFile) rate() float64 { return f.bytes / f.seconds }

func (f timedFile) size() float64 { return f.bytes }

func (f timedFile) time() float64 { return f.seconds }

// picture is a direction and phase, by which charts are grouped; one picture can fill
// several charts.
type picture struct{ op, phase string }

// heading is the name of the quantity, a text and the phase.
func (p picture) heading(text string) string {
	return report.Capitalize(report.QuantityName(p.op)) + text + report.PhaseSuffix(p.phase)
}

// fileSet are the timed files of one case, phase and direction over all rounds
// that count.
type fileSet struct {
	picture
	caseID  string
	workers int
	files   []timedFile
}

// columns are sizes in bytes and times in seconds, as fits take them.
func (s fileSet) columns() (sizes, seconds []float64) {
	return report.Map(s.files, timedFile.size), report.Map(s.files, timedFile.time)
}

// fileSets gathers the timed files of the shown steps that write and read, one set
// for each case, direction and phase, in the order of the steps.
func fileSets(v *report.View) []fileSet {
	var out []fileSet
	for c, s := range v.Steps() {
		if len(s.Samples) == 0 || !report.IsShown(c, s) || s.Op != "write" && s.Op != "read" {
			continue
		}
		p := picture{s.Op, s.Phase}
		at := slices.IndexFunc(out, func(o fileSet) bool { return o.caseID == c.ID && o.picture == p })
		if at < 0 {
			at, out = len(out), append(out, fileSet{picture: p, caseID: c.ID})
		}
		set := &out[at]
		set.workers = max(set.workers, s.Workers)
		for _, f := range s.Samples {
			if f.IsTimed() {
				set.files = append(set.files, timedFile{float64(f.Bytes), float64(f.DurationNS) / 1e9, s.Round})
			}
		}
	}
	return slices.DeleteFunc(out, func(s fileSet) bool { return len(s.files) == 0 })
}

// pictures lists direction × phase in the order of the protocol, writes before
// reads of the same phase.
func (r *run) pictures() []picture {
	out := report.AppendNew(nil, report.Map(r.sets, func(s fileSet) picture { return s.picture })...)
	first := func(p picture) int {
		return slices.IndexFunc(r.sets, func(s fileSet) bool { return s.phase == p.phase })
	}
	slices.SortStableFunc(out, func(a, b picture) int { return cmp.Or(first(a)-first(b), -cmp.Compare(a.op, b.op)) })
	return out
}

// setsOf are the sets of a picture.
func (r *run) setsOf(p picture) []fileSet {
	return report.Where(r.sets, func(s fileSet) bool { return s.picture == p })
}

// perPicture builds charts for each direction and phase, of at most so many
// cases each. The charts get their ids here; one without series is left out.
func (r *run) perPicture(kind string, cases int, build func(p picture, sets []fileSet) report.Chart) []report.Chart {
	var out []report.Chart
	for n, p := range r.pictures() {
		for part, some := range slices.Collect(slices.Chunk(r.setsOf(p), cases)) {
			if c := build(p, some); len(c.Series) > 0 {
				c.ID = fmt.Sprintf("%s-%d-%d", kind, n+1, part+1)
				out = append(out, c)
			}
		}
	}
	return out
}

// pointLimit is how many points one chart of times or residuals may have.
func (r *run) pointLimit() int {
	charts := 0
	for _, p := range r.pictures() {
		charts += 2 * ((len(r.setsOf(p)) + casesPerChart - 1) / casesPerChart) // times, and residuals
	}
	return min(pointsPerChart, pointsPerPage/max(charts, 1))
}

// thin keeps every k-th file so that at most limit remain. It returns k. A fixed
// step, and no random choice, keeps the output the same.
func thin[T any](files []T, limit int) (kept []T, every int) {
	every = max((len(files)+limit-1)/max(limit, 1), 1)
	for i := 0; i < len(files); i += every {
		kept = append(kept, files[i])
	}
	return kept, every
}

// setData has the numbers of some sets for captions: their number, the files in
// them, how many of these were under way at once, and the rounds that
// [run.summarize] averages over, 0 if it does not.
func (r *run) setData(sets []fileSet) data {
	d := data{"Cases": len(sets), "Rounds": 0}
	files, workers := 0, 0
	for _, s := range sets {
		files, workers = files+len(s.files), max(workers, s.workers)
	}
	if d["Files"], d["Workers"] = files, workers; r.Result.Rounds >= minRounds {
		d["Rounds"] = r.Result.Rounds
	}
	return d
}

// sizeAxis is file size on a logarithmic scale with round ticks.
func sizeAxis(sets []fileSet) report.Axis {
	return logAxis("file size", "B", sets, timedFile.size, 1.15)
}

// logAxis is a logarithmic axis that spans a value of all files, widened at both
// ends by the factor room.
func logAxis(name, unit string, sets []fileSet, of func(timedFile) float64, room float64) report.Axis {
	values := report.FlatMap(sets, func(s fileSet) []float64 { return report.Map(s.files, of) })
	a := report.Axis{Name: name, Unit: unit, Human: true}
	a.FitLog(slices.Min(values), slices.Max(values), room)
	return a
}

// sizeClass is what the files of one size, or of one class of sizes, did.
type sizeClass struct {
	middle    float64 // rate, see [run.summarize]
	low, high float64 // slowest and fastest rate
	n         int
	ci        *result.CI
	reason    string // why there is no interval
}

// Fewest rounds for an interval over rounds, and fewest files for an interval of
// 95 % within one mount, which stats.MedianInterval decides.
const (
	minRounds = 3
	minFiles  = 6
)

// summarize returns the middle, the extremes and the interval of the rates of files
// of one size. With three rounds or more the middle is the mean of the medians of
// the rounds, with its t interval; else the median of all files, with an exact
// interval if there is one round.
func (r *run) summarize(files []timedFile) sizeClass {
	byRound, all := map[int][]float64{}, report.Map(files, timedFile.rate)
	for i, f := range files {
		byRound[f.round] = append(byRound[f.round], all[i])
	}
	c := sizeClass{n: len(files), low: slices.Min(all), high: slices.Max(all)}
	// Rounds are the unit of replication: files of one mount are not
	// independent.
	if len(byRound) >= minRounds {
		medians := map[int]float64{}
		for round, rates := range byRound {
			medians[round], _ = stats.Median(rates) // none is empty
		}
		e := analysis.MeanOverRounds(r.Result, "B/s", medians)
		c.middle, c.ci, c.reason = e.Value, e.CI, e.Why
		return c
	}
	c.middle, _ = stats.Median(all)
	switch iv, err := stats.MedianInterval(all, 0.95); {
	case len(byRound) > 1:
		c.reason = "2 rounds, and an interval needs 3"
	case err != nil:
		c.reason = "1 round of " + report.Count(c.n, "file") + ", and an interval over files takes " +
			strconv.Itoa(minFiles)
	default:
		c.ci = &result.CI{Low: iv.Low, High: iv.High, Level: iv.Level, Method: iv.Method, Unit: "file within one mount"}
	}
	return c
}

// tip is a class of sizes in lines.
func (c sizeClass) tip() string {
	return tip("class-tip", data{"Middle": c.middle, "N": c.n, "CI": c.ci, "Low": c.low, "High": c.high})
}

// sizeClasses are the sizes of all sets in order, or thirds of an octave where
// there are too many sizes; key gives the class of a size.
type sizeClasses struct {
	keys, sizes []float64 // size is the geometric mean of a third of an octave
	binned      bool
}

func newSizeClasses(sets []fileSet) (c sizeClasses) {
	logs := map[float64][]float64{}
	sizes := report.FlatMap(sets, func(s fileSet) []float64 { return report.Map(s.files, timedFile.size) })
	distinct := slices.Compact(slices.Sorted(slices.Values(sizes)))
	c.binned = len(distinct) > maxSizes
	for _, size := range sizes {
		logs[c.key(size)] = append(logs[c.key(size)], math.Log(size))
	}
	c.keys = slices.Sorted(maps.Keys(logs))
	c.sizes = slices.Clone(c.keys)
	for i, k := range c.keys {
		if c.binned {
			mean, _ := stats.Mean(logs[k]) // none is empty
			c.sizes[i] = math.Exp(mean)
		}
	}
	return c
}

// Thirds of an octave are steps of 26 %.
func (c sizeClasses) key(bytes float64) float64 {
	if c.binned {
		return math.Floor(3 * math.Log2(bytes))
	}
	return bytes
}

// split groups files by class; a class may be empty.
func (c sizeClasses) split(files []timedFile) [][]timedFile {
	out := make([][]timedFile, len(c.keys))
	for _, f := range files {
		if i, ok := slices.BinarySearch(c.keys, c.key(f.bytes)); ok {
			out[i] = append(out[i], f)
		}
	}
	return out
}
