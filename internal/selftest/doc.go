// Package selftest shows that the numbers are right: it plays whole runs (plan,
// runner, journal, analysis) on the simulated device with a known law, and
// compares what the program reports with what is true.
//
// A study is many such runs. It gives figures with their Monte Carlo error and
// the bounds that they have to keep. Figures follow from the seed alone, except
// the harness's own cost, which is measured on this machine's clock. The truth
// comes from the law only, and no figure is stored: every one is simulated or
// measured when a study runs.
//
// studies.toml has the words and promises of each study, [Run] goes through
// them, and the other files hold their laws, designs and what is counted of a
// run.
package selftest
