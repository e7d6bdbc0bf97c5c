package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

const casesPlan = `
schema = 1
title  = "cases"
[image]
size = "1 GB"
[matrix]
place      = ["internal", "usb4"]
format     = ["UDRW", "UDSB"]
encryption = ["none", "AES-256"]
exclude    = [{ format = "RAW", encryption = "AES-256", place = "usb4" }]
[[case]]
format = "ASIF"
size   = "2 GB"
[[case]]
format = "UDSP"
place  = "usb4"
cores  = "4"
[[manual]]
name   = "cores"
values = [2, 4]
instructions = "give it {value} cores"
check  = "cpus"
[files.few]
sizes = ["1 MB"]
[[protocol]]
steps = [{ do = "create" }, { do = "attach" }, { do = "write", phase = "new" }]
[[protocol]]
when  = { encryption = "none" }
steps = [{ do = "read", phase = "new" }]
[[protocol]]
when  = { cores = [4], target = "image" }
steps = [{ do = "measure", phase = "end" }]
`

func ids(cases []plan.Case) []string {
	out := make([]string, len(cases))
	for i, c := range cases {
		out[i] = c.ID
	}
	return out
}

func TestCases(t *testing.T) {
	cases := mustParse(t, casesPlan).Cases()
	assert.Equal(t, []string{
		"cores=2,place=internal,format=UDRW,encryption=none",
		"cores=2,place=internal,format=UDRW,encryption=AES-256",
		"cores=2,place=internal,format=UDSB,encryption=none",
		"cores=2,place=internal,format=UDSB,encryption=AES-256",
		"cores=2,place=usb4,format=UDRW,encryption=none",
		"cores=2,place=usb4,format=UDSB,encryption=none",
		"cores=2,place=usb4,format=UDSB,encryption=AES-256",
		"cores=2,format=ASIF,size=2 GB",
		"baseline=true,cores=2,place=internal",
		"baseline=true,cores=2,place=usb4",
		"baseline=true,cores=2,place=",
		"cores=4,place=internal,format=UDRW,encryption=none",
		"cores=4,place=internal,format=UDRW,encryption=AES-256",
		"cores=4,place=internal,format=UDSB,encryption=none",
		"cores=4,place=internal,format=UDSB,encryption=AES-256",
		"cores=4,place=usb4,format=UDRW,encryption=none",
		"cores=4,place=usb4,format=UDSB,encryption=none",
		"cores=4,place=usb4,format=UDSB,encryption=AES-256",
		"cores=4,format=ASIF,size=2 GB",
		"cores=4,format=UDSP,place=usb4",
		"baseline=true,cores=4,place=internal",
		"baseline=true,cores=4,place=usb4",
		"baseline=true,cores=4,place=",
	}, ids(cases))
	assert.Len(t, cases[0].Steps, 4)
	assert.Len(t, cases[1].Steps, 3)
	assert.Len(t, cases[8].Steps, 4, "a folder is not encrypted: the baseline reads as well")
	assert.Len(t, cases[11].Steps, 5)
	assert.Equal(t, "2 GB", cases[7].Settings.Size.String())
	assert.Equal(t, []plan.KeyValue{{Key: "cores", Value: "4"}}, cases[19].Settings.Manual)
	assert.Equal(t, "1 GB", cases[19].Settings.Size.String())
}

// TestBaselines: one native case for each way of working, none where the plan
// measures that folder itself.
func TestBaselines(t *testing.T) {
	p := mustParse(t, smallPlan+"[matrix]\nworkers = [1, 4]\nband_size = [\"4 MiB\", \"8 MiB\"]\n")
	assert.Equal(t, []string{
		"workers=1,band_size=4 MiB", "workers=1,band_size=8 MiB", "workers=4,band_size=4 MiB", "workers=4,band_size=8 MiB",
		"baseline=true,workers=1", "baseline=true,workers=4",
	}, ids(p.Cases()))
	p = mustParse(t, smallPlan+"[matrix]\ntarget = [\"image\", \"directory\"]\n")
	assert.Equal(t, []string{"target=image", "target=directory"}, ids(p.Cases()))
	p = mustParse(t, smallPlan)
	assert.Equal(t, []string{"format=UDSB", "baseline=true"}, ids(p.Cases()))
	p = mustParse(t, smallPlan+"[run]\nbaseline = false\n")
	assert.Equal(t, []string{"format=UDSB"}, ids(p.Cases()))
}

func TestSelector(t *testing.T) {
	have := map[string]string{"format": "UDRW", "band_size": "8388608 B", "size": "1000 MB", "workers": "04", "cores": "4.0", "place": "usb4", "preallocate": "true"}
	get := func(key string) (string, bool) { v, ok := have[key]; return v, ok }
	for _, s := range []plan.Selector{
		nil,
		{{Key: "format", Values: []string{"RAW"}}},
		{{Key: "format", Values: []string{"UDSB", "RAW"}}},
		{{Key: "band_size", Values: []string{"8 MiB"}}},
		{{Key: "band_size", Values: []string{"default"}}},
		{{Key: "size", Values: []string{"1 GB"}}},
		{{Key: "workers", Values: []string{"4"}}, {Key: "cores", Values: []string{"4"}}},
	} {
		assert.True(t, s.Match(get), s)
	}
	for _, s := range []plan.Selector{
		{{Key: "format", Values: []string{"UDSB"}}},
		{{Key: "size", Values: []string{"1 GiB"}}},
		{{Key: "phase", Values: []string{"new"}}},
		{{Key: "place", Values: []string{"USB4"}}},
		{{Key: "format", Values: []string{"RAW"}}, {Key: "workers", Values: []string{"5"}}},
	} {
		assert.False(t, s.Match(get), s)
	}
	have["baseline"], have["target"] = "true", "directory"
	assert.False(t, plan.Selector{}.Match(get), "the baseline is not meant")
	assert.True(t, plan.Selector{{Key: "baseline", Values: []string{"true"}}}.Match(get))
	assert.True(t, plan.Selector{{Key: "target", Values: []string{"directory"}}}.Match(get))
}

func TestParseSelector(t *testing.T) {
	p := mustParse(t, casesPlan)
	s, err := p.ParseSelector("format=RAW|UDSB, cores=4,workers=1,preallocate=false,size=1000 MB")
	require.NoError(t, err)
	assert.Equal(t, "format=UDRW|UDSB,cores=4,workers=1,preallocate=false,size=1 GB", s.String())
	for text, cause := range map[string]string{
		"format": "want key=value", "format=": "is not accepted here", "formt=UDSB": `did you mean "format"`, "phase=new": `unknown key "phase"`,
		"workers=two": "want a whole number", "format=UDSB,format=UDRW": "each key once", "size=1": "unit is missing", "": "want key=value",
	} {
		_, err := p.ParseSelector(text)
		require.ErrorContains(t, err, cause, text)
		wrong := &plan.OverrideError{}
		require.ErrorAs(t, err, &wrong)
	}
}
