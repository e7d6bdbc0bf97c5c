package imagetool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == HelperVerb { // the process behind an image that a script attached
		os.Exit(Main(context.Background(), os.Args[1:], System()))
	}
	tool := func(first ...string) func() {
		return func() { os.Exit(Main(context.Background(), append(first, os.Args[1:]...), System())) }
	}
	testscript.Main(m, map[string]func(){"hdiutil": tool(), "diskutil": tool("diskutil")})
}

// TestScripts reads like sessions of a user. "exits N command…" wants that very
// exit status. [attach] is a machine where images can be attached: root, loop devices, FUSE.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("DMGBENCH_RUNTIME_DIR", filepath.Join(e.WorkDir, "run"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "attach" {
				return canAttach() == "", nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// canAttach says what keeps this machine from attaching, or nothing.
func canAttach() string {
	if os.Getuid() != 0 {
		return "not root"
	}
	for _, node := range []string{"/dev/loop-control", "/dev/fuse"} {
		f, err := os.OpenFile(node, os.O_RDWR, 0)
		if err != nil {
			return err.Error()
		}
		f.Close()
	}
	return ""
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG…]")
	}
	wanted, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != wanted {
		ts.Fatalf("exit status %d, want %d", got, wanted)
	}
}
