package plan_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

func apply(t testing.TB, p *plan.Plan, o plan.Overrides) (*plan.Plan, []plan.Change) {
	t.Helper()
	before := p.Digest()
	q, changes, err := p.Apply(o)
	require.NoError(t, err)
	require.Equal(t, before, p.Digest(), "the plan itself stays as it is")
	again, problems := plan.Parse("test.toml", q.Canonical())
	require.Empty(t, problems.Errors(), "what is executed is a plan")
	require.Equal(t, q.Digest(), again.Digest())
	require.Equal(t, changes, again.Changes)
	return q, changes
}

func TestApplyNothing(t *testing.T) {
	p := mustParse(t, spacePlan)
	q, changes := apply(t, p, plan.Overrides{Sets: 10, Scale: 1, Rounds: 3})
	assert.Empty(t, changes)
	assert.Equal(t, p.Digest(), q.Digest())
}

func TestApplySets(t *testing.T) {
	p := mustParse(t, spacePlan)
	q, changes := apply(t, p, plan.Overrides{Sets: 2})
	assert.Equal(t, []plan.Change{{Kind: "sets", Text: "2 sets of gold, not 10"}}, changes)
	assert.Equal(t, 8, q.Protocol[0].Steps[2].Steps[1].Largest, "the same share of the batch: 40 of 160 is 8 of 32")
	e := plan.Estimate(q, q.Cases()[0])
	assert.Equal(t, units.Bytes(266_500_000_000/5), e.BytesWritten)
	assert.Equal(t, units.Bytes(90_500_000_000/5), e.LivePeak)

	three := mustParse(t, strings.Replace(spacePlan, "largest = 40", "last_sets = 8", 1))
	for sets, want := range map[int]int{5: 4, 3: 2, 2: 1, 1: 1} {
		q, _ := apply(t, three, plan.Overrides{Sets: sets})
		assert.Equal(t, want, q.Protocol[0].Steps[2].Steps[1].LastSets, "%d sets", sets)
	}
}

func TestApplyScale(t *testing.T) {
	p := mustParse(t, spacePlan+`
[source]
title = "x"
[[published]]
where = { format = "UDRW", phase = "last", file_size = "2 GB" }
write = "1 GB/s"
write_time = "1 s"
[[fit]]
name = "f"
quantity = "write"
where = { phase = "last" }
along = "file_size"
model = "line"
predict = ["200 MB"]
[[claim]]
says = "x"
by = "us"
left = { write = { phase = "last", file_size = "200 MB" } }
prediction = { fit = "f", at = "200 MB", bound = "0.5 to 2" }
`)
	q, changes := apply(t, p, plan.Overrides{Scale: 0.01})
	assert.Equal(t, []plan.Change{{Kind: "scale", Text: "file and image sizes times 0.01 (3 of 16 file sizes stop at 64 KiB)"}}, changes)
	sizes := q.Files[0].Parts[0].Sizes
	assert.Equal(t, units.Bytes(64<<10), sizes[0])
	assert.Equal(t, units.Bytes(20_000_000), sizes[15])
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(sizes))), 16, "distinct sizes stay distinct")
	assert.Equal(t, "20 MB", q.Published[0].Where[2].Values[0])
	assert.Equal(t, "20 MB", q.Published[1].Where[2].Values[0], "both figures of one table, once")
	assert.Equal(t, []string{"2 MB"}, q.Fits[0].Predict)
	assert.Equal(t, []string{"2 MB"}, q.Claims[0].Assert.At)
	assert.GreaterOrEqual(t, q.Defaults.Size, units.Bytes(1_250_000_000))
	assert.Zero(t, q.Defaults.Size%(1<<20))

	tiny, _ := apply(t, p, plan.Overrides{Scale: 1e-9, Filesystem: "exfat"})
	assert.Equal(t, []string{"exFAT"}, tiny.Defaults.Filesystems)
	assert.GreaterOrEqual(t, tiny.Defaults.Size, units.Bytes(8<<20))
	xfs, changes := apply(t, p, plan.Overrides{Scale: 1e-9, Filesystem: "XFS"})
	assert.Equal(t, units.Bytes(384<<20), xfs.Defaults.Size)
	assert.Equal(t, []string{"fs", "scale"}, []string{changes[0].Kind, changes[1].Kind})
}

