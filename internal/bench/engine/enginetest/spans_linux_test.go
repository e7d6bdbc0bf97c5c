package enginetest

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// spansOf names the target to the process whose system calls are counted.
const spansOf = "DMGBENCH_TEST_SPANS_OF"

// mark makes a system call that does nothing and shows in the trace.
func mark(kind, text string) { _ = unix.Access("/of-dmgbench/"+kind+"/"+text, unix.F_OK) }

// markedClock marks each reading with the function that reads.
type markedClock struct{ clock.Real }

func (c markedClock) Now() time.Duration {
	pc, _, _, _ := runtime.Caller(1)
	at := c.Real.Now()
	by := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(runtime.FuncForPC(pc).Name(), ".func1")), ".")
	if by != "ownTime" { // of which there are thousands, of a call that does nothing
		mark("clock", by)
	}
	return at
}

// spanTargets are what the steps are done on.
var spanTargets = map[string]engine.Spec{
	"native": {}, "loop": {Format: "UDRW", Filesystems: []string{"ext4"}, Size: 32 << 20, VolumeName: "SPANS"},
	"FUSE":       {Format: "UDRW", Filesystems: []string{"exFAT"}, Size: 32 << 20, VolumeName: "SPANS"},
	"in-process": {Format: "UDRW", Size: 32 << 20, VolumeName: "SPANS"},
}

// TestSpansToBeTraced does the steps whose calls [TestSpansContainTheCallsThatThePageNames] counts.
func TestSpansToBeTraced(t *testing.T) {
	target := os.Getenv(spansOf)
	if target == "" {
		return
	}
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	r := &rig{t: t, ctx: t.Context(), dir: dir, s: spanTargets[target], e: directory.Engine{}}
	switch target {
	case "in-process":
		r.e = inprocess.New(clock.NewReal().Wall)
	case "loop", "FUSE":
		r.e = workAlike(t)
	}
	native := (&rig{t: t, ctx: t.Context(), dir: dir, e: directory.Engine{}}).create("native")
	c, copied := r.create("image"), (&rig{t: t, ctx: t.Context(), dir: dir, e: directory.Engine{}}).attach(native, engine.AttachOptions{})
	set := plan.FileSet{Name: "tree", Tree: &plan.Tree{Files: 24, Folders: 6, Depth: 3, Links: 0.2, Executables: 0.2,
		Sizes: []units.Bytes{1, 700, 5000, 70_000}}}
	spec := workload.TreeSpec{Share: 0.5, Key: workload.Key{Seed: 1, Round: 1, Step: "rewrite"}}
	spec.Tree, spec.Files = workload.NewTree(set, 7, 1)
	o := r.work(workload.CacheBuffered)
	o.Clock, o.Workers, o.Sync = markedClock{clock.NewReal()}, 2, hostio.SyncFsync
	tree := func(v workload.Volume, action string) {
		spec.Action, spec.To = action, copied.Volume()
		mark("step", action)
		_, err := workload.RunTree(r.ctx, v, &spec, o)
		require.NoError(t, err)
	}
	r.with(c, func(v workload.Volume) { tree(v, "create") })
	r.with(c, func(v workload.Volume) {
		for _, action := range []string{"list", "read", "copy", "rewrite", "rename", "delete"} {
			tree(v, action)
		}
		items := []workload.Item{{Name: "w/a", Size: 300_000}, {Name: "w/b", Size: 1}, {Name: "w/c", Size: 70_000}}
		mark("step", "write")
		_, err := workload.Write(r.ctx, v, items, o)
		require.NoError(t, err)
		mark("step", "whole")
		_, err = workload.Read(r.ctx, v, items, o)
		require.NoError(t, err)
		o.Block = 4096
		mark("step", "random")
		_, err = workload.Random(r.ctx, v, plan.Step{File: "w/a", FileSize: 300_000, Reads: 0.5, Amount: 100 * 4096, Flush: 4}, spec.Key, o)
		require.NoError(t, err)
		mark("step", "edit")
		_, _, err = workload.EditFiles(r.ctx, v, items[:1], workload.Edit{Kind: workload.EditReplace, Share: 0.1}, spec.Key, o)
		require.NoError(t, err)
		mark("step", "end")
	})
}

