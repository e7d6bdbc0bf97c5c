// Package report arranges a result for people, and makes all sentences of the
// output; the packages below its folder print them as a page, on a terminal and
// as Markdown.
//
// It reads results and plans and never measures, judges or repairs: every
// number it prints is in the result, or is a mean, a median, a line or an
// interval of the result's samples, by internal/stats and internal/analysis,
// that is labelled so. A number is shown with its interval, its n and its
// warnings, or it is not shown. The output depends on the input alone (no
// clock, no randomness, no host), so the same run renders to the same bytes.
// Names in a result are hostile text and are treated as such everywhere.
package report
