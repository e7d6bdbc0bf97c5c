package exfat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/image/blockdev/blockdevtest"
)

// machine drives a volume beside a map of what must be on it.
type machine struct {
	dev   *blockdevtest.MemDevice
	v     *Volume
	files map[string][]byte
	open  map[string]*File
	// removed are files that were removed while they were open.
	removed []removedFile
	next    int
}

type removedFile struct {
	*File
	data []byte
}

var machineDirs = []string{"", "sub/", "sub/deep/"}

func (m *machine) anyFile(t *rapid.T) string {
	names := slices.Sorted(maps.Keys(m.files))
	if len(names) == 0 {
		t.Skip("no files")
	}
	return rapid.SampledFrom(names).Draw(t, "file")
}

func (m *machine) newName(t *rapid.T) string {
	m.next++
	return rapid.SampledFrom(machineDirs).Draw(t, "dir") + fmt.Sprintf("%d%s", m.next, strings.Repeat("ñ", rapid.IntRange(0, 40).Draw(t, "extra")))
}

func (m *machine) handle(t *rapid.T, name string) *File {
	if m.open[name] == nil {
		f, err := m.v.Open(name)
		require.NoError(t, err)
		m.open[name] = f
	}
	return m.open[name]
}

func (m *machine) create(t *rapid.T) {
	name := m.newName(t)
	size := rapid.IntRange(0, 150_000).Draw(t, "size")
	f, err := m.v.CreateStriped(name, int64(size), rapid.IntRange(0, 3).Draw(t, "stripe"))
	if errors.Is(err, ErrNoSpace) {
		require.Less(t, m.v.Free(), int64(size)+64<<10)
		return
	}
	require.NoError(t, err)
	m.files[name], m.open[name] = make([]byte, size), f
}

func (m *machine) write(t *rapid.T) {
	name := m.anyFile(t)
	have := m.files[name]
	off := rapid.IntRange(0, len(have)+20_000).Draw(t, "off")
	if rapid.Bool().Draw(t, "aligned") {
		off = off / 4096 * 4096
	}
	data := noise(rapid.Uint64Range(0, 1<<20).Draw(t, "seed"), rapid.IntRange(0, 60_000).Draw(t, "n"))
	if rapid.Bool().Draw(t, "to the end") && off < len(have) {
		data = noise(uint64(off), len(have)-off)
	}
	_, err := m.handle(t, name).WriteAt(data, int64(off))
	if errors.Is(err, ErrNoSpace) {
		return
	}
	require.NoError(t, err)
	if end := off + len(data); len(data) > 0 && end > len(have) {
		have = append(have, make([]byte, end-len(have))...)
	}
	if len(data) > 0 {
		copy(have[off:], data)
	}
	m.files[name] = have
}

func (m *machine) read(t *rapid.T) {
	name := m.anyFile(t)
	want := m.files[name]
	off := rapid.IntRange(0, len(want)).Draw(t, "off")
	p := make([]byte, rapid.IntRange(0, len(want)-off).Draw(t, "n"))
	_, err := m.handle(t, name).ReadAt(p, int64(off))
	require.NoError(t, err)
	requireSame(t, want[off:off+len(p)], p, name)
}

func (m *machine) truncate(t *rapid.T) {
	name := m.anyFile(t)
	have := m.files[name]
	size := rapid.IntRange(0, len(have)+10_000).Draw(t, "size")
	err := m.handle(t, name).Truncate(int64(size))
	if errors.Is(err, ErrNoSpace) {
		return
	}
	require.NoError(t, err)
	m.files[name] = append(have[:min(size, len(have)):min(size, len(have))], make([]byte, max(0, size-len(have)))...)
}

func (m *machine) remove(t *rapid.T) {
	name := m.anyFile(t)
	if f := m.open[name]; f != nil {
		m.removed = append(m.removed, removedFile{f, m.files[name]})
		delete(m.open, name)
	}
	require.NoError(t, m.v.Remove(name))
	delete(m.files, name)
}