// Printed times are of the author's file, whatever size a run makes of it.
func TestApplyScaleKeepsTheAuthorsInput(t *testing.T) {
	p := mustParse(t, spacePlan+`
[inputs.big]
about = "any"
size = "15.517 GB"
optional = true
`)
	q, _ := apply(t, p, plan.Overrides{Scale: 0.01})
	assert.Equal(t, units.Bytes(155_170_000), q.Inputs[0].Size)
	assert.Equal(t, units.Bytes(15_517_000_000), q.Inputs[0].PublishedSize)
	again := mustParse(t, string(q.Canonical()))
	assert.Equal(t, q.Inputs, again.Inputs, "the plan as executed keeps it")
	twice, _ := apply(t, again, plan.Overrides{Scale: 0.5})
	assert.Equal(t, units.Bytes(15_517_000_000), twice.Inputs[0].PublishedSize)
	assert.Zero(t, p.Inputs[0].PublishedSize)
}

// A heading that tells a size would tell one that was not run; band sizes are never scaled.
func TestApplyScaleRetitles(t *testing.T) {
	p := mustParse(t, spacePlan+`
[[table]]
name = "sizes"
title = "Rates"
columns = [{ write = { phase = "last" } }]
rows = [
  { title = "2 GB files", where = { format = "UDRW", file_size = "2 GB" } },
  { title = "200MB", where = { format = "UDRW", file_size = "200 MB" } },
  { title = "the smallest", where = { format = "UDRW", file_size = "2 MB" } },
  { title = "in bands of 8.4 MB", where = { format = "UDSB", file_size = "2 GB" } },
  { where = { format = "UDSB", file_size = "200 MB" } },
]
`)
	q, _ := apply(t, p, plan.Overrides{Scale: 0.01})
	var got []string
	for i := range q.Tables[0].Rows {
		got = append(got, q.Tables[0].Rows[i].Heading())
	}
	assert.Equal(t, []string{"2 GB files (here files of 20 MB)", "200MB (here files of 2 MB)", "the smallest", "in bands of 8.4 MB (here files of 20 MB)", "sparse bundle (UDSB), 2 MB"}, got)
}

// An ext4 volume whose start is harmed needs a copy of its superblock to be repaired by.
func TestApplyScaleLeavesRoomForRepair(t *testing.T) {
	const body = `
schema = 1
title = "Harm"
[image]
format = "UDRW"
size = "1 GB"
filesystem_preference = ["ext4"]
[files.few]
sizes = ["2 MB"]
[run]
baseline = false
[[protocol]]
steps = [{ do = "create" }, { do = "damage", as = "hurt", kind = "KIND" }, { do = "attach", on = "hurt", expect = "fail" }]
`
	for kind, want := range map[string]units.Bytes{"volume": 160 << 20, "table": 16 << 20} {
		q, _ := apply(t, mustParse(t, strings.Replace(body, "KIND", kind, 1)), plan.Overrides{Scale: 0.001})
		assert.Equal(t, want, q.Defaults.Size, kind)
	}
}

// TestApplyScaleAlwaysFits: whatever the factor, the files of every case fit.
func TestApplyScaleAlwaysFits(t *testing.T) {
	p := mustParse(t, spacePlan)
	rapid.Check(t, func(rt *rapid.T) {
		f := math.Pow(10, rapid.Float64Range(-8, 2).Draw(rt, "exponent"))
		q, _ := apply(t, p, plan.Overrides{Scale: f, Sets: rapid.IntRange(0, 12).Draw(rt, "sets")})
		for _, c := range q.Cases() {
			e := plan.Estimate(q, c)
			if c.Settings.Target == "image" {
				require.LessOrEqual(t, float64(e.LivePeak)*1.1, float64(c.Settings.Size))
			}
		}
		sizes := q.Files[0].Parts[0].Sizes
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(sizes))), 16)
		require.GreaterOrEqual(t, slices.Min(sizes), units.Bytes(64<<10))
	})
}

