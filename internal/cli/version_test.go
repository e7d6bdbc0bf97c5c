package cli

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// The command version names the commit, and marks it where the sources of the program were changed.
func TestVersionNamesTheCommit(t *testing.T) {
	info, release, state := buildInfo, released, sources
	t.Cleanup(func() { buildInfo, released, sources = info, release, state })
	for name, c := range map[string]struct {
		stamped, commit, changed  string
		released, sources         string
		wantVersion, wantRevision string
	}{
		"no version control": {wantVersion: "(devel)", wantRevision: "unknown"},
		"clean clone":        {stamped: "v1.2.0", commit: "abc", changed: "false", wantVersion: "v1.2.0", wantRevision: "abc"},
		"changed clone": {stamped: "v1.2.0+dirty", commit: "abc", changed: "true",
			wantVersion: "v1.2.0+dirty", wantRevision: "abc (changed)"},
		"clone with a new plan": {stamped: "v1.2.0+dirty", commit: "abc", changed: "true", sources: "unchanged",
			wantVersion: "v1.2.0", wantRevision: "abc"},
		"package": {stamped: "(devel)", released: "1.2.3", wantVersion: "1.2.3", wantRevision: "unknown"},
	} {
		b := &debug.BuildInfo{Main: debug.Module{Version: c.stamped}}
		for _, s := range []debug.BuildSetting{{Key: "-compiler", Value: "gc"}, {Key: "vcs.revision", Value: c.commit},
			{Key: "vcs.modified", Value: c.changed}, {Key: "GOOS", Value: "true"}} {
			if s.Value != "" {
				b.Settings = append(b.Settings, s)
			}
		}
		buildInfo = func() *debug.BuildInfo { return b }
		released, sources = c.released, c.sources
		code, out, stderr := call(t, nil, "version")
		require.Zero(t, code, stderr)
		lines := strings.Split(out, "\n")
		assert.Equal(t, "dmgbench "+c.wantVersion, lines[0], name)
		assert.Equal(t, "commit "+c.wantRevision, lines[2], name)
	}
}
