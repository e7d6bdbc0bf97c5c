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

	"dmgbench/internal/plan"
	"dmgbench/internal/runner"
	"dmgbench/internal/units"
	"dmgbench/internal/workload"
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
	}
	y.peak = max(y.peak, y.live())
}

var caseLine = regexp.MustCompile(`(?m)^  (about )?(\d+) files?, (\d+) B written \(.*\), (\d+) B read, live peak (.*), host peak (.*)$`)

// Every shipped plan dry-runs, and says what the drawn files add up to.
func TestShippedPlansDryRun(t *testing.T) {
	for _, name := range plans.Names() {
		t.Run(name, func(t *testing.T) {
			p := loadShipped(t, name)
			var out bytes.Buffer
			require.NoError(t, runner.DryRun(&out, p, 500_000_000))
			lines := caseLine.FindAllStringSubmatch(out.String(), -1)
			cases := p.Cases()
			require.Len(t, lines, len(cases))
			var written, read int64
			for i, c := range cases {
				y := tally{t: t, p: p, c: c, boxes: map[string][]workload.Item{"": nil}, named: map[string]int64{}}
				for _, st := range unrolled(c.Steps) {
					y.step(st.Step)
				}
				y.compare(lines[i])
				written += number(t, lines[i][3])
				read += number(t, lines[i][4])
			}
			rounds := int64(p.Run.Rounds)
			last := out.String()[strings.LastIndex(out.String(), "\ntotal: "):]
			assert.Contains(t, last, fmt.Sprintf(" %d B (", written*rounds))
			assert.Contains(t, last, fmt.Sprintf(" %d B (", read*rounds))
		})
	}
}

// compare holds a line of the dry run against the sums.
func (y *tally) compare(line []string) {
	t, id := y.t, y.c.ID
	assert.Equal(t, strconv.Itoa(y.files), line[2], "%s: files", id)
	assert.Equal(t, y.written, number(t, line[3]), "%s: bytes written", id)
	if y.lot && line[1] != "" {
		assert.InEpsilon(t, float64(y.read)+1, float64(number(t, line[4]))+1, 0.05, "%s: bytes read, about", id)
	} else {
		assert.Empty(t, line[1], "%s: nothing of it is up to chance", id)
		assert.Equal(t, y.read, number(t, line[4]), "%s: bytes read", id)
		assert.Equal(t, units.Bytes(y.peak).Human(), line[5], "%s: live peak", id)
	}
	host, err := units.ParseBytes(line[6])
	require.NoError(t, err, line[6])
	s := y.c.Settings
	switch {
	case s.Target == "directory":
		assert.Equal(t, line[5], line[6], "%s: host peak of a folder", id)
	case s.Format == "UDRW" && len(y.boxes) == 1:
		assert.Equal(t, s.Size.Human(), line[6], "%s: a RAW image counts in full", id)
	case len(y.boxes) == 1:
		assert.LessOrEqual(t, host, s.Size+s.Size/100, "%s: host peak", id)
		assert.GreaterOrEqual(t, float64(host), 0.99*float64(y.peak), "%s: host peak", id)
	case s.Format == "UDRW":
		assert.Greater(t, host, s.Size, "%s: host peak of several containers", id)
	default:
		assert.Greater(t, float64(host), 1.9*float64(y.peak), "%s: host peak of several containers", id)
	}
}

func number(t *testing.T, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}