func TestApplyOnly(t *testing.T) {
	p := mustParse(t, casesPlan)
	pick := func(text string) plan.Selector {
		s, err := p.ParseSelector(text)
		require.NoError(t, err)
		return s
	}
	for text, want := range map[string][]string{
		"format=RAW,cores=2": {
			"cores=2,place=internal,format=UDRW,encryption=none", "cores=2,place=internal,format=UDRW,encryption=AES-256",
			"cores=2,place=usb4,format=UDRW,encryption=none",
			"baseline=true,cores=2,place=internal", "baseline=true,cores=2,place=usb4"},
		"size=2 GB,cores=4": {"cores=4,format=ASIF,size=2 GB", "baseline=true,cores=4"},
		"format=UDSP":       {"cores=4,format=UDSP,place=usb4", "baseline=true,cores=4,place=usb4"},
		"format=UDSB|ASIF,place=usb4,cores=4": {
			"cores=4,place=usb4,format=UDSB,encryption=none", "cores=4,place=usb4,format=UDSB,encryption=AES-256", "baseline=true,cores=4,place=usb4"},
	} {
		q, changes := apply(t, p, plan.Overrides{Only: pick(text)})
		assert.Equal(t, want, ids(q.Cases()), text)
		assert.Equal(t, "only", changes[0].Kind)
	}
	q, changes := apply(t, p, plan.Overrides{Only: pick("workers=1")})
	assert.Empty(t, changes, "every case is that")
	assert.Equal(t, p.Digest(), q.Digest())
	for _, text := range []string{"format=ASIF,place=usb4", "workers=9", "target=directory", "baseline=true", "baseline=false"} {
		_, _, err := p.Apply(plan.Overrides{Only: pick(text)})
		wrong := &plan.OverrideError{}
		require.ErrorAs(t, err, &wrong, text)
	}
}

func TestApplyRun(t *testing.T) {
	p := mustParse(t, smallPlan+"[matrix]\nworkers = [1, 2]\nfilesystem = [\"APFS\", \"exFAT\"]\n[[case]]\nworkers = 3\nfilesystem = \"APFS\"\n")
	seed := uint64(99)
	q, changes := apply(t, p, plan.Overrides{Rounds: 1, Seed: &seed, Workers: 8, Filesystem: "exFAT"})
	assert.Equal(t, uint64(99), q.Run.Seed)
	assert.Equal(t, 1, q.Run.Rounds)
	assert.Equal(t, []plan.Change{{Kind: "rounds", Text: "1 round, not 3"}, {Kind: "workers", Text: "8 workers throughout"}, {Kind: "fs", Text: "file system exFAT"}}, changes)
	assert.Equal(t, []string{"workers=8,filesystem=exFAT", "baseline=true,workers=8"}, ids(q.Cases()))

	q, changes = apply(t, mustParse(t, smallPlan), plan.Overrides{Workers: 1, Filesystem: "APFS", Seed: &seed})
	assert.Empty(t, changes)
	assert.Equal(t, []string{"APFS"}, q.Defaults.Filesystems, "the first of the preference is no departure, but nothing else is taken")
	for _, o := range []plan.Overrides{{Workers: -1}, {Rounds: -1}, {Sets: -1}, {Scale: -1}, {Scale: math.NaN()}, {Scale: math.Inf(1)}, {Filesystem: "NTFS"}} {
		_, _, err := mustParse(t, smallPlan).Apply(o)
		wrong := &plan.OverrideError{}
		require.ErrorAs(t, err, &wrong)
	}
}

// TestApplyKeepsMarginsOfNothing: a margin of 0% is required where it stands, so the canonical form has to say it.
func TestApplyKeepsMarginsOfNothing(t *testing.T) {
	p := mustParse(t, smallPlan+`
[[claim]]
says = "x"
by = "us"
left = { write = { phase = "new" } }
right = { write = { phase = "new" } }
equal = { within = "0%" }
[[claim]]
says = "y"
by = "us"
left = { write = {} }
trend = { along = "file_size", is = "constant", within = "0%" }
`)
	roundTrip(t, p)
	q, changes := apply(t, p, plan.Overrides{Rounds: 1})
	require.NotEmpty(t, changes)
	assert.Equal(t, p.Claims, q.Claims)
}

