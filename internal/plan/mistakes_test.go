package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
)

const mistakenPlan = `schema = 1
title  = "A plan with mistakes"
[image]
size = "1 GB"
[matrix]
format = ["UDRW", "UDSB"]
[files.mix]
sizes = ["1 MB", "2 MB"]
[files.many]
tree = { files = 100, folders = 10 }
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", files = "mix", phase = "new" },
  { do = "tree", action = "create", files = "many", phase = "made" },
  { do = "tree", action = "list", phase = "list" },
  { do = "tree", action = "read", phase = "read" },
  { do = "tree", action = "delete", phase = "delete" },
  { do = "detach" },
]
[[claim]]
says  = "First"
by    = "us"
left  = { write = { format = "UDRW", phase = "new" } }
right = { write = { format = "UDSB", phase = "new" } }
ratio = ">= 2"
`

// What is said about each mistake, and nothing beside it.
func TestWhatIsSaidAboutMistakes(t *testing.T) {
	second := func(ratio string) string {
		return strings.Replace(mistakenPlan[strings.Index(mistakenPlan, "[[claim]]"):], ">= 2", ratio, 1)
	}
	step := func(text string) [2]string {
		return [2]string{`  { do = "detach" },`, "  " + text + ",\n" + `  { do = "detach" },`}
	}
	for name, x := range map[string]struct {
		change        [2]string
		message, hint string
	}{
		"claims that exclude each other": {[2]string{"ratio = \">= 2\"\n", "ratio = \">= 2\"\n" + strings.Replace(second("< 1.5"), "First", "Second", 1)},
			"claims 1 and 2 cannot both hold", `the values of ">= 2" and "< 1.5" have none in common`},
		"claims that only touch": {[2]string{"ratio = \">= 2\"\n", "ratio = \"> 2\"\n" + strings.Replace(second("<= 2"), "First", "Second", 1)},
			"claims 1 and 2 cannot both hold", ""},
		"no create": {[2]string{"  { do = \"create\" },\n", ""}, "attach before the container is created", "put { do = "},
		"a bound in words": {[2]string{`">= 2"`, `"more than 1"`},
			`ratio: parsing "more than 1": want a bound such as ">= 2", "< 0.5", "0.9 to 1.1" or "about 2"`, ""},
		"megabits":    {[2]string{`"1 MB"`, `"1 Mb"`}, `sizes: parsing "1 Mb": did you mean MB? Mb are bits`, ""},
		"AES256":      {[2]string{`size = "1 GB"`, "size = \"1 GB\"\nencryption = \"AES256\""}, `encryption: "AES256" is not accepted here`, `did you mean "AES-256"?`},
		"reattach":    {step(`{ do = "reattach" }`), `do: "reattach" is not accepted here`, `did you mean "remount"?`},
		"the unit":    {step(`{ do = "random", file = "f", file_size = "1 MB", reads = "50%", block = "4 KiB", time = "2 seconds" }`), `time: parsing "2 seconds": the unit is missing`, ""},
		"a share":     {step(`{ do = "delete", share = "much" }`), `share: parsing "much"`, ""},
		"a phase":     {[2]string{`left  = { write = { format = "UDRW", phase = "new" } }`, `left  = { tree = { format = "UDRW", phase = "create" } }`}, "", ""},
		"small files": {[2]string{`"1 MB"`, `"1 kB"`}, `files of 1 kB in set "mix" are too small to be timed`, "use files of 64 kB or more"},
		"small files of a range": {[2]string{`sizes = ["1 MB", "2 MB"]`, "parts = [{ sizes = [\"1 MB\"] }, { range = [\"1 kB\", \"1 MB\"], count = 2 }]"},
			`files of 1 kB in set "mix" are too small to be timed`, ""},
		"another schema": {[2]string{"schema = 1", "schema = 2"}, "schema: 2 is out of range", "want 1"},
		"a size that exFAT cannot have": {[2]string{`size = "1 GB"`, "size = \"1 EiB\"\nfilesystem = \"exFAT\""},
			"an image of 1 EiB is too large for exFAT", "at most 144115188075855872 B"},
		"a size that a format cannot have": {[2]string{"size = \"1 GB\"\n[matrix]\nformat = [\"UDRW\", \"UDSB\"]", "size = \"1 EiB\"\nfilesystem = \"APFS\"\n[matrix]\nformat = [\"ASIF\", \"UDRW\", \"UDSB\"]\nband_size = [\"8 GiB\"]"},
			"ASIF has at most", ""},
		"a wait of years": {step(`{ do = "settle", at_least = "1000000 h" }`), "at_least: 1000000 h is too long; want at most 168 h", ""},
		"a long title":    {[2]string{"A plan with mistakes", strings.Repeat("a", 501)}, "is not one line of text, of at most 500 bytes", ""},
		"a long summary":  {[2]string{"[image]", "summary = \"" + strings.Repeat("a", 200_000) + "\"\n[image]"}, "the text has 200000 bytes; want at most 10000", ""},
		"Latin-1":         {[2]string{"A plan", "Pl\xe4ne"}, "the text is not in UTF-8", "save the file as UTF-8"},
		"CR alone":        {[2]string{"\n", "\r"}, "the lines end with CR alone", "LF or CR LF"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 1
			if name == "CR alone" {
				n = -1
			}
			require.Contains(t, mistakenPlan, x.change[0])
			_, problems := plan.Parse("a.toml", []byte(strings.Replace(mistakenPlan, x.change[0], x.change[1], n)))
			require.NotNil(t, problems)
			if x.message == "" { // the figure of a phase that no step has
				text := problems.Error()
				assert.Contains(t, text, `no tree step of the selected cases has the phase "create"`)
				assert.Contains(t, text, "such phases: made, list, read, delete")
				return
			}
			if !strings.HasPrefix(name, "a size") { // bundles of that size get a warning, too
				require.Len(t, problems.Items, 1, problems.Error())
			}
			text := problems.Error()
			assert.Contains(t, text, x.message)
			assert.Contains(t, text, x.hint)
			assert.Regexp(t, `^a\.toml:\d+:\d+: `, text)
		})
	}
}

