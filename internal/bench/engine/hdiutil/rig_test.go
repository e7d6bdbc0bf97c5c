package hdiutil

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/bench/workload"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// rig is an engine over the stand-in.
type rig struct {
	t     *testing.T
	e     *Engine
	tool  *FakeTool
	dir   *hostio.Dir
	clock *clock.Virtual

	images int
}

const secret = "correct horse"

func newRig(t *testing.T, c FakeConfig, change ...func(*Options)) *rig {
	t.Helper()
	r, err := tryRig(t, c, change...)
	require.NoError(t, err)
	return r
}

func tryRig(t *testing.T, c FakeConfig, change ...func(*Options)) (*rig, error) {
	t.Helper()
	t.Setenv("DMGBENCH_PASSPHRASE", secret)
	tool := NewFakeTool(t.TempDir(), c)
	r := &rig{t: t, tool: tool, clock: tool.Clock.(*clock.Virtual)}
	var err error
	r.dir, err = hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { r.dir.Close() })
	o := Options{
		Hdiutil: tool.Command("hdiutil"), Diskutil: tool.Command("diskutil"), Ioreg: tool.Command("ioreg"), System: "macOS 26.4", Run: tool.Run,
		Host: tool.Host(), Clock: FakeClock{r.clock, tool}, WorkDir: t.TempDir(),
		Deadline: func(string, int64) time.Duration { return time.Minute }, Grace: 10 * time.Millisecond,
	}
	for _, f := range change {
		f(&o)
	}
	if r.e, err = newUnprobed(o); err != nil {
		return r, err
	}
	if usual := reflect.DeepEqual(c, FakeConfig{Rules: c.Rules}); usual && c.Rules != nil {
		r.e.can, r.e.o.Vendor = probedOnce(t), "Apple"
		return r, nil
	}
	return r, r.e.probe(t.Context())
}

// probed are the capabilities of the usual stand-in, asked for once.
func probedOnce(t *testing.T) capabilities {
	once.Do(func() { usual = newRig(t, FakeConfig{}).e.can })
	return usual
}

var (
	once  sync.Once
	usual capabilities
)

func (r *rig) attached() []FakeMount { return r.tool.Attached() }

func spec(format string, change ...func(*engine.Spec)) engine.Spec {
	s := engine.Spec{Format: format, Encryption: "none", Filesystems: []string{"APFS"}, Size: 32 << 20, VolumeName: "Bench", Backend: "auto"}
	for _, f := range change {
		f(&s)
	}
	return s
}

func encrypted(kind string) func(*engine.Spec) {
	return func(s *engine.Spec) { s.Encryption, s.Passphrase = kind, []byte(secret) }
}

func by(backend string) func(*engine.Spec) { return func(s *engine.Spec) { s.Backend = backend } }

func on(fs ...string) func(*engine.Spec) { return func(s *engine.Spec) { s.Filesystems = fs } }

func (r *rig) create(name string, s engine.Spec) *image {
	r.t.Helper()
	c, err := r.e.Create(r.t.Context(), r.dir, name, s)
	require.NoError(r.t, err)
	return c.(*image)
}

func (r *rig) attach(c engine.Container, o engine.AttachOptions) *attachment {
	r.t.Helper()
	a, err := c.Attach(r.t.Context(), o)
	require.NoError(r.t, err)
	return a.(*attachment)
}

var mountPointNumber = regexp.MustCompile(`WORK/mnt\d+`)

// verbs are the commands of one verb so far, paths shortened.
func (r *rig) verbs(verb string) []string {
	var out []string
	for _, c := range r.tool.Calls() {
		if c.Verb() == verb {
			line := command.Command{Tool: command.Tool(c.Tool), Args: c.Args}.String()
			line = strings.ReplaceAll(line, r.dir.Path(), "PLACE")
			line = strings.ReplaceAll(line, r.e.o.WorkDir, "WORK")
			out = append(out, mountPointNumber.ReplaceAllString(line, "WORK/mnt"))
		}
	}
	return out
}

func (r *rig) last(verb string) string {
	r.t.Helper()
	all := r.verbs(verb)
	require.NotEmpty(r.t, all, verb)
	return all[len(all)-1]
}

// clean says that nothing is attached, no mount point is left and no secret was shown.
func (r *rig) clean() {
	r.t.Helper()
	assert.Empty(r.t, r.attached(), "attached images")
	left, err := os.ReadDir(r.e.o.WorkDir)
	require.NoError(r.t, err)
	assert.Empty(r.t, left, "mount points")
	assert.Empty(r.t, r.tool.Broken)
	for _, c := range r.tool.Calls() {
		assert.NotContains(r.t, strings.Join(c.Args, " "), secret)
	}
}

func put(t *testing.T, v workload.Volume, name string) {
	t.Helper()
	f, err := v.Create(name, 5, workload.FileOptions{})
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("hello"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func there(t *testing.T, v workload.Volume, name string) {
	t.Helper()
	f, err := v.Open(name, workload.FileOptions{})
	require.NoError(t, err)
	p := make([]byte, 5)
	_, err = f.ReadAt(p, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, "hello", string(p))
}

func (r *rig) file(name string) string { return filepath.Join(r.dir.Path(), name) }

// formatOf is the row of a format.
func formatOf(name string) format {
	f, _ := diskimage.FormatNamed(name)
	return f
}
