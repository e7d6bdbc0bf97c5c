package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

// TestWarnings: what can be run all the same does not stop a plan.
func TestWarnings(t *testing.T) {
	many := strings.Replace(smallPlan, `size   = "1 GB"`, "size = \"200 GB\"\nband_size = \"1 MiB\"", 1)
	for _, c := range []struct{ text, warning string }{
		{smallPlan, ""},
		{many, "190735 bands when full"},
		{strings.Replace(many, "1 MiB\"", "1 MiB\"\nallow_many_bands = true", 1), ""},
		{strings.Replace(many, "1 MiB", "2 MiB", 1), ""},
		{smallPlan + "[matrix]\nformat = [\"UDRW\", \"UDSB\"]\nband_size = [\"8 MiB\"]\n", "band_size has no meaning for UDRW"},
	} {
		p, problems := plan.Parse("w.toml", []byte(c.text))
		require.NotNil(t, p, c.warning)
		if c.warning == "" {
			assert.Nil(t, problems, c.text)
			continue
		}
		require.Len(t, problems.Warnings(), 1)
		assert.Contains(t, problems.Items[0].String(), "warning: ")
		assert.Contains(t, problems.Items[0].Message, c.warning)
	}
}

// TestExecutedPlansAreLenient: a plan as executed may have lost the cases that
// its figures and claims are about.
func TestExecutedPlansAreLenient(t *testing.T) {
	text := spacePlan + "[[claim]]\nsays = \"x\"\nby = \"us\"\nleft = { write = { format = \"UDRW\", phase = \"last\" } }\nbound = \"> 1 GB/s\"\n"
	p := mustParse(t, text)
	only, err := p.ParseSelector("format=UDSB")
	require.NoError(t, err)
	q, changes := apply(t, p, plan.Overrides{Only: only})
	assert.Equal(t, []plan.Change{{Kind: "only", Text: "only format=UDSB: 1 of 2 cases"}}, changes)
	assert.Len(t, q.Claims, 1)
	_, problems := plan.Parse("x.toml", []byte(strings.Replace(text, `["UDSB", "UDRW"]`, `["UDSB"]`, 1)))
	assert.Contains(t, problems.Error(), "no case is format=UDRW", "without the change it is an error")
}

// TestClaimNames: names are made from the sentence and stay apart.
func TestClaimNames(t *testing.T) {
	claim := "[[claim]]\nsays = \"Größer, faster — better!\"\nby = \"us\"\nleft = { write = { } }\nbound = \"> 1 GB/s\"\n"
	p := mustParse(t, smallPlan+claim+claim)
	assert.Equal(t, "gr-er-faster-better", p.Claims[0].ID)
	assert.Equal(t, "gr-er-faster-better-2", p.Claims[1].ID)
	assert.Equal(t, "any", p.Claims[0].Scope)
	assert.InDelta(t, 1e9, p.Claims[0].Assert.Bound.Low, 0)
	roundTrip(t, p)
}

// TestDefaults: what a plan leaves out is filled in.
func TestDefaults(t *testing.T) {
	p := mustParse(t, smallPlan)
	assert.Equal(t, plan.Settings{
		TargetSettings: plan.TargetSettings{Target: "image"},
		ImageSettings: plan.ImageSettings{Format: "UDSB", Encryption: "none", Filesystems: []string{"APFS", "ext4", "exFAT"}, Size: 1e9,
			VolumeName: "BENCH", Backend: "auto", ServedBy: "auto", Mount: "private", Verify: "on"},
		IOSettings:     plan.IOSettings{Files: "few", Workers: 1, Sync: "fsync", Cache: "direct", QoS: "default"},
		StreamSettings: plan.StreamSettings{Codec: "zstd"}}, p.Defaults)
	assert.Equal(t, plan.RunOptions{Rounds: 3, Baseline: true, Canary: true, Seed: 1, Estimator: "aggregate", FitsIn: 0.98}, p.Run)
	s := p.Protocol[0].Steps
	assert.Equal(t, "last", s[3].Batch)
	assert.Equal(t, "same-as-written", s[3].Order)
	assert.True(t, *s[1].Mount)
	assert.False(t, *s[1].ReadOnly)
	assert.Nil(t, s[1].Verify, "the tool's own way")
	assert.Equal(t, []int{13, 3}, []int{s[1].Line, s[1].Column})
}
