package plan_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/plan"
)

// placeless drops the positions of steps, which differ between two texts of one plan.
func placeless(p *plan.Plan) *plan.Plan {
	for i := range p.Protocol {
		forgetPlaces(p.Protocol[i].Steps)
	}
	return p
}

func forgetPlaces(steps []plan.Step) {
	for i := range steps {
		steps[i].Line, steps[i].Column = 0, 0
		forgetPlaces(steps[i].Steps)
	}
}

// roundTrip checks that the canonical form says the same as the plan and is its own canonical form.
func roundTrip(t require.TestingT, p *plan.Plan) {
	text := p.Canonical()
	q, problems := plan.Parse(p.Name+".toml", text)
	require.Empty(t, problems.Errors(), string(text))
	require.Equal(t, string(text), string(q.Canonical()))
	require.Equal(t, p.Digest(), q.Digest())
	require.Equal(t, placeless(p), placeless(q))
}

// TestCanonicalRoundTrip: FuzzParse does the same with all plans in files.
func TestCanonicalRoundTrip(t *testing.T) {
	for _, text := range []string{smallPlan, spacePlan, casesPlan, stepsPlan} {
		roundTrip(t, mustParse(t, text))
	}
}

// TestCanonicalSaysTheSame: order of tables, spelling and defaults make no other plan.
func TestCanonicalSaysTheSame(t *testing.T) {
	same := strings.Replace(smallPlan, `size   = "1 GB"`, "size = '1000 MB'\nband_size = \"default\"\nencryption = \"none\"\n[run]\nrounds = 3\n[io]\nfiles = \"few\"", 1)
	same = strings.Replace(same, `format = "UDSB"`, "# a comment\nformat = \"UDSB\"", 1)
	assert.Equal(t, mustParse(t, smallPlan).Digest(), mustParse(t, same).Digest())
	assert.Equal(t, mustParse(t, smallPlan).Digest(), mustParse(t, strings.ReplaceAll(smallPlan, "\n", "\r\n")).Digest())
	other := strings.Replace(smallPlan, `size   = "1 GB"`, `size = "1 GiB"`, 1)
	assert.NotEqual(t, mustParse(t, smallPlan).Digest(), mustParse(t, other).Digest())
}

// TestCanonicalOfParts takes lines and tables out of a plan that holds every
// key; whatever is still a plan must survive the canonical form.
func TestCanonicalOfParts(t *testing.T) {
	text, err := os.ReadFile("testdata/good/everything.toml")
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	plans := 0
	rapid.Check(t, func(t *rapid.T) {
		kept := slices.Clone(lines)
		for range rapid.IntRange(0, 4).Draw(t, "removals") {
			at := rapid.IntRange(0, len(kept)-1).Draw(t, "line")
			to := min(at+rapid.SampledFrom([]int{1, 1, 1, 5, 12}).Draw(t, "lines"), len(kept))
			kept = slices.Delete(kept, at, to)
		}
		p, problems := plan.Parse("part.toml", []byte(strings.Join(kept, "\n")))
		require.Equal(t, p == nil, len(problems.Errors()) > 0)
		if p != nil {
			plans++
			roundTrip(t, p)
		}
	})
	assert.Positive(t, plans, "some of the texts are plans")
	t.Logf("%d of the texts were plans", plans)
}

// TestCanonicalOfSettings draws whole plans.
func TestCanonicalOfSettings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name) }
		var b strings.Builder
		b.WriteString("schema = 1\ntitle = " + quoted(rapid.StringMatching(`[!-~äß日][ -~äß日\t]{0,20}`).Draw(t, "title")) + "\n[image]\n")
		b.WriteString("format = \"" + pick("format", "RAW", "UDRW", "UDSB", "UDSP") + "\"\nsize = \"" + pick("size", "10 GB", "10 GiB", "12345678901 B") + "\"\n")
		b.WriteString("band_size = \"" + pick("band", "default", "1 MiB", "8 GiB", "1049088 B") + "\"\nallow_many_bands = true\n")
		b.WriteString("[io]\nblock = \"" + pick("block", "whole", "4 KiB", "1 MB") + "\"\nsync = \"" + pick("sync", "none", "fsync", "full") + "\"\n")
		b.WriteString("[run]\nfits_in = \"" + pick("share", "98%", "33.333333333%", "100%") + "\"\nbaseline = " + pick("flag", "true", "false") + "\n")
		b.WriteString("[matrix]\nworkers = [" + pick("workers", "1", "1, 2", "3, 1") + "]\n")
		b.WriteString("[files.a]\nsizes = [\"" + pick("file", "1 MB", "1 MiB", "1048577 B") + "\"]\nsets = " + pick("sets", "1", "7") + "\n")
		b.WriteString("[[protocol]]\nwhen = { workers = [1, 2, 3] }\nsteps = [{ do = \"create\" }, { do = \"attach\" }, { do = \"write\" }, { do = \"settle\", at_least = \"" +
			pick("time", "1 s", "1500 ms", "90 s", "1.5 min", "1 ns") + "\" }]\n")
		p, problems := plan.Parse("drawn.toml", []byte(b.String()))
		require.Empty(t, problems.Errors(), b.String())
		roundTrip(t, p)
		for _, c := range p.Cases() {
			plan.Estimate(p, c)
		}
	})
}

// quoted is a TOML string of any text.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.toml", "testdata/broken/*.toml", "../../plans/*.toml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, problems := plan.Parse("fuzz.toml", text)
		if p == nil {
			require.NotEmpty(t, problems.Errors())
			for _, one := range problems.Items {
				require.Positive(t, one.Line)
				require.Positive(t, one.Column)
				require.NotEmpty(t, one.String())
			}
			return
		}
		require.Empty(t, problems.Errors())
		roundTrip(t, p)
	})
}

// TestDigestsStay: journals name their plan by its digest, so that what was run with one release is reported with the next. A key
// that is new must not change the digest of a plan that does not use it (see omitDefault).
func TestDigestsStay(t *testing.T) {
	for text, want := range map[string]string{
		smallPlan: "deeddd3f1e71942f5b6e9c21158ab5c301152739fc5190cdef19edca39a77795",
		spacePlan: "6f68d946d78595e3455dcd34994927d65ad20a780153a402140655237f96455e",
		casesPlan: "193a4c12c1db087451f7cf6d38ed9ee8a80ad287679053d7b74467bf6e521907",
		stepsPlan: "b590ab9bd32071e0cbe46de4edae0036b9c68ed699a46851a36e92aff238139e",
	} {
		assert.Equal(t, want, mustParse(t, text).Digest())
	}
}
