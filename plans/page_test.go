package plans_test

import (
	"cmp"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
	"dmgbench/plans"
)

var (
	tableRow = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (.+) \\| (.+) \\| (.+) \\| `dmgbench run ([a-z0-9-]+)(.*)` \\| (.+) \\|$")
	option   = regexp.MustCompile(`^ --(\S+) (\S+)`)
)

// TestPlansPage: the table of plans in docs/plans.md names every shipped plan,
// where it comes from, and what the whole and the small run really write.
func TestPlansPage(t *testing.T) {
	text, err := os.ReadFile("../docs/plans.md")
	require.NoError(t, err)
	var names []string
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		name := row[1]
		names = append(names, name)
		if _, ok := plans.Get(name); !ok {
			continue // the list of names below says so
		}
		p := load(t, name)
		assert.NotEmpty(t, strings.TrimSpace(row[2]), name)
		assert.Equal(t, origin(p), row[3], "%s: source", name)
		assert.Equal(t, volume(p), row[4], "%s: written by the whole run", name)
		assert.Equal(t, name, row[5], "the command runs the plan of its row")
		assert.Equal(t, volume(shortened(t, p, row[6])), row[7], "%s: written by the small run", name)
	}
	assert.Equal(t, plans.Names(), names, "docs/plans.md lists every plan once, in order")
}

// origin is what the column of sources has to say.
func origin(p *plan.Plan) string {
	switch {
	case p.Source == nil:
		return "ours"
	case !strings.Contains(p.Source.Author, "Oakley"):
		return p.Source.Author
	case p.Source.Date.IsZero():
		return "Oakley"
	}
	return "Oakley, " + p.Source.Date.Format("2 January 2006")
}

// volume is what all cases and rounds of a plan write.
func volume(p *plan.Plan) string {
	var n units.Bytes
	for _, c := range p.Cases() {
		n += plan.Estimate(p, c).BytesWritten
	}
	return (n * units.Bytes(p.Run.Rounds)).Human()
}

// shortened is the plan as a command's flags make it. A folder is given for
// every place, and the sizes of the source are left alone where fewer sets do.
func shortened(t *testing.T, p *plan.Plan, flags string) *plan.Plan {
	t.Helper()
	var o plan.Overrides
	given := map[string]bool{}
	for flags != "" {
		m := option.FindStringSubmatch(flags)
		require.NotNil(t, m, "%s: flags %q", p.Name, flags)
		flags = flags[len(m[0]):]
		var err error
		switch m[1] {
		case "on":
			place, dir, ok := strings.Cut(m[2], "=")
			assert.True(t, ok && dir == "DIR", "%s: --on %s", p.Name, m[2])
			given[place] = true
		case "sets":
			o.Sets, err = strconv.Atoi(m[2])
		case "scale":
			o.Scale, err = strconv.ParseFloat(m[2], 64)
		default:
			t.Errorf("%s: no honest way to shorten a run: --%s", p.Name, m[1])
		}
		require.NoError(t, err)
	}
	want := map[string]bool{}
	for _, c := range p.Cases() {
		if c.Settings.Place != "" {
			want[c.Settings.Place] = true
		}
	}
	assert.Equal(t, want, given, "%s: a folder for every place", p.Name)
	q, changes, err := p.Apply(o)
	require.NoError(t, err)
	for _, c := range changes {
		assert.NotContains(t, c.Text, "the only one", "%s: %s: a state of the protocol is lost", p.Name, cmp.Or(c.Kind, "?"))
	}
	return q
}
