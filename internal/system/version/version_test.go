package version

import (
	"runtime/debug"
	"strings"
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

// The description names the commit, and marks it where the sources of the program were changed.
func TestDescribeNamesTheCommit(t *testing.T) {
	info, release, state := buildInfo, released, sources
	t.Cleanup(func() { buildInfo, released, sources = info, release, state })
	for name, c := range map[string]struct {
		stamped, commit, changed  string
		date                      string
		released, sources         string
		wantVersion, wantRevision string
	}{
		"no version control": {wantVersion: "(devel)", wantRevision: "unknown"},
		"clean clone":        {stamped: "v1.2.0", commit: "abc", changed: "false", wantVersion: "v1.2.0", wantRevision: "abc"},
		"changed clone": {stamped: "v1.2.0+dirty", commit: "abc", changed: "true",
			wantVersion: "v1.2.0+dirty", wantRevision: "abc (changed)"},
		"clone with a new plan": {stamped: "v1.2.0+dirty", commit: "abc", changed: "true", sources: "unchanged",
			wantVersion: "v1.2.0", wantRevision: "abc"},
		"commit with its date": {stamped: "v1.2.0", commit: "abc", changed: "true", date: "2026-11-23T19:04:55Z",
			wantVersion: "v1.2.0", wantRevision: "abc of 2026-11-23T19:04:55Z (changed)"},
		"package": {stamped: "(devel)", released: "1.2.3", wantVersion: "1.2.3", wantRevision: "unknown"},
	} {
		b := &debug.BuildInfo{Main: debug.Module{Version: c.stamped}}
		for _, s := range []debug.BuildSetting{{Key: "-compiler", Value: "gc"}, {Key: "vcs.revision", Value: c.commit},
			{Key: "vcs.modified", Value: c.changed}, {Key: "vcs.time", Value: c.date},
			{Key: "GOOS", Value: "true"}} {
			if s.Value != "" {
				b.Settings = append(b.Settings, s)
			}
		}
		buildInfo = func() *debug.BuildInfo { return b }
		released, sources = c.released, c.sources
		lines := strings.Split(Describe("dmgbench"), "\n")
		assert.Equal(t, "dmgbench "+c.wantVersion, lines[0], name)
		assert.Equal(t, "commit "+c.wantRevision, lines[2], name)
	}
}
