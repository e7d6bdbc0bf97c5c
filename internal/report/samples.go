package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"dmgbench/internal/analysis"
	"dmgbench/internal/result"
	"dmgbench/internal/stats"
)

// timedFile is one sample with the step it belongs to.
type timedFile struct {
	bytes, seconds float64
	round          int
}

func (f timedFile) rate() float64 { return f.bytes / f.seconds }

// fileSet are the timed files of one case, phase and direction over all rounds that count.
type fileSet struct {
	caseID, phase, op string
	workers           int
	files             []timedFile
}

// fileSets gathers the samples of writing and reading, in the order of cases and of the protocol.
func (v *View) fileSets() []fileSet {
	at := map[[3]string]int{}
	var out []fileSet
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		for _, s := range c.Steps {
			if len(s.Samples) == 0 || !IsShown(c, &s) || s.Op != "write" && s.Op != "read" {
				continue
			}
			k := [3]string{c.ID, s.Phase, s.Op}
			if _, ok := at[k]; !ok {
				at[k] = len(out)
				out = append(out, fileSet{caseID: c.ID, phase: s.Phase, op: s.Op})
			}
			set := &out[at[k]]
			set.workers = max(set.workers, s.Workers)
			for _, f := range s.Samples {
				if f.Bytes > 0 && f.DurationNS > 0 {
					set.files = append(set.files, timedFile{float64(f.Bytes), float64(f.DurationNS) / 1e9, s.Round})
				}
			}
		}
	}
	return out
}

// IsCanary reports whether a step is the short native write or read before a case,
// which tells of the machine and is no part of what the case shows.
func IsCanary(s *result.Step) bool { return s.Do == "canary" }

// IsShown reports whether a step's figures are shown: those of its round are, and the step did not fail.
func IsShown(c *result.Case, s *result.Step) bool {
	return !IsCanary(s) && s.Error == "" && (c.Shows(s.Round) || len(c.Rounds) == 0 && c.Status == result.Done)
}

// picture names one combination of direction and phase.
type picture struct{ op, phase string }

// maxPictures bounds how many combinations of direction and phase are drawn; the
// section says so where there are more.
const maxPictures = 16

// pictures lists direction × phase in protocol order, writes before reads.
func pictures(sets []fileSet) []picture {
	var out []picture
	for _, op := range []string{"write", "read"} {
		for _, s := range sets {
			if p := (picture{s.op, s.phase}); s.op == op && len(s.files) > 0 && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b picture) int { // all directions of the first phase come first
		return cmp.Compare(firstAt(sets, a.phase), firstAt(sets, b.phase))
	})
	return out
}

// drawn are the pictures that the report has.
func drawn(sets []fileSet) []picture {
	all := pictures(sets)
	return all[:min(len(all), maxPictures)]
}

// pointsPerPage bounds the points of single files in all pictures of time and residuals together: the page stays below 3 MB.
const pointsPerPage = 40_000

// pointsOf is how many points one picture of time or residuals may have.
func pointsOf(sets []fileSet) int {
	pictures := 0
	for _, p := range drawn(sets) {
		pictures += 2 * len(pictureSets(sets, p)) // each is drawn as times and as residuals
	}
	return min(pointsPerChart, pointsPerPage/max(pictures, 1))
}

// undrawn says which pictures there is no room for.
func (v *View) undrawn() string {
	all := pictures(v.fileSets())
	if len(all) <= maxPictures {
		return ""
	}
	return " Drawn are the first " + strconv.Itoa(maxPictures) + " of " + strconv.Itoa(len(all)) + " combinations of direction and phase; `export` has every file."
}

func firstAt(sets []fileSet, phase string) int {
	return slices.IndexFunc(sets, func(s fileSet) bool { return s.phase == phase })
}

// bySize is what the files of one size did.
type bySize struct {
	size           float64
	n              int
	low, top       float64 // slowest and fastest
	middle         float64 // rate, see [View.middle]
	interval       *result.CI
	withoutBecause string // why there is no interval
}

// maxSizes is the number of different sizes up to which each stands for itself.
const maxSizes = 32

// minRounds is the number of rounds from which an interval over rounds is made, and
// minFiles that of files from which the median of a mount has one of 95 %.
const (
	minRounds = 3
	minFiles  = 6
)

// middle is the rate of files of one size: with three rounds or more their mean of
// the medians of each round, with its t interval; else the median of all files, and
// of a single mount its exact interval over the files.
func (v *View) middle(files []timedFile) (b bySize) {
	b.n = len(files)
	byRound, all := map[int][]float64{}, make([]float64, len(files))
	for i, f := range files {
		all[i] = f.rate()
		byRound[f.round] = append(byRound[f.round], f.rate())
	}
	b.low, b.top = slices.Min(all), slices.Max(all)
	if len(byRound) >= minRounds {
		medians := map[int]float64{}
		for round, rates := range byRound {
			medians[round], _ = stats.Median(rates) // none is empty
		}
		e := analysis.MeanOverRounds(v.Result, "B/s", medians)
		b.middle, b.interval, b.withoutBecause = e.Value, e.CI, e.Why
		return b
	}
	b.middle, _ = stats.Median(all)
	switch iv, err := stats.MedianInterval(all, 0.95); {
	case len(byRound) > 1:
		b.withoutBecause = "2 rounds, and an interval needs 3"
	case err != nil:
		b.withoutBecause = "1 round of " + Count(b.n, "file") + ", and an interval over files takes " + strconv.Itoa(minFiles)
	default:
		b.interval = &result.CI{Low: iv.Low, High: iv.High, Level: iv.Level, Method: iv.Method, Unit: "file within one mount"}
	}
	return b
}

// sizesOf groups files by size, or by thirds of an octave if there are too many sizes.
func (v *View) sizesOf(files []timedFile) (out []bySize, binned bool) {
	columns, binned := sizeColumns([]fileSet{{files: files}})
	bins := map[float64][]timedFile{}
	for _, f := range files {
		k := sizeKey(f.bytes, binned)
		bins[k] = append(bins[k], f)
	}
	for _, c := range columns {
		b := v.middle(bins[c.key])
		b.size = c.size
		out = append(out, b)
	}
	return out, binned
}

// thin keeps every k-th file so that at most limit remain, always the same ones.
func thin(files []timedFile, limit int) (kept []timedFile, every int) {
	every = (len(files) + limit - 1) / max(limit, 1)
	if every <= 1 {
		return files, 1
	}
	for i := 0; i < len(files); i += every {
		kept = append(kept, files[i])
	}
	return kept, every
}

// sizeTicks are round sizes (1, 2, 5 of each decade) within a range, at most eight or only the decades.
func sizeTicks(low, high float64) []float64 {
	if low <= 0 || high < low {
		return nil
	}
	var fine, coarse []float64
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			t := m * math.Pow(10, e)
			if t < low*0.999 || t > high*1.001 {
				continue
			}
			fine = append(fine, t)
			if m == 1 {
				coarse = append(coarse, t)
			}
		}
	}
	if len(fine) <= 10 || len(coarse) < 2 {
		return fine
	}
	return coarse
}
