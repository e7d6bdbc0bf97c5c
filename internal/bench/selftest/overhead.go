package selftest

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"dmgbench/internal/analysis/stats"
	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// Overhead is what the harness itself adds to the times that it takes on this
// machine. All are nanoseconds.
type Overhead struct {
	// A file of one call, median
	File float64 `json:"file_ns"`
	// The same, 95th percentile
	File95 float64 `json:"file_p95_ns"`
	// Each further call of a file
	Call float64 `json:"call_ns"`
	// Each byte, in addition to what the device takes, from the largest files
	Byte float64 `json:"byte_ns"`
	// Between two readings of the clock, median
	Tick float64 `json:"tick_ns"`
	// Timed
	Files int `json:"files"`
	// Smallest honest file in bytes on a device of 10 GB/s
	Smallest int64 `json:"smallest_10g"`
}

// honestTimes is how many times the harness's own cost a file has to take: five
// per cent of its time are then not the device's. The warning small-files has
// the same.
const honestTimes = 20

// SmallestHonest is the size in bytes from which on a file takes so long at
// rate (bytes per second) that what the harness adds is at most one part in
// twenty.
func (o Overhead) SmallestHonest(rate float64) int64 {
	return int64(math.Ceil(honestTimes * o.File * rate / 1e9))
}

const (
	// smallFile and largeFile are sizes in bytes: the first show what a file
	// costs, the second what a byte costs.
	smallFile = 64 << 10
	largeFile = 16 << 20

	// blocks is the number of calls of a small file that show what a call
	// costs.
	blocks = 16
)

// measureOverhead times files of the simulated device on the real clock: it
// spins for the law's time, so that whatever is on top is the harness's (and
// one reading of the clock, by which the spinning may end late).
func (x *exam) measureOverhead(files int) (o Overhead) {
	c := clock.NewReal()
	ticks := make([]float64, 1001)
	for i := range ticks {
		from := c.Now()
		ticks[i] = float64(c.Now() - from)
	}
	quantile := func(xs []float64, p float64) float64 {
		v, err := stats.Quantile(xs, p)
		x.err = cmp.Or(x.err, err)
		return v
	}
	timed := func(size, block int64, n int) []float64 {
		above, err := x.timesAboveLaw(c, size, block, n)
		x.err = cmp.Or(x.err, err)
		return above
	}
	o.Tick = quantile(ticks, 0.5)
	one, several := timed(smallFile, 0, files), timed(smallFile, smallFile/blocks, files)
	large := timed(largeFile, 0, max(files/20, 20))
	o.File, o.File95 = quantile(one, 0.5), quantile(one, 0.95)
	o.Call = max(0, (quantile(several, 0.5)-o.File)/(blocks-1))
	// Long spins are interrupted by whatever else runs here: the quickest tenth
	// are the harness's own.
	o.Byte = max(0, (quantile(large, 0.1)-quantile(one, 0.1))/largeFile)
	o.Files = len(one) + len(several) + len(large)
	o.Smallest = o.SmallestHonest(10e9)
	return o
}

// timesAboveLaw writes n files of one size to a simulated device, in calls of
// block bytes unless that is 0, and returns what each took more than the law, in
// nanoseconds.
func (x *exam) timesAboveLaw(c clock.Clock, size, block int64, n int) (above []float64, err error) {
	const rate = 10e9
	dev, err := simulated.New(simulated.Machine{Law: simulated.Law{Write: rate, Read: rate}}, c, 1, 1)
	if err != nil {
		return nil, err
	}
	con, err := dev.Create(x.ctx, nil, "overhead", engine.Spec{})
	if err != nil {
		return nil, err
	}
	att, err := con.Attach(x.ctx, engine.AttachOptions{})
	if err != nil {
		return nil, err
	}
	data := workload.NewData(1, 1, "overhead", workload.DataZero, 0)
	items := make([]workload.Item, n)
	for i := range items {
		items[i] = workload.Item{Name: fmt.Sprintf("%06d", i), Size: size, Set: 1}
	}
	out, err := workload.Write(x.ctx, att.Volume(), items,
		workload.Options{Clock: c, Data: data, Block: block, Sync: hostio.SyncNone, Cache: workload.CacheDirect})
	for _, s := range out.Samples {
		calls, each := int64(1), s.Bytes
		if block > 0 {
			calls, each = s.Bytes/block, block
		}
		law := float64(calls) * math.Round(float64(each)/rate*float64(time.Second))
		above = append(above, float64(s.DurationNS)-law)
	}
	return above, err
}

// overhead: what does the harness itself cost?
func (x *exam) overhead(s *Study) {
	o := x.measureOverhead(choose(x, 2000, 400))
	x.cost = &o
	s.fillHow(o.Files)
	ns := func(v float64) string { return fmt.Sprintf("%.0f ns", v) }
	cost := Table{Title: "Cost of the harness", Head: []string{"what", "cost"}, Rows: [][]string{
		{"a file of one call, median", ns(o.File)},
		{"a file of one call, 95th percentile", ns(o.File95)},
		{"each further call of a file", ns(o.Call)},
		{"each byte", fmt.Sprintf("%.5f ns", o.Byte)},
		{"two readings of the clock", ns(o.Tick)},
	}}
	smallest := Table{Title: "Smallest honest file: at most one part in twenty of its time is the harness's",
		Head: []string{"device", "size"}}
	for _, rate := range []units.Rate{0.5e9, 1e9, 5e9, 10e9} {
		smallest.Rows = append(smallest.Rows, []string{rate.String(),
			fmt.Sprintf("%.1f kB", float64(o.SmallestHonest(float64(rate)))/1e3)})
	}
	s.Tables = []Table{cost, smallest}
	s.Promises[0].take("median file", o.File, 0, o.Files)
	s.Promises[1].take("files of 16 MiB", o.Byte, 0, o.Files)
}
