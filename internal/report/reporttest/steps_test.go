package reporttest

import (
	"fmt"
	"math"

	"dmgbench/internal/result"
)

// measure adds the steps of a case over all rounds.
func (b *run) measure(c *result.Case, law rates, phases ...string) {
	for round := 1; round <= b.r.Rounds; round++ {
		c.Rounds = append(c.Rounds, result.CaseRound{Round: round, Status: result.Done})
		live, index := int64(0), 0
		next := func(do, phase string) *result.Step {
			c.Steps = append(c.Steps, result.Step{Index: index, Do: do, Phase: phase, Round: round, Session: 1,
				StartNS: b.now, Expect: "ok", Live: live})
			index++
			return &c.Steps[len(c.Steps)-1]
		}
		timed := func(do string, seconds, spread float64) {
			s := next(do, "")
			s.DurationNS = int64((seconds + spread*Noise(c.ID, do, round)) * 1e9)
			b.now += s.DurationNS
		}
		b.files(next("canary", "canary"), "write", "", 2.5e9, 50e-6)
		timed("create", 0.02, 0.004)
		timed("attach", 0.02, 0.004)
		for n, phase := range phases {
			slow := 1 - 0.06*float64(n)
			w := next("write", phase)
			b.files(w, "write", c.ID, law.write*slow, law.latency)
			live += w.Span.Bytes
			w.Live = live
			b.files(next("read", phase), "read", c.ID, law.read*slow, law.latency/2)
			next("measure", phase).Disk = diskUse(c.Target, live)
			live -= live * 3 / 4
			next("delete", phase).Live = live
		}
		timed("detach", 0.01, 0.002)
	}
}

// diskUse is the size of a container after a phase.
func diskUse(t result.Target, live int64) *result.DiskUse {
	d := &result.DiskUse{Attached: true, Allocated: live * 104 / 100, Apparent: t.Size, VolumeFree: t.Size - live,
		HostFree: 900e9 - live}
	switch t.Format {
	case "UDRW":
		d.Allocated = max(d.Allocated, t.Size/2)
	case "UDSB":
		d.Bands = int(live/8_388_608) + 2
		d.BandsFull = d.Bands - 2
		d.Allocated = int64(d.Bands) * 8_388_608
	}
	return d
}

// files times two sets of files.
func (b *run) files(s *result.Step, op, id string, rate, latency float64) {
	s.Op, s.Workers = op, 1
	s.Cache = &result.Achieved{Asked: "direct", Achieved: "direct"}
	s.Sync = &result.Achieved{Asked: "fsync", Achieved: "full"}
	span := &result.Span{GateNS: b.now}
	day := 1 + 0.03*Noise(id, op, s.Round)
	for set := range 2 {
		for i := range sizes {
			at := (i*7 + set*5 + s.Round*3) % len(sizes)
			size := sizes[at]
			t := (latency + float64(size)/(rate*day)) * (1 + 0.08*Noise(id, op, s.Phase, s.Round, set, size))
			ns := int64(math.Round(t * 1e9))
			s.Samples = append(s.Samples, result.Sample{File: fmt.Sprintf("gold-%d-%02d", set+1, at+1), Bytes: size,
				StartNS: b.now, DurationNS: ns, Order: len(s.Samples), Set: set + 1})
			b.now += ns + 12_000
			span.Bytes += size
			span.BusyNS += ns
		}
	}
	span.LastDoneNS = b.now
	s.Span, s.DurationNS = span, b.now-s.StartNS
}

// summarise gives every case, phase and quantity its mean over the rounds.
func (b *run) summarise() {
	for _, c := range b.r.Cases {
		type key struct{ phase, op string }
		var keys []key
		values, files := map[key][]float64{}, map[key]int{}
		add := func(phase, op string, v float64, n int) {
			k := key{phase, op}
			if values[k] == nil {
				keys = append(keys, k)
			}
			values[k], files[k] = append(values[k], v), files[k]+n
		}
		for _, s := range c.Steps {
			switch {
			case s.Do == "canary":
			case s.Span != nil:
				add(s.Phase, s.Op, float64(s.Span.Bytes)/float64(s.Span.BusyNS)*1e9, len(s.Samples))
			case s.Disk != nil:
				add(s.Phase, "allocated", float64(s.Disk.Allocated), 1)
				add(s.Phase, "live", float64(s.Live), 1)
				if s.Disk.Bands > 0 {
					add(s.Phase, "bands", float64(s.Disk.Bands), 1)
				}
			case s.Do == "attach" || s.Do == "detach" || s.Do == "create":
				add("", s.Do+"_time", float64(s.DurationNS)/1e9, 1)
			}
		}
		for _, k := range keys {
			b.r.Summaries = append(b.r.Summaries, newSummary(c.ID, k.phase, k.op, values[k], files[k]))
		}
	}
}
