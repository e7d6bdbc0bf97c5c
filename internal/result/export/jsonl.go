package export

import (
	"encoding/json"
	"io"

	"dmgbench/internal/result"
)

// sampleLine is one line of the jsonl export: a sample with all that describes
// it.
type sampleLine struct {
	Schema     int               `json:"schema"`
	Run        string            `json:"run"`
	Plan       string            `json:"plan"`
	Digest     string            `json:"plan_digest"`
	Seed       uint64            `json:"seed"`
	Tool       string            `json:"tool"`
	Engine     string            `json:"engine"`
	OS         string            `json:"os"`
	Arch       string            `json:"arch"`
	Model      string            `json:"model"`
	Case       string            `json:"case"`
	Keys       map[string]string `json:"keys"`
	Baseline   bool              `json:"baseline"`
	Target     *result.Target    `json:"target"`
	Round      int               `json:"round"`
	Counts     bool              `json:"counts"`
	Session    int               `json:"session"`
	Step       int               `json:"step"`
	Do         string            `json:"do"`
	Phase      string            `json:"phase"`
	Op         string            `json:"op"`
	Cycle      int               `json:"cycle"`
	Workers    int               `json:"workers"`
	Cache      string            `json:"cache"` // achieved
	Sync       string            `json:"sync"`  // achieved
	File       string            `json:"file"`
	Set        int               `json:"set"`
	Order      int               `json:"order"`
	Worker     int               `json:"worker"`
	Bytes      int64             `json:"bytes"`
	StartNS    int64             `json:"start_ns"`
	DurationNS int64             `json:"duration_ns"`
	Rate       *float64          `json:"rate"` // B/s; null where no time was measured
	Warnings   []result.Warning  `json:"warnings"`
}

// writeJSONL writes one line for each timed file. A line can be understood
// without the others. Lines of rounds that do not count have "counts": false.
func writeJSONL(w io.Writer, rs []*result.Result, _ string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // names stay readable: the lines are not for HTML
	for _, r := range rs {
		if err := writeSamples(enc, r); err != nil {
			return err
		}
	}
	return nil
}

// writeSamples writes the lines of one run.
func writeSamples(enc *json.Encoder, r *result.Result) error {
	for ci := range r.Cases {
		c := &r.Cases[ci]
		keys := make(map[string]string, len(c.Keys))
		for _, kv := range c.Keys {
			keys[kv[0]] = kv[1]
		}
		// One line value for all samples of a step: only the fields of the
		// sample change.
		for si := range c.Steps {
			line := newSampleLine(r, c, &c.Steps[si])
			line.Keys = keys
			for _, f := range c.Steps[si].Samples {
				line.File, line.Set, line.Order, line.Worker = f.File, f.Set, f.Order, f.Worker
				line.Bytes, line.StartNS, line.DurationNS, line.Rate = f.Bytes, f.StartNS, f.DurationNS, nil
				if v, ok := rate(f.Bytes, f.DurationNS); ok {
					line.Rate = &v
				}
				if err := enc.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// newSampleLine fills in what the samples of a step have in common.
func newSampleLine(r *result.Result, c *result.Case, s *result.Step) *sampleLine {
	at := sessionOf(r, s.Session)
	line := &sampleLine{
		Schema: r.Schema, Run: r.Run, Plan: r.Plan.Name, Digest: r.Plan.Digest, Seed: r.Seed,
		Tool: r.Tool.Name + " " + r.Tool.Version, Engine: at.Engine.Title,
		OS: osName(at.Host), Arch: at.Host.Arch, Model: at.Host.Model,
		Case: c.ID, Baseline: c.Baseline, Target: &c.Target, Round: s.Round, Counts: c.Counts(s.Round),
		Session: s.Session, Step: s.Index, Do: s.Do, Phase: s.Phase, Op: s.Op, Cycle: s.Cycle, Workers: s.Workers,
		Warnings: append([]result.Warning{}, s.Warnings...),
	}
	if s.Cache != nil {
		line.Cache = s.Cache.Achieved
	}
	if s.Sync != nil {
		line.Sync = s.Sync.Achieved
	}
	return line
}