// close closes a file that was removed while it was open; it has its content until then.
func (m *machine) close(t *rapid.T) {
	if len(m.removed) == 0 {
		t.Skip("no removed files")
	}
	r := m.removed[0]
	m.removed = m.removed[1:]
	got := make([]byte, len(r.data))
	_, err := r.ReadAt(got, 0)
	require.NoError(t, err)
	requireSame(t, r.data, got, "a removed file")
	_, err = r.WriteAt(noise(1, 5000), int64(len(r.data)))
	if !errors.Is(err, ErrNoSpace) {
		require.NoError(t, err)
	}
	require.NoError(t, r.Close())
}

func (m *machine) rename(t *rapid.T) {
	from, to := m.anyFile(t), m.newName(t)
	err := m.v.Rename(from, to)
	if errors.Is(err, ErrNoSpace) {
		return
	}
	require.NoError(t, err)
	m.files[to] = m.files[from]
	delete(m.files, from)
	if f := m.open[from]; f != nil {
		m.open[to] = f
		delete(m.open, from)
	}
}

func (m *machine) replace(t *rapid.T) {
	from, to := m.anyFile(t), m.anyFile(t)
	if from == to {
		require.NoError(t, m.v.Replace(from, to))
		return
	}
	if f := m.open[to]; f != nil {
		m.removed = append(m.removed, removedFile{f, m.files[to]})
		delete(m.open, to)
	}
	require.NoError(t, m.v.Replace(from, to))
	m.files[to] = m.files[from]
	delete(m.files, from)
	if f := m.open[from]; f != nil {
		m.open[to] = f
		delete(m.open, from)
	}
}

func (m *machine) sync(t *rapid.T) {
	require.NoError(t, m.handle(t, m.anyFile(t)).Sync())
}

func (m *machine) trim(t *rapid.T) {
	n, err := m.v.Trim(0)
	require.NoError(t, err)
	require.Equal(t, m.v.Free(), n)
}

func (m *machine) remount(t *rapid.T) {
	for _, f := range m.open {
		require.NoError(t, f.Close())
	}
	clear(m.open)
	for len(m.removed) > 0 {
		m.close(t)
	}
	require.NoError(t, m.v.Unmount())
	requireClean(t, m.dev)
	m.v = mount(t, m.dev)
	require.False(t, m.v.State().Dirty)
	for name, want := range m.files {
		requireSame(t, want, readFile(t, m.v, name), name)
	}
}

func (m *machine) check(t *rapid.T) {
	r, err := checkMounted(m.v)
	require.NoError(t, err)
	if len(m.removed) > 0 { // after a crash their clusters would be lost ones
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Kind == BitmapLost })
	} else {
		require.Equal(t, m.v.Free(), r.Free)
	}
	require.True(t, r.Clean(), "%v", r.Findings)
	require.Equal(t, len(m.files), r.Files)
}

func TestStateMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{files: map[string][]byte{}, open: map[string]*File{}}
		cluster := rapid.SampledFrom([]int64{512, 4096, 16384}).Draw(t, "cluster")
		m.dev = blockdevtest.NewMem(rapid.SampledFrom([]int64{1 << 20, 2 << 20}).Draw(t, "size"))
		m.dev.Extent = rapid.SampledFrom([]int64{0, 256 << 10}).Draw(t, "extent")
		_, err := m.dev.WriteAt(noise(77, 1<<20), 0) // what was there before must never show
		require.NoError(t, err)
		require.NoError(t, Format(m.dev, FormatOptions{ClusterSize: cluster}))
		m.v = mount(t, m.dev)
		for _, d := range machineDirs[1:] {
			require.NoError(t, m.v.Mkdir(d))
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create, "create again": m.create, "write": m.write, "write again": m.write, "read": m.read, "truncate": m.truncate,
			"remove": m.remove, "rename": m.rename, "replace": m.replace, "sync": m.sync, "close": m.close, "trim": m.trim, "remount": m.remount, "": m.check,
		})
		m.remount(t)
	})
}
