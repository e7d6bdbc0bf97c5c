package selftest

import (
	"context"
	"fmt"
	"math"
	"time"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/simulated"
	"dmgbench/internal/hostio"
	"dmgbench/internal/stats"
	"dmgbench/internal/workload"
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

// measureOverhead times files of the simulated device on the real clock: it
// spins for the law's time, so that whatever is on top is the harness's (and
// one reading of the clock, by which the spinning may end late).
func measureOverhead(ctx context.Context, files int) (Overhead, error) {
	c := clock.NewReal()
	o := Overhead{Tick: tick(c)}
	small, err := timesAboveLaw(ctx, c, 64<<10, 0, files)
	if err != nil {
		return o, err
	}
	blocks, err := timesAboveLaw(ctx, c, 64<<10, 4<<10, files)
	if err != nil {
		return o, err
	}
	large, err := timesAboveLaw(ctx, c, largeFile, 0, max(files/20, 20))
	if err != nil {
		return o, err
	}
	mid := func(xs []float64, p float64) float64 {
		v, e := stats.Quantile(xs, p)
		if e != nil {
			err = e
		}
		return v
	}
	o.File, o.File95 = mid(small, 0.5), mid(small, 0.95)
	o.Call = max(0, (mid(blocks, 0.5)-o.File)/15)
	// Long spins are interrupted by whatever else runs here: the quickest tenth
	// are the harness's own.
	o.Byte = max(0, (mid(large, 0.1)-mid(small, 0.1))/largeFile)
	o.Files = len(small) + len(blocks) + len(large)
	o.Smallest = o.SmallestHonest(10e9)
	return o, err
}

// largeFile is the size in bytes of the files that show what a byte costs.
const largeFile = 16 << 20

// tick is the median time between two readings of the clock.
func tick(c clock.Clock) float64 {
	xs := make([]float64, 1001)
	for i := range xs {
		from := c.Now()
		xs[i] = float64(c.Now() - from)
	}
	// Finite, and not empty
	m, _ := stats.Median(xs)
	return m
}

// timesAboveLaw writes files of one size and reports what each took more than
// the law, in nanoseconds.
func timesAboveLaw(ctx context.Context, c clock.Clock, size, block int64, n int) ([]float64, error) {
	const rate = 10e9
	dev, err := simulated.New(simulated.Machine{Law: simulated.Law{Write: rate, Read: rate}}, c, 1, 1)
	if err != nil {
		return nil, err
	}
	con, err := dev.Create(ctx, nil, "overhead", engine.Spec{})
	if err != nil {
		return nil, err
	}
	att, err := con.Attach(ctx, engine.AttachOptions{})
	if err != nil {
		return nil, err
	}
	data, err := workload.NewData(1, 1, "overhead", workload.DataZero, 0)
	if err != nil {
		return nil, err
	}
	items := make([]workload.Item, n)
	for i := range items {
		items[i] = workload.Item{Name: fmt.Sprintf("%06d", i), Size: size, Set: 1}
	}
	out, err := workload.Write(ctx, att.Volume(), items,
		workload.Options{Clock: c, Data: data, Block: block, Sync: hostio.SyncNone, Cache: workload.CacheDirect})
	if err != nil {
		return nil, err
	}
	above := make([]float64, len(out.Samples))
	for i, s := range out.Samples {
		calls, each := int64(1), s.Bytes
		if block > 0 {
			calls, each = s.Bytes/block, block
		}
		above[i] = float64(s.DurationNS) - float64(calls)*math.Round(float64(each)/rate*float64(time.Second))
	}
	return above, nil
}

// overhead: what does the harness itself cost?
func (x *exam) overhead(ctx context.Context, d *draft) error {
	o, err := measureOverhead(ctx, x.runs(2000, 400))
	if err != nil {
		return err
	}
	x.cost = &o
	d.fillHow(o.Files)
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
	for _, rate := range []float64{0.5e9, 1e9, 5e9, 10e9} {
		device := fmt.Sprintf("%g GB/s", rate/1e9)
		if rate < 1e9 {
			device = fmt.Sprintf("%g MB/s", rate/1e6)
		}
		size := fmt.Sprintf("%.1f kB", float64(o.SmallestHonest(rate))/1e3)
		smallest.Rows = append(smallest.Rows, []string{device, size})
	}
	d.Tables = []Table{cost, smallest}
	d.bounds[0].take("median file", o.File, 0, o.Files)
	d.bounds[1].take("files of 16 MiB", o.Byte, 0, o.Files)
	return nil
}
