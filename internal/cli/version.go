package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"dmgbench/internal/result"
)

// printVersion is the command "version".
func (a *app) printVersion(context.Context, []string) error {
	t := tool()
	_, err := fmt.Fprintf(a.stdout, "%s %s\n%s %s/%s\ncommit %s\n", t.Name, t.Version, t.Go, t.OS, t.Arch, commit())
	return err
}

// released is the version of a build without version control, such as that of a
// package manager. The linker sets it: -X dmgbench/internal/cli.released=1.2.3.
var released string

// sources is "unchanged" where the Makefile found every file of the program as
// it was committed; the linker sets it: -X
// dmgbench/internal/cli.sources=unchanged. Go itself marks a build as modified
// for any changed file in the clone, such as a new plan.
var sources string

// tool identifies this program in results.
func tool() result.Tool {
	// go install and go build stamp a version if there is one.
	version := cmp.Or(released, "(devel)")
	if b, ok := debug.ReadBuildInfo(); ok && released == "" {
		version = cmp.Or(versionOf(b.Main.Version, sources), version)
	}
	return result.Tool{Name: "dmgbench", Version: version, Go: runtime.Version(),
		OS: runtime.GOOS, Arch: runtime.GOARCH}
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

// commit is the revision of the build, marked as changed unless the sources
// were unchanged.
func commit() string {
	revision, mark := "unknown", ""
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true" && sources != "unchanged":
				mark = " (changed)"
			}
		}
	}
	return revision + mark
}