func TestApplyHereRenamesThePlaceEverywhere(t *testing.T) {
	p := mustParse(t, casesPlan+`
[[published]]
write = "1 GB/s"
where = { format = "UDRW", encryption = "none", place = "usb4", phase = "new" }
[source]
title = "t"
author = "a"
[[claim]]
says = "c"
by   = "us"
left = { write = { format = "UDRW", encryption = "none", place = "usb4", phase = "new" } }
right = { write = { format = "UDRW", encryption = "none", place = "internal", phase = "new" } }
ratio = "< 1"
[[table]]
name = "t"
title = "t"
columns = [{ title = "write", group = "USB4", write = { phase = "new", place = "usb4" } }]
rows = [{ title = "r", where = { format = "UDRW", encryption = "none", cores = 2 } }]
`)
	require.Equal(t, []string{"internal", "usb4"}, p.Places())
	q, changes := apply(t, p, plan.Overrides{Here: []string{"usb4"}})
	assert.Equal(t, []plan.Change{{Kind: "place", Text: `cases of place "usb4" were measured in the run's own folder`}}, changes)
	assert.Equal(t, []string{"internal", "here (not usb4)"}, q.Places())
	assert.Len(t, q.Cases(), len(p.Cases()), "exclusions and axes are the same")
	assert.Equal(t, "write (here, not usb4)", q.Tables[0].Columns[0].Title)
	text := string(q.Canonical())
	assert.Equal(t, 1, strings.Count(text, "\"usb4\"")+strings.Count(text, `\"usb4\"`), "only the change says what it was:\n%s", text)
	_, again := apply(t, q, plan.Overrides{Here: []string{"usb4"}})
	assert.Equal(t, changes, again, "consent given again changes nothing")
	for _, c := range q.Cases() {
		_, here := plan.HereFor(c.Settings.Place)
		assert.Equal(t, here, c.AtHere())
		assert.Equal(t, strings.Contains(c.ID, "usb4"), here)
	}
	_, _, err := p.Apply(plan.Overrides{Here: []string{"tb3"}})
	assert.ErrorContains(t, err, "no case of the plan is at that place")
}

func TestHereNames(t *testing.T) {
	for name, want := range map[string]string{"here (not usb4)": "usb4", "here": "", "here (not )": "", "here (not a b)": "", "here (not usb4) ": "", "usb4": ""} {
		place, ok := plan.HereFor(name)
		assert.Equal(t, want != "", ok, name)
		if ok {
			assert.Equal(t, want, place)
		}
	}
}

// TestApplyRefusesWhatCannotBeRun: flags make a plan that its author could not have written, and the error names the flag.
func TestApplyRefusesWhatCannotBeRun(t *testing.T) {
	tiny := strings.Replace(smallPlan, `size   = "1 GB"`, `size   = "20 MB"`, 1)
	manual := smallPlan + "[[manual]]\nname = \"cores\"\nvalues = [1, 2]\ninstructions = \"set {value}\"\n"
	for _, test := range []struct {
		plan  string
		flags plan.Overrides
		want  string
	}{
		{tiny, plan.Overrides{Filesystem: "XFS"}, "applying --fs: an image of 20 MB is too small for XFS"},
		{strings.Replace(tiny, "20 MB", "1 EiB", 1), plan.Overrides{Filesystem: "exFAT"}, "applying --fs: an image of 1 EiB is too large for exFAT"},
		{strings.Replace(tiny, "20 MB", "3 TB", 1), plan.Overrides{Filesystem: "FAT32"}, "applying --fs: an image of 3 TB is too large for FAT32"},
		{manual, plan.Overrides{Auto: true}, `applying --rounds: rounds: "auto" is not possible with the manual axis "cores", which the user would have to set in every round`},
		{smallPlan, plan.Overrides{MaxTime: 1e9}, "applying --max-rounds, --max-time or --max-written: they are limits of --rounds auto, and the plan has 3 rounds; add --rounds auto"},
		{smallPlan, plan.Overrides{Precondition: "often"}, "applying --precondition often: want none or steady"},
		{smallPlan, plan.Overrides{Rounds: 10001}, "applying --rounds 10001: want 1 to 10000"},
		{smallPlan, plan.Overrides{Workers: 1025}, "applying --workers 1025: want 1 to 1024"},
	} {
		_, _, err := mustParse(t, test.plan).Apply(test.flags)
		assert.EqualError(t, err, test.want)
	}
}

// TestApplyIsTheSameAsItsText: what a run executes is what its plan.toml says, for every plan and flag.
func TestApplyIsTheSameAsItsText(t *testing.T) {
	files, err := filepath.Glob("../../plans/*.toml")
	require.NoError(t, err)
	for _, file := range files {
		p, err := plan.Load(file)
		require.NoError(t, err)
		for _, o := range []plan.Overrides{{Sets: 1, Rounds: 1}, {Scale: 0.01}, {Workers: 3, Filesystem: "exFAT"}, {Precondition: plan.Steady}} {
			q, _, err := p.Apply(o)
			if err != nil { // not every plan fits every flag
				continue
			}
			again, problems := plan.Parse(p.Name, q.Canonical())
			require.Empty(t, problems.Errors(), file)
			require.Equal(t, placeless(again), placeless(q), "%s %+v", file, o)
		}
	}
}
