package runner

import (
	"cmp"
	"time"

	"dmgbench/internal/image"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// Times on an idle virtual machine with two cores of an AMD EPYC and an NVMe
// disk, by `scripts/estimates.sh`, which compares estimates with the truth. They
// are those of the processor more than of the disk: of that the rate is measured.
const (
	stepTime      = 5 * time.Millisecond   // its records, flushed
	caseTime      = 60 * time.Millisecond  // making and removing folders and images
	keyTime       = 120 * time.Millisecond // deriving the keys of an encrypted image
	createKeys    = 4                      // and choosing the number of iterations
	fileTime      = 200 * time.Microsecond // opening and closing, and flushes of small files
	operationTime = 100 * time.Microsecond // on a file of a tree, or a block
	stableTime    = 3 * time.Second        // of until_stable
	dataRate      = 2e9                    // bytes per second of made or compared data
)

// engineTimes are the times of an engine.
type engineTimes struct {
	create, attach, detach, check time.Duration
	operation                     time.Duration // in addition, where the kernel and a server take part
}

// timesOf are the times of engines by their names; the others are Apple's, whose
// tools take about as long as those of Linux, where the daemon answers at once.
var timesOf = map[string]engineTimes{
	"directory": {create: time.Millisecond, attach: time.Millisecond, detach: time.Millisecond},
	"inprocess": {20 * time.Millisecond, 8 * time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond, 0},
	"hdiutil": {110 * time.Millisecond, 80 * time.Millisecond, 100 * time.Millisecond, 50 * time.Millisecond,
		200 * time.Microsecond},
}

// codecRates are the bytes per second that two cores encode and decode.
var codecRates = map[string][2]float64{
	"UDRO": {1e9, 2e9}, "UDCO": {40e6, 300e6}, "UDZO": {40e6, 280e6}, "UDBZ": {5e6, 13e6}, "ULFO": {45e6, 400e6},
	"ULMO": {3.5e6, 33e6}, "zstd": {400e6, 1e9}, "s2": {1e9, 2e9}, "gzip": {60e6, 300e6}, "lzfse": {150e6, 500e6},
}

// speeds are what a forecast assumes of a machine.
type speeds struct {
	engine string  // name
	rate   float64 // bytes per second of the place
}

// AssumedRate is the rate of estimates where it has not been measured, in bytes per
// second: that of a SATA SSD, so that estimates are too long rather than too short
// on newer disks.
const AssumedRate = units.Rate(500e6)

// at is the time of so many bytes at a rate.
func at[N int64 | float64 | units.Bytes](bytes N, rate float64) time.Duration {
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}

// step is how long a step takes in a case, without waiting.
func (v speeds) step(c plan.Case, w plan.Work) time.Duration {
	t := timesOf[v.engine]
	if w.Native {
		t = timesOf["directory"]
	}
	encrypted := time.Duration(0)
	if c.Settings.Encryption != image.NotEncrypted && !w.Native {
		encrypted = keyTime
	}
	bytes, files := w.Bytes, time.Duration(w.Files)
	moved := at(bytes, v.rate) + files*fileTime
	codec := codecRates[w.Format]
	decoded := time.Duration(0) // all of a read-only image
	if codec[1] > 0 {
		decoded = at(w.Live, codec[1])
	}
	attach := t.attach + encrypted
	switch w.Do {
	case "create":
		return stepTime + t.create + createKeys*encrypted
	case "attach":
		return stepTime + attach + decoded
	case "detach":
		return stepTime + t.detach
	case "remount":
		return stepTime + time.Duration(max(w.Step.Times, 1))*(attach+t.detach)
	case "write", "verify", "copy", "damage":
		return stepTime + moved + at(bytes, dataRate)
	case "stream":
		rates := codecRates[cmp.Or(w.Step.Codec, c.Settings.Codec)]
		if w.Step.Direction == "decompress" {
			return stepTime + moved + at(bytes, rates[1])
		}
		return stepTime + moved + at(bytes, rates[0])
	case "edit": // through the cache, and flushed
		return stepTime + moved + files*stepTime
	case "tree":
		return stepTime + at(bytes, v.rate) + files*(operationTime+t.operation)
	case "copy_out": // and compared, and removed
		return stepTime + decoded + 2*moved + files*(operationTime+t.operation)
	case "random":
		return stepTime + at(bytes-w.Step.Amount, v.rate) + v.randomTime(c, w, t)
	case "convert":
		encode := v.rate
		if codec[0] > 0 {
			encode = codec[0]
		}
		return stepTime + t.create + 2*createKeys*encrypted + at(w.Live, v.rate) + at(bytes, encode)
	case "transfer":
		return stepTime + 2*at(bytes, v.rate)
	case "manifest":
		return stepTime + at(w.Held, v.rate)
	case "check":
		return stepTime + t.check + encrypted
	case "recover":
		return stepTime + 2*(attach+t.detach) + t.check + moved + at(bytes, dataRate)
	case "read":
		return stepTime + moved
	case "settle":
		if w.Step.UntilStable {
			return stepTime + stableTime
		}
	}
	return stepTime + files*fileTime // delete, and what hardly takes any
}

// randomTime is the time of an amount of blocks at random places; that of a
// step with a time is waiting.
func (v speeds) randomTime(c plan.Case, w plan.Work, t engineTimes) time.Duration {
	block, workers := cmp.Or(w.Step.Block, c.Settings.Block), max(cmp.Or(w.Step.Workers, c.Settings.Workers), 1)
	if block == 0 {
		return 0
	}
	n := float64(w.Step.Amount) / float64(block)
	return at(w.Step.Amount, v.rate) + time.Duration(n*float64(operationTime+t.operation)/float64(workers))
}

// canaryTime is that of a canary.
func (v speeds) canaryTime() time.Duration {
	return 2*stepTime + 2*at(units.Bytes(canaryFiles*canaryBytes), v.rate)
}
