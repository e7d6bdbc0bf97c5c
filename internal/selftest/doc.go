// Package selftest proves that the numbers are right: it plays whole runs (plan,
// runner, journal, analysis) on the simulated device with a known law, and
// compares what the program reports with what is true.
//
// A study is many such runs. It gives figures with their Monte Carlo error and
// the bounds that they have to keep; figures follow from the seed alone, but
// those of the harness's own cost, which are measured on this machine's clock.
// The package refuses to know the truth from anywhere but the law, and stores no
// figure: every one is simulated or measured when it is asked for.
package selftest