// tracedCall is a line of strace.
type tracedCall struct {
	at, thread, name, args string
}

var callLine = regexp.MustCompile(`^(\d+\.\d+) (\w+)\((.*)`)

// trace does the steps on a target under strace and returns the calls of all threads of that process in their order.
func trace(t *testing.T, target string) (calls []tracedCall) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-ff", "-qq", "-ttt", "--seccomp-bpf", "-b", "execve", "-e", "trace=%file,%desc",
		"-e", "signal=none", "-o", out, self,
		"-test.run=^TestSpansToBeTraced$", "-test.count=1")
	cmd.Env = append(os.Environ(), spansOf+"="+target, "DMGBENCH_RUNTIME_DIR="+t.TempDir())
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	files, err := filepath.Glob(out + ".*")
	require.NoError(t, err)
	for _, thread := range files {
		text, err := os.ReadFile(thread)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if m := callLine.FindStringSubmatch(line); m != nil && m[2] != "mmap" { // the runtime's own memory
				name := strings.ReplaceAll(m[2], "syscall_0x1c4", "fchmodat2") // which older ones do not know
				calls = append(calls, tracedCall{m[1], thread, name, m[3]})
			}
		}
	}
	slices.SortStableFunc(calls, func(a, b tracedCall) int { return cmp.Compare(a.at, b.at) })
	return calls
}

// marked is the mark of a call, "" if it is none.
func (c tracedCall) marked() (kind, text string) {
	if _, after, ok := strings.Cut(c.args, `"/of-dmgbench/`); ok {
		after, _, _ = strings.Cut(after, `"`)
		kind, text, _ = strings.Cut(after, "/")
	}
	return kind, text
}

// span are the calls of one thread between two readings of the clock, of a step with operations between the two of one.
type span struct {
	step, from, to string
	calls          []tracedCall
}

func (s span) String() string {
	var names []string
	for _, c := range s.calls {
		names = append(names, c.name)
	}
	return strings.Join(names, " ")
}

// spansIn are the spans of a trace, of each thread in their order.
func spansIn(calls []tracedCall) (spans []span) {
	step, open, odd := "", map[string]*span{}, map[string]bool{}
	for _, c := range calls {
		kind, text := c.marked()
		s := open[c.thread]
		switch {
		case kind == "step":
			step = text
			clear(open)
			clear(odd)
		case kind == "clock":
			odd[c.thread+text] = !odd[c.thread+text]
			if s != nil && (step == "random" || s.from == text && !odd[c.thread+text]) {
				s.to = text
				spans = append(spans, *s)
			}
			open[c.thread] = &span{step: step, from: text}
		case s != nil:
			s.calls = append(s.calls, c)
		}
	}
	return spans
}

// onHost are the calls of the operations of each step on a folder of the host, as methodology.md names them, and how
// often each comes.
var onHost = map[string]map[string]int{
	"create":  {"mkdirat": 7, "openat pwrite64 fsync close": 24, "symlinkat": 5, "fchmodat2": 5},
	"list":    {"openat getdents64 getdents64 close": 7, "newfstatat": 24},
	"read":    {"openat pread64 close": 24},
	"copy":    {"openat getdents64 getdents64 close": 7, "mkdirat": 7, "newfstatat openat openat pread64 pwrite64 fsync close close": 24, "symlinkat": 5},
	"rewrite": {"openat pwrite64 fsync close": 12},
	"rename":  {"renameat": 24},
	"delete":  {"unlinkat": 24 + 5 + 7},
	"write":   {"pwrite64 fsync": 3},
	"whole":   {"pread64": 3},
}

