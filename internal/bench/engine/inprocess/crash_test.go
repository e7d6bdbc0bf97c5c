package inprocess_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// fact says what a file holds once so many host operations are done; nil means that it may be in any state.
type fact struct {
	from int
	name string
	data []byte
}

// life is an image that is used while every change on the host is recorded.
type life struct {
	t     *testing.T
	rec   *hostiotest.Recorder
	con   engine.Container
	spec  engine.Spec
	begun int // operations that made the image
	facts []fact
}

func (l *life) note(name string, data []byte) {
	l.facts = append(l.facts, fact{len(l.rec.Ops()), name, data})
}

func (l *life) write(v workload.Volume, name string, n int) {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), name[0]}).Read(data)
	f, err := v.Create(name, int64(n/2), workload.FileOptions{})
	require.NoError(l.t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(l.t, err)
	_, err = f.Sync(hostio.SyncFsync)
	require.NoError(l.t, err)
	l.note(name, data)
	require.NoError(l.t, f.Close())
}

func (l *life) remove(v workload.Volume, name string) {
	l.note(name, nil)
	require.NoError(l.t, v.Remove(name))
}

// live uses the image: files made, deleted, cut, trimmed, compacted, and the image made larger and smaller.
func live(t *testing.T, format string) *life {
	l := &life{t: t, rec: &hostiotest.Recorder{}, spec: engine.Spec{Format: format, Size: 12 << 20, BandSize: 1 << 20, VolumeName: "CRASH"}}
	dir := fast(t, hostio.WithHook(l.rec))
	var err error
	l.con, err = inprocess.New(nil).Create(t.Context(), dir, "img", l.spec)
	require.NoError(t, err)
	l.begun = len(l.rec.Ops())
	a := attach(t, l.con)
	require.NoError(t, a.Volume().Mkdir("d"))
	for i, n := range []int{1, 4097, 300_001, 1_500_000, 90_000} {
		l.write(a.Volume(), "d/"+string(rune('a'+i)), n)
	}
	l.remove(a.Volume(), "d/d")
	detach(t, a)
	a = attach(t, l.con) // trims
	l.write(a.Volume(), "e", 700_000)
	l.remove(a.Volume(), "d/b")
	l.write(a.Volume(), "f", 1_200_000)
	l.note("f", nil)
	f, err := a.Volume().Open("f", workload.FileOptions{})
	require.NoError(t, err)
	require.NoError(t, f.(workload.Truncater).Truncate(5000))
	require.NoError(t, f.Close())
	_, err = a.Trim(t.Context())
	require.NoError(t, err)
	for i := range 30 {
		l.write(a.Volume(), "d/a longer name, so that the folder grows "+strings.Repeat("+", i), 200)
	}
	detach(t, a)
	if format == "UDSB" {
		_, err = l.con.Compact(t.Context(), engine.CompactOptions{})
		require.NoError(t, err)
	}
	_, err = l.con.Resize(t.Context(), 20<<20)
	require.NoError(t, err)
	a = attach(t, l.con)
	l.write(a.Volume(), "g", 2_000_000)
	detach(t, a)
	_, err = l.con.Resize(t.Context(), 10<<20)
	require.NoError(t, err)
	return l
}

// judge opens what a crash after n operations left: it must mount, hold what was flushed, and be wrong in nothing but
// what an interruption explains.
func (l *life) judge(t *testing.T, dir *hostio.Dir, n int) {
	c, err := inprocess.New(nil).Open(t.Context(), dir, "img", l.spec)
	require.NoError(t, err, "after %d operations", n)
	r, err := c.Check(t.Context(), engine.CheckOptions{})
	require.NoError(t, err, "after %d operations", n)
	for _, f := range r.Findings {
		require.True(t, explained(f), "after %d operations: %s", n, f)
	}
	a, err := c.Attach(t.Context(), engine.AttachOptions{ReadOnly: true})
	require.NoError(t, err, "after %d operations", n)
	defer detach(t, a)
	last := map[string]*fact{}
	for i := range l.facts {
		if f := &l.facts[i]; f.from <= n {
			last[f.name] = f
		}
	}
	for name, want := range last {
		if want.data == nil {
			continue
		}
		f, err := a.Volume().Open(name, workload.FileOptions{})
		require.NoError(t, err, "after %d operations: %s", n, name)
		got := make([]byte, len(want.data))
		_, err = f.ReadAt(got, 0)
		require.NoError(t, err, "after %d operations: %s", n, name)
		require.True(t, bytes.Equal(want.data, got), "after %d operations: %s", n, name)
		require.NoError(t, f.Close())
	}
}

