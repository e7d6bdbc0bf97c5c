package analysis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// planned is what some sessions of a plan measured, and its plan in the options of a comparison.
func planned(t require.TestingT, o *CompareOptions, name string, p *plan.Plan, sessions int, factor float64) (out []*result.Result) {
	if o.Plans == nil {
		o.Plans = map[string]*plan.Plan{}
	}
	o.Plans[p.Digest()] = p
	for i := range sessions {
		l := steady(map[string]float64{"UDSB": 5e9, "UDRW": 2e9, "UDSP": 3e9, "native": 6e9}, 0.001)
		rate := l.rate
		l.rate = func(m moment) float64 { return factor * (1 + 0.001*float64(i)) * rate(m) }
		r := play(p, 3, l)
		r.Run, r.Plan = fmt.Sprintf("%s-%d", name, i+1), result.PlanRef{Name: "p", Digest: p.Digest()}
		r.Sessions[0].Host = result.Host{Name: "a", Model: "Mac16,11", CPU: "M4", CPUs: 10, Memory: 16e9, OS: "darwin", OSVersion: "26.4",
			OSBuild: "25E", Kernel: "25.4", FileVault: "on", Power: "ac", Disks: []result.Disk{{Device: "disk"}}}
		for k := range r.Cases {
			r.Cases[k].Target.Backend = "hdiutil"
			for j := range r.Cases[k].Steps {
				st := &r.Cases[k].Steps[j]
				st.Workers, st.Sync, st.Cache = 1, &result.Achieved{Asked: "fsync", Achieved: "fsync"}, &result.Achieved{Asked: "direct", Achieved: "direct"}
			}
		}
		out = append(out, r)
	}
	return out
}

// edited is comparePlan with one text for another.
func edited(t require.TestingT, old, replaced string) *plan.Plan {
	require.Contains(t, comparePlan, old)
	return planOf(t, strings.Replace(comparePlan, old, replaced, 1))
}

func hostOf(change func(*result.Host)) func(*result.Result) {
	return func(r *result.Result) { change(&r.Sessions[0].Host) }
}

func stepsOf(change func(*result.Step)) func(*result.Result) {
	return func(r *result.Result) {
		for i := range r.Cases {
			for k := range r.Cases[i].Steps {
				change(&r.Cases[i].Steps[k])
			}
		}
	}
}

