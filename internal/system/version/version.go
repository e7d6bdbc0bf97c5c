// Package version reports which build of this module a program is.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// released is the version of a release, or of a build without version control,
// such as that of a package manager. The linker sets it: -X
// dmgbench/internal/system/version.released=1.2.3.
var released string

// sources is "unchanged" where the Makefile found every file of the program as
// it was committed; the linker sets it: -X
// dmgbench/internal/system/version.sources=unchanged. Go itself marks a build as
// modified for any changed file in the clone, such as a new plan.
var sources string

// buildInfo is what Go stamped into the program; empty without it.
var buildInfo = func() *debug.BuildInfo {
	b, _ := debug.ReadBuildInfo()
	return cmp.Or(b, &debug.BuildInfo{})
}

// Version is the version of this program, "(devel)" if unknown.
func Version() string {
	// go install and go build stamp a version if there is one.
	return cmp.Or(released, versionOf(buildInfo().Main.Version, sources), "(devel)")
}

// versionOf is the version that Go stamped, without the mark of a modified
// clone where the sources are unchanged. Go 1.24 and later append "+dirty", or
// ".dirty" after build metadata.
func versionOf(stamped, sources string) string {
	if sources == "unchanged" {
		return strings.TrimSuffix(strings.TrimSuffix(stamped, "+dirty"), ".dirty")
	}
	return stamped
}

// Describe returns three lines about the program of that name: its version; Go
// and platform; the commit with its date in UTC, and a mark if the sources were
// changed after it. The date of the build is left out, so that equal sources
// give equal bytes.
func Describe(name string) string {
	settings := map[string]string{}
	for _, s := range buildInfo().Settings {
		settings[s.Key] = s.Value
	}
	commit := cmp.Or(settings["vcs.revision"], "unknown")
	if date := settings["vcs.time"]; date != "" {
		commit += " of " + date
	}
	if settings["vcs.modified"] == "true" && sources != "unchanged" {
		commit += " (changed)"
	}
	return fmt.Sprintf("%s %s\n%s %s/%s\ncommit %s", name, Version(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH, commit)
}
