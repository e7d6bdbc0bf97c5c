package plan_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// TestEstimateGold is the gold standard set: 160 files, 53,300,000,000 bytes
// (methodology 1.1: "just over 53 GB").
// defaultBand is the band of a sparse bundle in bytes where a plan names none.
const defaultBand = 8 << 20

func TestEstimateGold(t *testing.T) {
	p := mustParse(t, strings.Replace(smallPlan, "[files.few]\nsizes = [\"1 MB\", \"2 MB\"]\nsets  = 3\n", goldFiles, 1)+"[run]\nbaseline = false\n[target]\nkind = \"directory\"\n")
	cases := p.Cases()
	require.Len(t, cases, 1)
	e := plan.Estimate(p, cases[0])
	assert.Equal(t, 160, e.Files)
	assert.Equal(t, units.Bytes(53_300_000_000), e.BytesWritten)
	assert.Equal(t, units.Bytes(53_300_000_000), e.BytesRead)
	assert.Equal(t, units.Bytes(53_300_000_000), e.LivePeak)
	assert.Equal(t, units.Bytes(53_300_000_000), e.HostPeak)
	assert.False(t, e.Approximate)
}

// TestEstimateSpace is the space-efficiency protocol (methodology P-C): 266.5 GB
// written, 90.5 GB live at the peak, and a new UDRW counts in full.
func TestEstimateSpace(t *testing.T) {
	p := mustParse(t, spacePlan)
	cases := p.Cases()
	require.Len(t, cases, 3)
	for _, c := range cases {
		e := plan.Estimate(p, c)
		assert.Equal(t, 800, e.Files, c.ID)
		assert.Equal(t, units.Bytes(266_500_000_000), e.BytesWritten, c.ID)
		assert.Equal(t, units.Bytes(90_500_000_000), e.LivePeak, c.ID)
		assert.False(t, e.Approximate)
	}
	assert.Equal(t, "format=UDSB", cases[0].ID)
	assert.Equal(t, roundBands(125_000_000_000), plan.Estimate(p, cases[0]).HostPeak, "never more than its size in whole bands")
	assert.Equal(t, units.Bytes(125_000_000_000), plan.Estimate(p, cases[1]).HostPeak)
	assert.Equal(t, units.Bytes(90_500_000_000), plan.Estimate(p, cases[2]).HostPeak, "a folder gives space back at once")
	var compacts int
	for _, s := range plan.Estimate(p, cases[0]).Steps {
		if s.Do == "compact" {
			compacts++
			assert.Zero(t, s.Live)
		}
		if s.Do == "delete" && s.Cycle > 0 {
			assert.Equal(t, 40, s.Files)
			assert.Equal(t, units.Bytes(44_000_000_000), s.Bytes)
		}
	}
	assert.Equal(t, 1, compacts)
}

func roundBands(n units.Bytes) units.Bytes {
	return (n + defaultBand - 1) / defaultBand * defaultBand
}

// TestEstimateSteps follows bytes through every kind of step that moves some.
func TestEstimateSteps(t *testing.T) {
	p := mustParse(t, stepsPlan)
	e := plan.Estimate(p, p.Cases()[0])
	assert.True(t, e.Approximate)
	live := map[string]units.Bytes{}
	for _, s := range e.Steps {
		live[s.Do+" "+s.Phase] = s.Live
	}
	assert.Equal(t, units.Bytes(24e6), live["write a"])
	assert.Equal(t, units.Bytes(24e6), live["verify a"])
	assert.Equal(t, units.Bytes(6e6), live["delete sets"])
	assert.Equal(t, units.Bytes(30e6), live["write b"])
	assert.Equal(t, units.Bytes(10e6), live["copy "]-live["delete share"])
	assert.Equal(t, units.Bytes(20e6), live["stream "]-live["delete share"])
	assert.Equal(t, 12+12+1+1+12, e.Files, "three writes, a copy and a stream; the write that is expected to fail does not count")
	assert.Equal(t, units.Bytes(24e6+24e6+10e6+10e6+24e6), e.BytesWritten)
	assert.Equal(t, units.Bytes(24e6+30e6+10e6), e.BytesRead)
	band := live["write c"] + units.Bytes(0)
	assert.Equal(t, units.Bytes(200e6+100e6)+roundBands(band), e.HostPeak, "container, its copy, and bands of the converted one")
}

const stepsPlan = `
schema = 1
title  = "steps"
[image]
format = "UDRW"
size   = "100 MB"
[run]
baseline = false
[inputs.ipsw]
about = "x"
size  = "10 MB"
[files.few]
sizes = ["1 MB", "2 MB", "3 MB"]
sets  = 4
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "a" },
  { do = "verify", phase = "a" },
  { do = "delete", last_sets = 3, phase = "sets" },
  { do = "write", phase = "b" },
  { do = "read", phase = "b", batch = "all" },
  { do = "delete", every_other = true },
  { do = "delete", share = "50%", batch = "last", phase = "share" },
  { do = "copy", from = "ipsw", to = "a" },
  { do = "stream", from = "a", to = "b" },
  { do = "write", phase = "x", expect = "fail" },
  { do = "detach" },
  { do = "transfer", as = "t" },
  { do = "convert", as = "c", format = "UDSB" },
  { do = "attach", on = "c" },
  { do = "write", phase = "c", on = "c" },
  { do = "resize", size = "200 MB" },
]
`