// inImage are those of an image that the process opens: reads, writes and flushes of the image, after which it looks
// whether the image is still there. Only a flush makes a step of names touch the image.
var inImage = map[string]*regexp.Regexp{
	"create":  regexp.MustCompile(`^((preadv?(64)?|pwritev?(64)?|fsync newfstatat) ?)*$`),
	"list":    regexp.MustCompile(`^(pread64 ?)*$`),
	"read":    regexp.MustCompile(`^pread64$`),
	"copy":    regexp.MustCompile(`^(mkdirat|openat pread64 pwrite64 fsync close)?$`),
	"rewrite": regexp.MustCompile(`^((preadv?(64)?|pwritev?(64)?|fsync newfstatat) ?)*$`),
	"rename":  regexp.MustCompile(`^$`),
	"delete":  regexp.MustCompile(`^$`),
	"write":   regexp.MustCompile(`^((pwritev?(64)?|fsync newfstatat) ?)*$`),
	"whole":   regexp.MustCompile(`^pread64$`),
}

func TestSpansContainTheCallsThatThePageNames(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	for target := range spanTargets {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			switch mounted := target == "loop" || target == "FUSE"; {
			case mounted && os.Geteuid() != 0:
				t.Skip("needs root: it attaches images")
			case mounted && !attach.Loops():
				t.Skip("no loop device")
			}
			calls := trace(t, target)
			found := map[string]map[string]int{}
			for _, s := range spansIn(calls) {
				if found[s.step] == nil {
					found[s.step] = map[string]int{}
				}
				switch {
				case s.step == "random":
					assert.Contains(t, []string{"", "pread64", "pwrite64", "fsync", "fsync newfstatat"}, s.String())
					if s.to == "do" {
						found[s.step][strings.TrimSuffix(s.String(), " newfstatat")]++
					}
				case target == "in-process":
					assert.Regexp(t, inImage[s.step], s.String(), s.step)
					found[s.step][""]++
				default:
					found[s.step][s.String()]++
				}
			}
			writes := found["random"]["pwrite64"]
			assert.Equal(t, 100, writes+found["random"]["pread64"])
			assert.InDelta(t, writes/4, found["random"]["fsync"], 1)
			delete(found, "random")
			assertEdit(t, target, callsIn(calls, "edit"))
			if target == "in-process" {
				assert.Len(t, found, len(inImage))
				return
			}
			for step, want := range onHost {
				want = maps.Clone(want)
				if target == "FUSE" { // exFAT has neither links nor modes
					delete(want, "symlinkat")
					delete(want, "fchmodat2")
					if step == "delete" {
						want["unlinkat"] -= 5
					}
				}
				assert.Equal(t, want, found[step], step)
			}
			assert.Equal(t, 24, mentioned(calls, "list", ".dat\""), "no file is looked up before it is timed: it is cold after a remount")
		})
	}
}

// callsIn is how often each call comes in a step, whose time is that of the whole step.
func callsIn(calls []tracedCall, step string) map[string]int {
	n := map[string]int{}
	in := ""
	for _, c := range calls {
		kind, name := c.marked()
		if kind == "step" {
			in = name
		}
		if kind == "" && in == step {
			n[c.name]++
		}
	}
	return n
}

// assertEdit looks for what the page names: of 74 blocks 7 change, the file is written as another one, and is flushed
// before the volume is.
func assertEdit(t *testing.T, target string, got map[string]int) {
	t.Helper()
	assert.Equal(t, 1, got["pread64"], "the old content is read")
	assert.GreaterOrEqual(t, got["fsync"], 2, "the file and the volume are flushed")
	if target == "in-process" {
		return
	}
	assert.Equal(t, 1+7, got["pwrite64"], "the copy, and the blocks that change")
	assert.Equal(t, 1, got["renameat"])
}

// mentioned is how many calls of a step have a text in their arguments.
func mentioned(calls []tracedCall, step, text string) (n int) {
	in := ""
	for _, c := range calls {
		if kind, name := c.marked(); kind == "step" {
			in = name
		}
		if in == step && strings.Contains(c.args, text) {
			n++
		}
	}
	return n
}
