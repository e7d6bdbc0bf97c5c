package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"dmgbench/internal/result"

	"github.com/spf13/cobra"
)

func (a *app) newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", GroupID: "maintain", Args: between(0, 0, ""),
		Short:   "print version, Go, system and commit",
		Long:    "Print the program's version, the Go it was built with, the system and the\ncommit.\n\n" + exitPrinted,
		Example: "  dmgbench version",
		RunE: func(*cobra.Command, []string) error {
			t := tool()
			_, err := fmt.Fprintf(a.out, "%s %s\n%s %s/%s\ncommit %s\n", t.Name, t.Version, t.Go, t.OS, t.Arch, commit())
			return err
		},
	}
}

// released is the version that a build without version control is of; the linker sets it:
// -X dmgbench/internal/cli.released=1.2.3.
var released string

// sources is "unchanged" where the Makefile found every file that goes into the
// program as it was committed: -X dmgbench/internal/cli.sources=unchanged. Go itself
// calls a build modified for any file in the clone that is not committed, such as a plan.
var sources string

// tool is this program as results name it.
func tool() result.Tool {
	version := cmp.Or(released, "(devel)")
	if b, ok := debug.ReadBuildInfo(); ok && released == "" {
		version = cmp.Or(versionOf(b.Main.Version, sources), version)
	}
	return result.Tool{Name: "dmgbench", Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// versionOf is the version that Go stamped, without its mark of a modified clone where the sources are unchanged.
func versionOf(stamped, sources string) string {
	if sources == "unchanged" {
		return strings.TrimSuffix(strings.TrimSuffix(stamped, "+dirty"), ".dirty")
	}
	return stamped
}

// commit is what the program was built from, as far as the build knows.
func commit() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	known := map[string]string{}
	for _, s := range b.Settings {
		known[s.Key] = s.Value
	}
	text := cmp.Or(known["vcs.revision"], "unknown")
	if known["vcs.modified"] == "true" && sources != "unchanged" {
		text += " (changed)"
	}
	return text
}
