// Package stats holds the estimators, intervals, tests and fits that the
// analysis of a run rests on. It is a leaf: it works on plain float64 slices,
// imports only the standard library, and does not know disks, files or
// units. Which estimate belongs to which question is decided by its callers.
//
// # What it promises
//
//   - The caller's slices are never sorted or written to.
//   - The same input gives the same output, on every run: the methods that draw
//     random numbers ([FitTwoLines], [FitTwoClusters]) seed their generator from a digest
//     of the data. Only the last bits may differ between processor
//     architectures, where the compiler may fuse a multiplication and an
//     addition.
//   - Whatever is returned together with a nil error is finite. NaN, an
//     infinity, an empty or short sample, slices of different lengths and
//     results too large for a float64 are errors, never silent numbers; see
//     [ErrTooFew] and its neighbours. The bare distribution functions
//     ([StudentCDF], [NormalCDF] …) and the At methods of the fits have no
//     error result and give NaN outside of their domain.
//   - No function panics, whatever the input.
//
// # What it refuses to do
//
// It does not give an interval that the sample is too small for. A method with
// an exact level reports the level that it has (a median of ten values has an
// interval of 97.9 %, not of 95 %); where no interval reaches the level asked
// for, the interval is withheld with a [TooFewError] that names the n needed.
// It removes no outliers: [Outliers] returns their indices, and the robust
// estimators bear with them.
//
// All levels are probabilities between 0 and 1 (0.95, not 95), all tests are
// two-sided, and all p values are unadjusted; [Holm] adjusts a family of them.
package stats