// A copy that has to fail is not made: nothing is written to it.
func TestDamageThatHasToFail(t *testing.T) {
	text := strings.Replace(mistakenPlan, `  { do = "detach" },`, `  { do = "detach" },
  { do = "damage", as = "copy", kind = "killed", files = "mix", expect = "fail" },`, 1)
	p, problems := plan.Parse("a.toml", []byte(text))
	require.Nil(t, problems)
	assert.Len(t, plan.Works(p, p.Cases()[0]), 9)
}

// A plan in UTF-16 is named as what it is, with a byte order mark or without.
func TestPlanInUTF16(t *testing.T) {
	for _, mark := range []string{"", "\xff\xfe"} {
		var text strings.Builder
		text.WriteString(mark)
		for _, c := range []byte(mistakenPlan) {
			text.Write([]byte{c, 0})
		}
		_, problems := plan.Parse("a.toml", []byte(text.String()))
		require.Len(t, problems.Errors(), 1)
		assert.Contains(t, problems.Error(), "the text is in UTF-16 or UTF-32, not in UTF-8")
	}
}

// Claims that leave each other room are no contradiction.
func TestClaimsThatCanBothHold(t *testing.T) {
	for _, ratio := range []string{">= 3", "<= 2", "1 to 2.5", "about 2"} {
		more := strings.Replace(mistakenPlan[strings.Index(mistakenPlan, "[[claim]]"):], ">= 2", ratio, 1)
		p, problems := plan.Parse("a.toml", []byte(mistakenPlan+strings.Replace(more, "First", "Second", 1)))
		require.Empty(t, problems.Errors())
		assert.Empty(t, problems.Warnings(), ratio)
		assert.NotNil(t, p)
	}
}