// Whatever the help of compare lists for --by makes two sides, which are paired and have names that read well.
func TestCompareByEachFact(t *testing.T) {
	none, tested := func(*result.Result) {}, map[string]bool{}
	scaled, _, err := planOf(t, comparePlan).Apply(plan.Overrides{Scale: 0.5})
	require.NoError(t, err)
	ofImages := func(change func(*result.Target)) func(*result.Result) {
		return func(r *result.Result) {
			for i := range r.Cases {
				change(&r.Cases[i].Target)
			}
		}
	}
	for fact, k := range map[string]struct {
		plan   *plan.Plan // nil: that of the other side
		change func(*result.Result)
		title  string
	}{
		"host":       {nil, hostOf(func(h *result.Host) { h.Name = "b" }), "b against a"},
		"model":      {nil, hostOf(func(h *result.Host) { h.Model = "Mac15,1" }), "Mac15,1 against Mac16,11"},
		"cpu":        {nil, hostOf(func(h *result.Host) { h.CPU = "M3" }), "M3 against M4"},
		"cores":      {nil, hostOf(func(h *result.Host) { h.CPUs = 8 }), "cores 8 against cores 10"},
		"memory":     {nil, hostOf(func(h *result.Host) { h.Memory = 32e9 }), "memory 32.0 GB against memory 16.0 GB"},
		"virtual":    {nil, hostOf(func(h *result.Host) { h.Virtual = "kvm" }), "virtual kvm against virtual no"},
		"disk":       {nil, hostOf(func(h *result.Host) { h.Disks[0].Device = "other" }), "other against disk"},
		"power":      {nil, hostOf(func(h *result.Host) { h.Power = "battery" }), "power battery against power ac"},
		"os":         {nil, hostOf(func(h *result.Host) { h.OSVersion = "26.5" }), "macOS 26.5 (25E) against macOS 26.4 (25E)"},
		"os_version": {nil, hostOf(func(h *result.Host) { h.OSVersion = "26.5" }), "darwin 26.5 against darwin 26.4"},
		"os_build":   {nil, hostOf(func(h *result.Host) { h.OSBuild = "25F" }), "25F against 25E"},
		"kernel":     {nil, hostOf(func(h *result.Host) { h.Kernel = "25.5" }), "25.5 against 25.4"},
		"filevault":  {nil, hostOf(func(h *result.Host) { h.FileVault = "off" }), "filevault off against filevault on"},
		"tool":       {nil, func(r *result.Result) { r.Tool = result.Tool{Name: "dmgbench", Version: "2"} }, "dmgbench 2 against tool unknown"},
		"engine":     {nil, func(r *result.Result) { r.Sessions[0].Engine = result.Engine{Title: "in-process"} }, "in-process against hdiutil (Apple, macOS 26.4)"},
		"backend":    {edited(t, "size =", "backend = \"diskutil\"\nsize ="), ofImages(func(i *result.Target) { i.Backend = "diskutil" }), "diskutil against hdiutil"},
		"mount":      {edited(t, "size =", "mount = \"finder\"\nsize ="), ofImages(func(i *result.Target) { i.Mount = "finder" }), "mount finder against mount private"},
		"owners":     {nil, ofImages(func(i *result.Target) { i.Owners = "ignored" }), "owners ignored against owners unknown"},
		"filesystem": {edited(t, "size =", "filesystem = \"exFAT\"\nsize ="), none, "exFAT against APFS"},
		"plan":       {edited(t, "size =", "encryption = \"AES-256\"\nsize ="), func(r *result.Result) { r.Plan.Name = "q" }, "q against p"},
		"scale": {scaled, func(r *result.Result) {
			r.Departures = []result.Departure{{Kind: "scale", Text: "file and image sizes times 0.5"}}
		}, "file and image sizes times 0.5 against the plan's scale"},
		"workers": {edited(t, "[matrix]", "[io]\nworkers = 2\n[matrix]"), stepsOf(func(st *result.Step) { st.Workers = 2 }), "2 workers against 1 worker"},
		"cache":   {edited(t, "[matrix]", "[io]\ncache = \"buffered\"\n[matrix]"), stepsOf(func(st *result.Step) { st.Cache = &result.Achieved{Asked: "buffered", Achieved: "buffered"} }), "cache buffered against cache direct"},
		"sync":    {edited(t, "[matrix]", "[io]\nsync = \"none\"\n[matrix]"), stepsOf(func(st *result.Step) { st.Sync = &result.Achieved{Asked: "none", Achieved: "none"} }), "sync none against sync fsync"},
		"digest":  {edited(t, `"Compare"`, `"Other"`), none, ""},
		"seed": {nil, func(r *result.Result) {
			r.Seed = 7
			stepsOf(func(st *result.Step) {
				for i := range st.Samples {
					st.Samples[i].Bytes++
				}
			})(r)
		}, "seed 7 against seed 0"},
		"rounds": {nil, func(r *result.Result) { r.Rounds = 4 }, "rounds 4 against rounds 3"},
	} {
		o := CompareOptions{By: []string{fact}}
		p := planOf(t, comparePlan)
		a := planned(t, &o, "a", p, 3, 1)
		if k.plan != nil {
			p = k.plan
		}
		b := planned(t, &o, "b", p, 3, 0.5)
		for _, r := range b {
			k.change(r)
		}
		c := compared(t, o, a, b)
		require.Len(t, c.Sides, 2, fact)
		if k.title != "" {
			assert.Equal(t, k.title, c.Sides[1].Name+" against "+c.Sides[0].Name)
		}
		assert.Len(t, c.Rows, 4, "%s: %v", fact, c.Unpaired)
		assert.Empty(t, c.Unpaired, fact)
		assert.True(t, c.Regression, "%s is what was asked for", fact)
		assert.Empty(t, c.AcrossNames(), fact)
		tested[fact] = true
	}
	for _, fact := range CompareFacts {
		assert.True(t, tested[fact], "no test of --by %s", fact)
	}
}

// A key of cases hides the fact of runs that has its name.
func TestCompareByAxis(t *testing.T) {
	for key, k := range map[string]struct{ axis, title string }{
		"workers":    {"workers = [1, 2]", "2 workers against 1 worker"},
		"encryption": {`encryption = ["none", "AES-256"]`, "AES-256 against unencrypted"},
		"sync":       {`sync = ["none", "fsync"]`, "sync fsync against sync none"},
		"block":      {`block = ["64 KiB", "1 MiB"]`, "block 1 MiB against block 64 KiB"},
		"filesystem": {`filesystem = ["APFS", "exFAT"]`, "exFAT against APFS"},
	} {
		o := CompareOptions{By: []string{key}}
		c := compared(t, o, planned(t, &o, "a", edited(t, "[matrix]", "[matrix]\n"+k.axis), 1, 1))
		require.Len(t, c.Sides, 2, key)
		assert.Equal(t, k.title, c.Sides[1].Name+" against "+c.Sides[0].Name)
		assert.Len(t, c.Rows, 4, key)
	}
}

