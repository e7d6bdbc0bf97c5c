package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A plan that was copied into the clone makes no other version of the program.
func TestVersionOfUnchangedSources(t *testing.T) {
	const stamped = "v0.0.0-20261122125007-216a46aabbcc"
	for _, c := range []struct{ stamped, sources, want string }{
		{stamped, "", stamped},
		{stamped, "unchanged", stamped},
		{stamped + "+dirty", "", stamped + "+dirty"},
		{stamped + "+dirty", "unchanged", stamped},
		{"v1.2.0+meta.dirty", "unchanged", "v1.2.0+meta"},
		{"(devel)", "unchanged", "(devel)"},
	} {
		assert.Equal(t, c.want, versionOf(c.stamped, c.sources), "%s, sources %q", c.stamped, c.sources)
	}
}