func TestEstimateNativeDropsContainers(t *testing.T) {
	p := mustParse(t, strings.Replace(stepsPlan, "baseline = false", "baseline = true", 1))
	cases := p.Cases()
	require.Len(t, cases, 2)
	base := cases[1]
	assert.True(t, base.Baseline)
	for _, s := range base.Steps {
		assert.NotContains(t, []string{"transfer", "convert", "resize"}, s.Do)
		assert.Empty(t, s.On)
	}
	assert.Equal(t, "baseline=true", base.ID)
	assert.Equal(t, "directory", base.Settings.Target)
}

// A block that has to fail counts with what its containers may come to occupy
// until one is overfull, and with nothing behind it.
func TestABlockThatHasToFailEndsWhereTheVolumeIsFull(t *testing.T) {
	p, problems := plan.Parse("full", []byte(`schema = 1
title = "Full"
[image]
format = "UDSB"
size = "10 MB"
[files.few]
sizes = ["1 MB"]
sets = 2
[run]
baseline = false
[[protocol]]
steps = [ { do = "create" }, { do = "attach" },
  { do = "repeat", times = 100000, expect = "fail", steps = [ { do = "write", phase = "full" } ] } ]
`))
	require.Empty(t, problems.Errors(), "%v", problems)
	got := plan.Estimate(p, p.Cases()[0])
	assert.EqualValues(t, 12e6, got.BytesWritten, "the sixth cycle does not fit")
	assert.EqualValues(t, 2*defaultBand, got.HostPeak)
	assert.Zero(t, got.LivePeak)
	assert.True(t, got.Approximate)
}

// TestEstimateKilled: files that are written until the image is killed count in full, on the copy.
func TestEstimateKilled(t *testing.T) {
	p := mustParse(t, `schema = 1
title = "Killed"
[image]
format = "UDSP"
size = "100 MB"
[files.few]
sizes = ["1 MB", "2 MB"]
[files.more]
sizes = ["4 MB"]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", files = "few" },
  { do = "detach" },
  { do = "damage", as = "cut", kind = "tail" },
  { do = "damage", as = "hurt", kind = "killed", files = "more", phase = "killed" },
  { do = "recover", on = "hurt" },
]
[run]
baseline = false
`)
	e := plan.Estimate(p, p.Cases()[0])
	assert.Equal(t, 3, e.Files)
	assert.Equal(t, units.Bytes(7_000_000), e.BytesWritten)
	assert.Equal(t, units.Bytes(7_000_000), e.BytesRead, "what is compared")
	assert.Equal(t, units.Bytes(3_000_000), e.LivePeak, "on the case's own volume")
	assert.True(t, e.Approximate)
	killed, recovered := e.Steps[5], e.Steps[6]
	assert.Equal(t, 1, killed.Files)
	assert.Equal(t, units.Bytes(4_000_000)+e.Steps[4].Bytes, killed.Bytes, "the copy and the files")
	assert.Equal(t, 3, recovered.Files)
	assert.Equal(t, units.Bytes(7_000_000), recovered.Live)
	assert.Positive(t, e.HostPeak)
}

// What a random step transfers in a time is not known; the file that it makes counts once.
func TestEstimateRandom(t *testing.T) {
	text, err := os.ReadFile("testdata/good/random.toml")
	require.NoError(t, err)
	p := mustParse(t, string(text))
	e := plan.Estimate(p, p.Cases()[0])
	assert.Equal(t, units.Bytes(64<<20), e.LivePeak)
	assert.Equal(t, units.Bytes(65<<20), e.BytesWritten)
	assert.Equal(t, units.Bytes(16<<20), e.BytesRead)
	assert.Equal(t, 1, e.Files)
	assert.True(t, e.Approximate)
	assert.Equal(t, plan.StepTotal{Do: "random", Phase: "mixed", Files: 1, Bytes: 64 << 20, Live: 64 << 20, Wait: 10e9}, e.Steps[2])
	assert.Equal(t, plan.StepTotal{Do: "random", Phase: "read", Files: 1, Bytes: 16 << 20, Live: 64 << 20}, e.Steps[3])

	q, changes, err := p.Apply(plan.Overrides{Scale: 0.5, Workers: 3})
	require.NoError(t, err)
	require.Len(t, changes, 2)
	steps := q.Cases()[0].Steps
	assert.Equal(t, []units.Bytes{32 << 20, 8 << 20}, []units.Bytes{steps[2].FileSize, steps[3].Amount})
	assert.Equal(t, 3, steps[3].Workers)
	assert.Equal(t, units.Duration(10e9), steps[2].Time)
}