// A plan that was edited between two runs is no regression: what depends on the edit is named and not compared.
func TestCompareChangedPlans(t *testing.T) {
	for _, k := range []struct {
		old, new string
		want     string // the difference, as the page has it
		across   string
		rows     int // that are paired nevertheless
	}{
		{"size =", "encryption = \"AES-256\"\nsize =", "encryption: unencrypted → AES-256", "encryption", 0},
		{"size =", "band_size = \"1 MiB\"\nsize =", "band size: 8 MiB → 1 MiB", "band_size", 0},
		{"size =", "mount = \"finder\"\nsize =", "mount: private → finder", "mount", 0},
		{`"1 GB"`, `"2 GB"`, "size: 1 GB → 2 GB", "size", 0},
		{"[matrix]", "[io]\nblock = \"64 KiB\"\n[matrix]", "block: whole → 64 KiB", "block", 0},
		{"[matrix]", "[io]\nsync = \"none\"\n[matrix]", "sync: fsync → none", "sync", 0},
		{"sets = 2", "sets = 2\ndata = \"zero\"", "data of files few: random → zero", "data", 0},
		{`"8 MB"]`, `"9 MB"]`, "sizes of files few: 2 MB, 4 MB, 8 MB → 2 MB, 4 MB, 9 MB", "sizes", 0},
		{`{ do = "create" },`, `{ do = "create" }, { do = "settle", at_least = "2 s" },`, "steps: no step → leave it alone for 2 s", "steps", 0},
		{`{ do = "read",`, `{ do = "settle", at_least = "2 s" }, { do = "read",`, "steps: no step → leave it alone for 2 s", "steps", 2},
		{"canary = false", "canary = true", "canary: false → true", "canary", 0},
		// What one side alone has, what comes later and what is only said differently keeps no row apart
		{`"UDRW"]`, `"UDRW", "UDSP"]`, "format: UDRW, UDSB → UDRW, UDSB, UDSP", "", 4},
		{"[matrix]", "[matrix]\nencryption = [\"none\", \"AES-256\"]", "encryption: unencrypted → AES-256, unencrypted", "", 4},
		{`{ do = "read", phase = "new" },`, `{ do = "read", phase = "new" }, { do = "detach" },`, "steps: no step → unmount and detach the image", "steps", 4},
		{`"Compare"`, `"Other words"`, "", "", 4},
	} {
		o := CompareOptions{}
		p, q := planOf(t, comparePlan), edited(t, k.old, k.new)
		a, b := planned(t, &o, "a", p, 3, 1), planned(t, &o, "b", q, 3, 1)
		o.Sides = strings.Fields("before before before after after after")
		c := compared(t, o, a, b)
		assert.Len(t, c.Rows, k.rows, k.new)
		text := ""
		for _, d := range c.Differences {
			if d.Kind == "setting" {
				text += d.Fact + ": " + strings.Join(d.Values[0], ", ") + " → " + strings.Join(d.Values[1], ", ")
				assert.Equal(t, k.across, d.Across)
			}
		}
		assert.Equal(t, k.want, text)
		for _, f := range c.Alike {
			assert.NotEqual(t, "plan", f.Name)
		}
		if k.want == "" {
			assert.Contains(t, c.Notes, "the plans differ, but in no setting on which a compared figure depends")
		}
		if k.across == "" {
			continue
		}
		// Whatever the figures are, a setting that nobody asked about is no regression, unless it is asked for.
		slow := planned(t, &o, "b", q, 3, 0.5)
		assert.Equal(t, k.rows > 0, compared(t, o, a, slow).Regression, "%s: rows that do not depend on it count", k.new)
		for _, u := range compared(t, o, a, slow).Unpaired {
			assert.Equal(t, k.want, u.Reason)
		}
		o.Across = []string{k.across}
		c = compared(t, o, a, slow)
		assert.Len(t, c.Rows, 4, "--across %s", k.across)
		assert.True(t, c.Regression)
		assert.Empty(t, c.AcrossNames())
	}
}

