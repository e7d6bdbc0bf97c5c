package imagetool

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/linuxhdiutil/attach"

	"github.com/stretchr/testify/require"
)

// fake is an attacher that remembers. It touches no device.
type fake struct {
	attached []attach.Attached
	calls    []string
	fail     map[string]error // by method
	fs       []attach.FS
	loops    bool
	fsOn     string // the file system that attaching finds; "-" for none
	lost     []string
	requests []attach.Request
	next     int
	reap     func() // what List does about the dead
}

func (f *fake) note(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	f.calls = append(f.calls, line)
	method, _, _ := strings.Cut(line, " ")
	return f.fail[method]
}

func (f *fake) Attach(_ context.Context, r attach.Request) (attach.Attached, error) {
	f.requests = append(f.requests, r)
	if err := f.note("Attach %s nomount=%t", filepath.Base(r.Image), r.NoMount); err != nil {
		return attach.Attached{}, err
	}
	if f.fsOn == "-" && !r.NoMount {
		return attach.Attached{}, attach.ErrNoFileSystem
	}
	dev := fmt.Sprintf("/dev/loop%d", f.next)
	f.next++
	a := attach.Attached{Image: r.Image, Format: "UDRW", Device: dev, Partition: dev + "p1", ReadOnly: r.ReadOnly, Mode: "loop",
		Filesystem: f.fsOn, VolumeName: "untitled", Size: 10 << 20, HelperPID: 4711}
	r.Info.Describe(&a)
	if a.Filesystem == "-" {
		a.Filesystem = ""
	}
	if !r.NoMount {
		a = f.mounted(a, r)
	}
	f.attached = append(f.attached, a)
	return a, nil
}

func (f *fake) mounted(a attach.Attached, r attach.Request) attach.Attached {
	a.MountPoint = "/run/media/dmgbench/untitled"
	if r.MountPoint != "" {
		a.MountPoint = r.MountPoint
	}
	return a
}

func (f *fake) Detach(_ context.Context, a attach.Attached, force bool) (attach.Lost, error) {
	if err := f.note("Detach %s force=%t", a.Device, force); err != nil && !force {
		return nil, err
	}
	f.attached = slices.DeleteFunc(f.attached, func(o attach.Attached) bool { return o.Device == a.Device })
	return f.lost, nil
}

func (f *fake) List(context.Context) ([]attach.Attached, error) {
	if f.reap != nil {
		f.reap()
	}
	return f.attached, f.fail["List"]
}

func (f *fake) Mount(_ context.Context, a attach.Attached, r attach.Request) (attach.Attached, error) {
	if err := f.note("Mount %s", a.Device); err != nil {
		return a, err
	}
	for n := range f.attached {
		if f.attached[n].Device == a.Device {
			f.attached[n] = f.mounted(a, r)
			return f.attached[n], nil
		}
	}
	return a, syscall.ENXIO
}

func (f *fake) Unmount(_ context.Context, a attach.Attached, force bool) error {
	if err := f.note("Unmount %s force=%t", a.Device, force); err != nil {
		return err
	}
	for n := range f.attached {
		if f.attached[n].Device == a.Device {
			f.attached[n].MountPoint = ""
		}
	}
	return nil
}

func (f *fake) Trim(_ context.Context, p string) (int64, error) { return 4096, f.note("Trim %s", p) }
func (f *fake) Filesystems() []attach.FS                        { return f.fs }
func (f *fake) Make(_ context.Context, device, fs, label string) error {
	return f.note("Make %s %s %s", device, fs, label)
}
func (f *fake) CheckGrow(fs string) error { return f.note("CheckGrow %s", fs) }
func (f *fake) Grow(_ context.Context, a attach.Attached) error {
	return f.note("Grow %s", a.Partition)
}
func (f *fake) Loops() bool { return f.loops }

// attacher has the functions of the fake.
func (f *fake) attacher() *Attacher {
	return &Attacher{Attach: f.Attach, Detach: f.Detach, List: f.List, Mount: f.Mount, Unmount: f.Unmount, Trim: f.Trim,
		Filesystems: f.Filesystems, Make: f.Make, CheckGrow: f.CheckGrow, Grow: f.Grow, Loops: f.Loops}
}

// machine is a folder, an attacher, and what was printed last.
type machine struct {
	t        *testing.T
	dir      string
	at       *fake
	out, err string
	uid      int
}

func newMachine(t *testing.T) *machine {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &machine{t: t, dir: dir, at: &fake{fsOn: "exfat", fail: map[string]error{}}, uid: 1000}
}

// withDefaults fills in what is not set: an empty stdin, outputs that are
// discarded, and the rest as [System] has it.
func (e Env) withDefaults() Env {
	system := System()
	e.Stdin = cmp.Or[io.Reader](e.Stdin, strings.NewReader(""))
	e.Stdout, e.Stderr = cmp.Or(e.Stdout, io.Discard), cmp.Or(e.Stderr, io.Discard)
	e.Attacher, e.Random = cmp.Or(e.Attacher, system.Attacher), cmp.Or(e.Random, system.Random)
	e.Version = cmp.Or(e.Version, "0")
	if e.Now == nil {
		e.Now = system.Now
	}
	return e
}

// run executes a command line and returns its status.
func (m *machine) run(args ...string) int {
	m.t.Helper()
	var out, errs bytes.Buffer
	status := Main(m.t.Context(), args, Env{Stdout: &out, Stderr: &errs, Attacher: m.at.attacher(), Dir: m.dir, Version: "1.2", UID: m.uid, Iterations: 1000,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC) }, Random: rand.NewChaCha8([32]byte{7})}.withDefaults())
	m.out, m.err = strings.ReplaceAll(out.String(), m.dir, "DIR"), strings.ReplaceAll(errs.String(), m.dir, "DIR")
	return status
}

// do is run of a line that has to succeed; words are separated by blanks.
func (m *machine) do(line string) string {
	m.t.Helper()
	require.Equal(m.t, 0, m.run(strings.Fields(line)...), "%s: %s", line, m.err)
	return m.out
}

// refused is run of a line that has to end with a status and these words on stderr.
func (m *machine) refused(status int, words, line string) {
	m.t.Helper()
	require.Equal(m.t, status, m.run(strings.Fields(line)...), "%s: %s%s", line, m.out, m.err)
	require.Contains(m.t, m.err, words, line)
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, content string) {
	m.t.Helper()
	require.NoError(m.t, os.MkdirAll(filepath.Dir(m.path(name)), 0o700))
	require.NoError(m.t, os.WriteFile(m.path(name), []byte(content), 0o600))
}

// hold opens an image for writing, as somebody else would, until the test ends.
func (m *machine) hold(name string) {
	m.t.Helper()
	p, err := placeAt(m.path(name))
	require.NoError(m.t, err)
	img, err := container.Open(p.dir, p.name, container.OpenOptions{})
	require.NoError(m.t, err)
	m.t.Cleanup(func() { img.Close(); p.close() })
}

// leftovers are names in the folder that begin with a dot.
func (m *machine) leftovers() []string {
	m.t.Helper()
	list, err := filepath.Glob(m.path(".*"))
	require.NoError(m.t, err)
	return list
}

// lastVolume is the device of the last partition, or the whole one.
func lastVolume(img container.Image) (blockdev.Device, *gpt.Partition, error) {
	info, err := attach.Inspect(img)
	if err != nil {
		return img, nil, err
	}
	vol, err := info.Last().Section(img)
	return vol, info.Last().Part, err
}
