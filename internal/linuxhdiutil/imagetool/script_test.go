package imagetool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"dmgbench/internal/cli/clitest"
	"dmgbench/internal/linuxhdiutil/attach"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == HelperVerb { // the process behind an image that a script attached
		os.Exit(Main(context.Background(), os.Args[1:], System()))
	}
	if len(os.Args) == 2 && os.Args[1] == releaseAll {
		list, err := attach.List(context.Background())
		for _, a := range list {
			_, e := attach.Detach(context.Background(), a, true)
			err = errors.Join(err, e)
		}
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
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
			run := filepath.Join(e.WorkDir, "run")
			e.Setenv("DMGBENCH_RUNTIME_DIR", run)
			e.Defer(func() { release(run) }) // whatever a script that was cut short left attached
			return os.Mkdir(run, 0o700)
		},
		Condition: func(name string) (bool, error) {
			if name == "attach" {
				return canAttach() == "", nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": clitest.Exits, "detachall": detachAll},
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

// detachAll detaches what the script has attached.
func detachAll(ts *testscript.TestScript, _ bool, _ []string) {
	release(ts.Getenv("DMGBENCH_RUNTIME_DIR"))
}

// release detaches what is attached under a runtime folder, which is a script's own.
func release(run string) {
	list := exec.Command("/proc/self/exe", releaseAll)
	list.Env = append(os.Environ(), "DMGBENCH_RUNTIME_DIR="+run)
	_ = list.Run()
}

// releaseAll is the argument with which this program detaches everything.
const releaseAll = "release-all"
