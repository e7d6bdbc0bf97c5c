package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dmgbench/internal/cli/clitest"
	"dmgbench/internal/system/host"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// Engines start this program again as the work-alike of hdiutil: it must not run the tests then.
	if isImageTool(os.Args[1:]) {
		os.Exit(Run())
	}
	executable = os.Executable
	testscript.Main(m, map[string]func(){"dmgbench": func() { os.Exit(Run()) }})
}

// TestScripts reads like sessions of a user. "exits N command…" wants that very
// exit status, which "! exec" cannot.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:       "testdata/script",
		Setup:     anywhere,
		Condition: condition,
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": clitest.Exits, "head": head},
	})
}

// head is "head FILE N NEW [LINE…]": NEW gets the first N lines of FILE, and the lines given.
func head(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: head FILE N NEW [LINE...]")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	if len(lines) <= n {
		ts.Fatalf("%s has no more than %d lines", args[0], n)
	}
	text := strings.Join(lines[:n], "")
	for _, line := range args[3:] {
		text += line + "\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text), 0o644))
}

// anywhere makes a script the same on every machine: the engine is the one that
// works everywhere (what is of hdiutil, says so), and settings and state lie with
// the script. Root could make testscript's own "/no-home", which nobody else
// could read then.
func anywhere(e *testscript.Env) error {
	e.Setenv("GOGC", "400") // a third less processor time for processes that live a moment
	e.Setenv("DMGBENCH_RUN_ENGINE", "inprocess")
	e.Setenv("DMGBENCH_RESUME_ENGINE", "inprocess")
	scripts, err := filepath.Abs("../../scripts")
	if err != nil {
		return err
	}
	e.Setenv("SCRIPTS", scripts)
	home := filepath.Join(e.WorkDir, ".home")
	e.Setenv("HOME", home)
	return os.Mkdir(home, 0o755)
}

// condition knows [cpus]: the machine has the two processors that a plan of the scripts requires.
func condition(name string) (bool, error) {
	if name == "cpus" {
		return host.Gather(context.Background(), nil, false).CPUs >= 2, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}
