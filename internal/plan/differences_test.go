package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const differencesPlan = `
schema = 1
title = "Differences"
[image]
size = "1 GB"
filesystem_preference = ["exFAT"]
[matrix]
format = ["UDSB", "UDRW"]
[files.few]
sizes = ["2 MB", "4 MB"]
[files.many]
range = ["1 MB", "2 MB"]
count = 10
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "few" },
  { do = "settle", at_least = "1 s" },
  { do = "read", phase = "new" },
  { do = "detach" },
]
[run]
canary = false
`

// differencesAfter are the differences of UDSB after some texts of the plan were replaced, as "name: before → after".
func differencesAfter(t *testing.T, do string, oldNew ...string) (out []string) {
	t.Helper()
	parse := func(text string) (*Plan, *Case) {
		p, problems := Parse("t.toml", []byte(text))
		require.Empty(t, problems.Errors(), "%v", problems)
		return p, find(p.Cases(), func(c *Case) bool { return strings.Contains(c.ID, "format=UDSB") })
	}
	p, a := parse(differencesPlan)
	q, b := parse(strings.NewReplacer(oldNew...).Replace(differencesPlan))
	require.NotEqual(t, p.Digest(), q.Digest(), "%v", oldNew)
	names := SettingNames()
	for _, d := range CompareCases(p, a, q, b, do, "new") {
		assert.Contains(t, names, d.Key)
		assert.Contains(t, names, d.Table)
		out = append(out, d.Name()+": "+d.Before+" → "+d.After)
	}
	return out
}

func TestDifferencesOfPlans(t *testing.T) {
	for _, k := range []struct {
		old, new string
		want     []string
	}{
		{`size = "1 GB"`, "size = \"1 GB\"\nencryption = \"AES-256\"", []string{"encryption: none → AES-256"}},
		{`size = "1 GB"`, "size = \"1 GB\"\nband_size = \"1 MiB\"", []string{"band size: 8 MiB → 1 MiB"}},
		{`size = "1 GB"`, "size = \"1 GB\"\nband_size = \"8 MiB\"", nil},
		{`size = "1 GB"`, `size = "2 GB"`, []string{"size: 1 GB → 2 GB"}},
		{`["exFAT"]`, `["ext4", "exFAT"]`, []string{"filesystem: exFAT → ext4, exFAT"}},
		{"[matrix]", "[io]\nblock = \"64 KiB\"\n[matrix]", []string{"block: whole → 64 KiB"}},
		{"[matrix]", "[io]\nsync = \"none\"\nworkers = 2\n[matrix]", []string{"workers: 1 → 2", "sync: fsync → none"}},
		{"[matrix]", "[matrix]\nencryption = [\"none\"]", nil},
		{`"UDRW"]`, `"UDRW", "UDSP"]`, nil},
		{`["2 MB", "4 MB"]`, "[\"2 MB\", \"4 MB\"]\ndata = \"zero\"", []string{"data of files few: random → zero"}},
		{`["2 MB", "4 MB"]`, `["2 MB", "8 MB"]`, []string{"sizes of files few: 2 MB, 4 MB → 2 MB, 8 MB"}},
		{"count = 10", "count = 11", nil}, // nothing uses it
		{`files = "few"`, `files = "many"`, []string{"files of step write new: few → many"}},
		{`files = "few"`, `files = "few", sync = "none"`, []string{"sync of step write new: not set → none"}},
		{`at_least = "1 s"`, `at_least = "2 s"`, []string{"at least of step settle: 1 s → 2 s"}},
		{`{ do = "settle", at_least = "1 s" },`, "", []string{"steps: leave it alone for 1 s → no step"}},
		{"canary = false", "canary = false\nprecondition = \"steady\"", []string{"precondition: not set → steady"}},
		{"canary = false", "canary = true", []string{"canary: false → true"}},
		{"canary = false", "canary = false\nrounds = 7\nseed = 3", nil},
		{`"Differences"`, `"Other words"`, nil},
		// What comes after a measurement has no part in it
		{`{ do = "detach" },`, `{ do = "detach" }, { do = "attach" }, { do = "read", phase = "again" },`, nil},
	} {
		got := differencesAfter(t, "read", k.old, k.new)
		if strings.Contains(k.new, "steady") {
			got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "steady ") })
		}
		assert.Equal(t, k.want, got, k.new)
	}
	assert.Empty(t, differencesAfter(t, "write", `at_least = "1 s"`, `at_least = "2 s"`), "the wait is after the write")
	assert.NotEmpty(t, differencesAfter(t, "", `{ do = "detach" },`, `{ do = "detach" }, { do = "settle" },`))
}