// Where nothing browses volumes, a plan that asks for a mount as Finder's measures the same.
func TestCompareMountsThatCameToTheSame(t *testing.T) {
	for mount, rows := range map[string]int{"private": 4, "finder": 0} {
		o := CompareOptions{Sides: strings.Fields("a a a b b b")}
		a := planned(t, &o, "a", planOf(t, comparePlan), 3, 1)
		b := planned(t, &o, "b", edited(t, "size =", "mount = \"finder\"\nsize ="), 3, 1)
		for _, r := range b {
			for i := range r.Cases {
				r.Cases[i].Target.Mount = mount
			}
		}
		assert.Len(t, compared(t, o, a, b).Rows, rows, mount)
	}
}

// Axes of one value each are compared across, where that is asked for.
func TestCompareAcrossAxes(t *testing.T) {
	o := CompareOptions{}
	a := planned(t, &o, "a", edited(t, `["UDSB", "UDRW"]`, `["UDSB"]`), 3, 1)
	b := planned(t, &o, "b", edited(t, `["UDSB", "UDRW"]`, `["UDRW"]`), 3, 1)
	o.Sides = strings.Fields("a a a b b b")
	c := compared(t, o, a, b)
	assert.Empty(t, c.Rows)
	assert.Equal(t, []string{"format"}, c.AcrossNames())
	o.Across = []string{"format"}
	assert.Len(t, compared(t, o, a, b).Rows, 2)
	o.Across = []string{"colour"}
	_, err := Compare(append(a, b...), o)
	assert.ErrorIs(t, err, ErrCompare)
	assert.ErrorContains(t, err, `no plan has a setting "colour"`)
}

// A result without its plan is compared with one of the same digest only, and runs of one side have to have one plan.
func TestCompareWithoutPlans(t *testing.T) {
	o := CompareOptions{Sides: strings.Fields("a a a b b b")}
	p, q := planOf(t, comparePlan), edited(t, `"1 GB"`, `"2 GB"`)
	a, b := planned(t, &o, "a", p, 3, 1), planned(t, &o, "b", q, 3, 0.5)
	b[2] = planned(t, &o, "c", p, 1, 1)[0]
	for _, u := range compared(t, o, a, b).Unpaired {
		assert.Equal(t, "the rounds in b are not the same work: size: 2 GB → 1 GB", u.Reason)
	}
	o.Plans = nil
	c := compared(t, o, a, planned(t, &CompareOptions{}, "e", q, 3, 0.5))
	assert.Empty(t, c.Rows)
	assert.False(t, c.Regression)
	assert.Contains(t, c.Unpaired[0].Reason, "the plan of one side is missing")
	assert.Len(t, compared(t, o, a, planned(t, &CompareOptions{}, "f", p, 3, 1)).Rows, 4)
}

// The verdict on a required claim is no regression where the plans differ in a setting or in the claim.
func TestCompareClaimsOfChangedPlans(t *testing.T) {
	claim := `
[[claim]]
id = "k"
says = "UDSB is much faster"
by = "us"
scope = "any"
require = true
left = { write = { format = "UDSB" } }
right = { write = { format = "UDRW" } }
ratio = "> 2"
`
	p := planOf(t, comparePlan+claim)
	for name, k := range map[string]struct {
		q         *plan.Plan
		regressed bool
	}{
		"the words":   {planOf(t, strings.Replace(comparePlan, `"Compare"`, `"Other"`, 1)+claim), true},
		"the setting": {planOf(t, strings.Replace(comparePlan, `"1 GB"`, `"2 GB"`, 1)+claim), false},
		"the bound":   {planOf(t, comparePlan+strings.Replace(claim, "> 2", "> 20", 1)), false},
	} {
		o := CompareOptions{Sides: strings.Fields("a a a b b b")}
		runs := append(planned(t, &o, "a", p, 3, 1), planned(t, &o, "b", k.q, 3, 1)...)
		for i, r := range runs {
			r.Claims = []result.Claim{{ID: "k", Verdict: result.Holds, Required: true}}
			if i >= 3 { // the second side measures UDSB as slow as UDRW
				stepsOf(func(st *result.Step) {
					st.Span = nil
					for f := range st.Samples {
						st.Samples[f].DurationNS = st.Samples[f].Bytes
					}
				})(r)
			}
		}
		c := compared(t, o, runs)
		require.Len(t, c.Claims, 1, name)
		assert.Equal(t, []string{result.Holds, result.DoesNotHold}, c.Claims[0].Verdicts, name)
		assert.Equal(t, k.regressed, c.Claims[0].Changed, name)
		assert.Equal(t, !k.regressed, c.Claims[0].Undecided, name)
	}
}
