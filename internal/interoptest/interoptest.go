// Package interoptest holds what is written here against programs that other
// people wrote. Its tests make images of every kind by the work-alike of
// hdiutil and let other tools read and verify them; the functions find these
// tools for the tests of other packages, too.
//
// A tool that is not installed is a reason to skip, except under `make
// test-interop`, which installs all of them and sets DMGBENCH_INTEROP=1: there
// it is a failure. What comes by other ways than the package manager of the
// system is looked for, in this order, where the environment names it
// (DMGBENCH_INTEROP_PYTHON, an interpreter that has the modules of
// scripts/interop/requirements.txt, and DMGBENCH_INTEROP_FSTOOL), in the folder
// that scripts/interop/setup.sh fills, and on the path.
//
// It refuses to judge anything itself.
package interoptest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Required reports whether a missing tool is a failure.
func Required() bool { return os.Getenv("DMGBENCH_INTEROP") != "" }

// Missing ends a test for want of something.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if why := fmt.Sprintf(format, args...); Required() {
		t.Fatalf("%s: scripts/interop/setup.sh installs what is judged with", why)
	} else {
		t.Skip(why)
	}
}

// Tool is the path of a program: of fstool, or of one of the system.
func Tool(t testing.TB, name string) string {
	t.Helper()
	named := first("DMGBENCH_INTEROP_"+strings.ToUpper(name), "bin/"+name, name)
	for _, file := range []string{named, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(file); err == nil {
			return path
		}
	}
	Missing(t, "%s is not installed", name)
	return ""
}

// Python is an interpreter that has a module.
func Python(t testing.TB, module string) string {
	t.Helper()
	name := first("DMGBENCH_INTEROP_PYTHON", "venv/bin/python3", "python3")
	if _, known := modules.Load(module); known {
		return name
	}
	find := fmt.Sprintf("import importlib.util as i, sys; sys.exit(i.find_spec(%q) is None)", module)
	if out, err := exec.CommandContext(t.Context(), name, "-c", find).CombinedOutput(); err != nil {
		Missing(t, "the Python module %s is not installed: %v %.200s", module, err, out)
	}
	modules.Store(module, true)
	return name
}

// modules are those that Python has found: each look takes an interpreter.
var modules sync.Map

// first is what the environment names, else what is in the folder that
// setup.sh fills (DMGBENCH_INTEROP_CACHE, or dmgbench-interop in the user's
// cache folder), else a name for the path.
func first(variable, cached, name string) string {
	dir := os.Getenv("DMGBENCH_INTEROP_CACHE")
	if user, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(user, "dmgbench-interop")
	}
	if path := filepath.Join(dir, cached); dir != "" && exists(path) {
		name = path
	}
	return cmp.Or(os.Getenv(variable), name)
}

// Script is the path of one of our scripts for other people's modules, in
// scripts/interop.
func Script(t testing.TB, name string) string {
	t.Helper()
	dir, _ := os.Getwd()
	path := filepath.Join("scripts", "interop", name)
	for !exists(filepath.Join(dir, path)) {
		if dir == filepath.Dir(dir) {
			t.Fatalf("finding the script %q: no folder above has it", path)
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, path)
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

// Run runs a program, which has to succeed, and returns what it printed on both
// outputs.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