// explained are the findings that an interruption may cause: a volume in use, clusters that nothing owns any more, and
// halves of a property list or partition table that was being replaced.
func explained(finding string) bool {
	for _, ok := range []string{
		"dirty flag", "lost clusters", "chain is longer", ".Info", "Info.bckup: differs", "bands/", "the backup table is",
		"primary and backup table differ", "the primary table is damaged", "backup boot region",
		"a compaction was interrupted",
	} {
		if strings.HasPrefix(finding, ok) {
			return true
		}
	}
	return false
}

// TestEveryPrefixOfTheHostsWrites replays the host's operations one by one, as a crash of the process leaves them: the
// default judges every third of the prefixes.
func TestEveryPrefixOfTheHostsWrites(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		t.Run(format, func(t *testing.T) {
			l, dir := live(t, format), fast(t)
			ops, changes := l.rec.Ops(), 0
			require.NoError(t, l.rec.Replay(0, l.begun, dir, nil))
			for n := l.begun; ; n++ {
				if n == l.begun || ops[n-1].Kind != hostio.OpSync && ops[n-1].Kind != hostio.OpDirSync {
					if changes++; long || changes%3 == 1 {
						l.judge(t, dir, n)
					}
				}
				if n == len(ops) {
					break
				}
				require.NoError(t, l.rec.Replay(n, n+1, dir, nil))
			}
			assert.Greater(t, len(ops)-l.begun, 200)
		})
	}
}

// TestPowerCut loses of what no flush covered a random part: any of the data, and of the changes of names and lengths
// all behind some moment, since file systems keep those in order.
func TestPowerCut(t *testing.T) {
	r, cuts := rand.New(rand.NewPCG(5, 6)), 25
	if long {
		cuts = 60
	}
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		t.Run(format, func(t *testing.T) {
			l := live(t, format)
			ops := l.rec.Ops()
			for range cuts {
				n := l.begun + r.IntN(len(ops)-l.begun+1)
				keep, least := flushed(ops[:n])
				names := least + r.IntN(n-least+1)
				t.Run("", func(t *testing.T) {
					dir := fast(t)
					require.NoError(t, l.rec.Replay(0, n, dir, func(i int, op hostio.Op) bool {
						if op.Kind == hostio.OpWrite {
							return keep[i] || r.IntN(2) == 0
						}
						return keep[i] || i < names
					}))
					l.judge(t, dir, n)
				})
			}
		})
	}
}

// flushed tells which operations a later flush covers, and the number of operations that go as far as the last change
// of names or lengths among them.
func flushed(ops []hostio.Op) (keep []bool, names int) {
	keep = make([]bool, len(ops))
	files, folders := map[string]bool{}, map[string]bool{}
	for i := len(ops) - 1; i >= 0; i-- {
		op := ops[i]
		folder := op.Path[:max(0, strings.LastIndex(op.Path, "/"))]
		switch op.Kind {
		case hostio.OpSync:
			files[op.Path] = true
		case hostio.OpDirSync:
			folders[op.Path] = true
		case hostio.OpRename:
			keep[i] = folders[folder]
			files[op.Path] = files[op.Path] || files[op.To]
		default:
			keep[i] = files[op.Path] || folders[folder] && (op.Kind == hostio.OpCreate || op.Kind == hostio.OpRemove || op.Kind == hostio.OpMkdir)
		}
		if keep[i] && op.Kind != hostio.OpWrite {
			names = max(names, i+1)
		}
	}
	return keep, names
}
