package stats

import "math"

// MinForLook is the number of values from which on a sequential sample is first
// looked at: a standard deviation of fewer is too often small by chance.
const MinForLook = 5

// Looks are the sizes at which a sample that grows until its interval is narrow
// enough is looked at: from [MinForLook] to last in equal ratios of at most 2,
// ascending, the last being last itself. A last below MinForLook is the only look.
//
// A sample that is stopped because its interval happens to be narrow is stopped
// when its scatter happens to be small, so that intervals at their nominal level
// cover less than that (Starr, Annals of Mathematical Statistics 37, 1966). With k
// looks fixed beforehand, each at the level of [LookLevel], the chance that any of
// the k intervals misses is at most 1 - level by Bonferroni's inequality, and with it
// that of the one at which the sample was stopped, whatever the rule to stop is. This
// is the spending of the error in equal parts (Slud and Wei, Journal of the American
// Statistical Association 77, 1982). Few looks cost little width, and looks in equal
// ratios overshoot by at most a factor.
func Looks(last int) []int {
	if last <= MinForLook {
		return []int{max(last, 1)}
	}
	steps := math.Ceil(math.Log2(float64(last) / MinForLook))
	var out []int
	for k := range int(steps) {
		out = append(out, int(math.Round(MinForLook*math.Pow(float64(last)/MinForLook, float64(k)/steps))))
	}
	return append(out, last)
}

// LookLevel is the level of the interval at each of so many looks that together
// keep level, above 0 and below 1. One look, or none, keeps level itself.
func LookLevel(level float64, looks int) float64 {
	return 1 - (1-level)/float64(max(looks, 1))
}
