package runner_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
	"dmgbench/plans"
)

// tally adds up a case from the files that a run would draw and delete, and
// from nothing that the dry run itself uses.
type tally struct {
	t     *testing.T
	p     *plan.Plan
	c     plan.Case
	boxes map[string][]workload.Item
	named map[string]int64 // files made by copy and stream, in the case's own container
	batch int
	lot   bool // a draw or the size of compressed data decides some of it
	// beyond is set by steps whose estimates have tests of their own, and that this sum knows nothing of.
	beyond bool

	files               int
	written, read, peak int64
}

func (y *tally) live() int64 {
	n := workload.Total(y.boxes[""])
	for _, size := range y.named {
		n += size
	}
	return n
}

func (y *tally) step(st plan.Step) {
	if st.Expect == "fail" {
		return
	}
	box := y.boxes[st.On]
	key := workload.Key{Seed: y.p.Run.Seed, Round: 1, Step: st.Phase + st.Do, Batch: y.batch}
	switch st.Do {
	case "write":
		y.batch++
		key.Batch = y.batch
		items := workload.Items(*(&model{t: y.t, p: y.p, c: y.c}).set(st), key)
		y.files += len(items)
		y.written += workload.Total(items)
		y.boxes[st.On] = append(box, items...)
	case "read", "verify":
		if st.Batch != "all" {
			box = workload.LastBatch(box)
		}
		y.read += workload.Total(box)
	case "delete":
		y.lot = y.lot || st.Share > 0 || st.Every
		y.boxes[st.On] = workload.Without(box, workload.Select(box, st, key))
		if st.All && st.Batch != "last" {
			clear(y.named)
		}
	case "copy", "stream":
		size, there := y.named[st.From]
		if there {
			y.read += size
		} else {
			size = int64(y.p.Inputs[0].Size)
		}
		y.lot = y.lot || st.Do == "stream"
		y.named[st.To] = size
		y.files++
		y.written += size
	case "convert", "transfer", "damage":
		y.boxes[st.As] = slices.Clone(box)
		y.beyond = y.beyond || st.Kind == "killed"
	case "tree", "edit", "random", "copy_out", "recover":
		y.beyond = true
	}
	y.peak = max(y.peak, y.live())
}

var (
	caseLine = regexp.MustCompile(`(?m)^case (.*?) +up to (.*) on the disk$`)
	sumLine  = regexp.MustCompile(`(?m)^  (?:each case: )?(about )?(\d+) files?, (.*) written, (.*) read, at most (.*) of files at a time$`)
)

// dryCase is what the dry run prints of a case.
type dryCase struct{ about, files, written, read, live, host string }

// readDryRun reads what the dry run prints of every case.
func readDryRun(text string) map[string]dryCase {
	cases := map[string]dryCase{}
	for block := range strings.SplitSeq(text, "\n\n") {
		sum := sumLine.FindStringSubmatch(block)
		for _, c := range caseLine.FindAllStringSubmatch(block, -1) {
			cases[c[1]] = dryCase{sum[1], sum[2], sum[3], sum[4], sum[5], c[2]}
		}
	}
	return cases
}

// Every shipped plan dry-runs, and prints what the drawn files add up to.
func TestShippedPlansDryRun(t *testing.T) {
	for _, name := range plans.Names() {
		t.Run(name, func(t *testing.T) {
			p := loadShipped(t, name)
			var out bytes.Buffer
			require.NoError(t, runner.DryRun(&out, p, nil, 500_000_000))
			printed := readDryRun(out.String())
			cases := p.Cases()
			require.Len(t, printed, len(cases))
			var written, read int64
			for _, c := range cases {
				y := tally{t: t, p: p, c: c, boxes: map[string][]workload.Item{"": nil}, named: map[string]int64{}}
				for _, st := range unrolled(c.Steps) {
					y.step(st.Step)
				}
				y.compare(printed[c.ID])
				e := plan.Estimate(p, c)
				written, read = written+int64(e.BytesWritten), read+int64(e.BytesRead)
			}
			rounds := int64(p.Run.Rounds)
			last := out.String()[strings.LastIndex(out.String(), "\ntotal: "):]
			assert.Contains(t, last, fmt.Sprintf(" %s written, %s read, ", units.Bytes(written*rounds).Human(), units.Bytes(read*rounds).Human()))
		})
	}
}

// compare holds what is printed of a case, and the estimate that it is printed from, against the sums.
func (y *tally) compare(d dryCase) {
	t, id, e := y.t, y.c.ID, plan.Estimate(y.p, y.c)
	if y.beyond {
		assert.Equal(t, e.BytesWritten.Human(), d.written, "%s: bytes written", id)
		assert.Equal(t, e.BytesRead.Human(), d.read, "%s: bytes read", id)
		assert.GreaterOrEqual(t, int64(e.BytesWritten), y.written, "%s: at least what write steps write", id)
		assert.GreaterOrEqual(t, int64(e.BytesRead), y.read, "%s: at least what read steps read", id)
		assert.GreaterOrEqual(t, e.Files, y.files, "%s: files", id)
		return
	}
	assert.Equal(t, strconv.Itoa(y.files), d.files, "%s: files", id)
	assert.EqualValues(t, y.written, e.BytesWritten, "%s: bytes written", id)
	assert.Equal(t, e.BytesWritten.Human(), d.written, "%s: bytes written", id)
	assert.Equal(t, e.BytesRead.Human(), d.read, "%s: bytes read", id)
	if y.lot && d.about != "" {
		assert.InEpsilon(t, float64(y.read)+1, float64(e.BytesRead)+1, 0.05, "%s: bytes read, about", id)
	} else {
		assert.Empty(t, d.about, "%s: nothing of it is up to chance", id)
		assert.EqualValues(t, y.read, e.BytesRead, "%s: bytes read", id)
		assert.Equal(t, units.Bytes(y.peak).Human(), d.live, "%s: most bytes of files", id)
	}
	host, err := units.ParseBytes(d.host)
	require.NoError(t, err, d.host)
	s := y.c.Settings
	switch {
	case s.Target == "directory":
		assert.Equal(t, d.live, d.host, "%s: host peak of a folder", id)
	case s.Format == "UDRW" && len(y.boxes) == 1:
		assert.Equal(t, s.Size.Human(), d.host, "%s: a RAW image counts in full", id)
	case len(y.boxes) == 1:
		assert.LessOrEqual(t, host, s.Size+s.Size/100, "%s: host peak", id)
		assert.GreaterOrEqual(t, float64(host), 0.99*float64(y.peak), "%s: host peak", id)
	case s.Format == "UDRW":
		assert.Greater(t, host, s.Size, "%s: host peak of several containers", id)
	default:
		assert.Greater(t, float64(host), 1.9*float64(y.peak), "%s: host peak of several containers", id)
	}
}
