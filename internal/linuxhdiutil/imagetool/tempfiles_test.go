package imagetool

import (
	"os"
	"strings"
	"testing"

	"dmgbench/internal/system/hostio"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// staleStem is that of a killed process of this boot.
var staleStem = (bootPrefix() + "0123456789abcdef")[:stemLength]

// killed makes what a killed conversion leaves: an image under a temporary name, and its lock, which is returned.
func (m *machine) killed(image string) *hostio.File {
	m.t.Helper()
	m.do("create -size 1m -layout NONE left.dmg")
	require.NoError(m.t, os.Rename(m.path("left.dmg"), m.path(image)))
	m.write(staleStem+lockSuffix, "locked")
	d, err := hostio.OpenDir(m.dir)
	require.NoError(m.t, err)
	m.t.Cleanup(func() { d.Close() })
	f, err := d.Open(staleStem+lockSuffix, hostio.OpenOptions{})
	require.NoError(m.t, err)
	m.t.Cleanup(func() { f.Close() })
	return f
}

// hidden are the names in the folder that begin with a point.
func (m *machine) hidden() (names []string) {
	entries, err := os.ReadDir(m.dir)
	require.NoError(m.t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestWhatAKillLeftIsRemoved(t *testing.T) {
	if bootPrefix() == stemPrefix {
		t.Skip("boots cannot be told apart here")
	}
	for _, image := range []string{staleStem + "-x.dmg", staleStem + "-", staleStem + ".cdr"} {
		m := newMachine(t)
		m.killed(image)
		m.do("create -verbose -size 1m -layout NONE new.dmg")
		assert.Empty(t, m.hidden())
		assert.Contains(t, m.err, "removed what a killed process left")
	}
	m := newMachine(t)
	m.do("create -size 4m -type SPARSEBUNDLE -layout NONE left.sparsebundle")
	m.killed(staleStem + "-a.dmg")
	require.NoError(t, os.Rename(m.path("left.sparsebundle"), m.path(staleStem+"-x.sparsebundle")))
	m.write("small.dmg", strings.Repeat("\x00", 1<<20))
	m.do("convert small.dmg -format UDZO -o c.dmg")
	assert.Empty(t, m.hidden())
}

func TestWhatMayBeSomebodysStays(t *testing.T) {
	if bootPrefix() == stemPrefix {
		t.Skip("boots cannot be told apart here")
	}
	for name, spoil := range map[string]func(m *machine, lock *hostio.File){
		"being made": func(m *machine, lock *hostio.File) { require.NoError(m.t, lock.TryLock()) },
		"no lock":    func(m *machine, _ *hostio.File) { require.NoError(m.t, os.Remove(m.path(staleStem+lockSuffix))) },
		"another kernel": func(m *machine, _ *hostio.File) {
			for _, end := range []string{lockSuffix, "-x.dmg"} {
				require.NoError(m.t, os.Rename(m.path(staleStem+end), m.path(".dmgbench-0123456789abcdef"+end)))
			}
		},
		"not begun":    func(m *machine, _ *hostio.File) { m.write(staleStem+lockSuffix, "") },
		"an old image": func(m *machine, _ *hostio.File) { m.write(staleStem+"-x.dmg~", "the only copy") },
		"a bundle with other things": func(m *machine, _ *hostio.File) {
			require.NoError(m.t, os.Remove(m.path(staleStem+"-x.dmg")))
			m.write(staleStem+"-x.dmg/mine", "")
		},
		"a link": func(m *machine, _ *hostio.File) {
			require.NoError(m.t, os.Remove(m.path(staleStem+"-x.dmg")))
			require.NoError(m.t, os.Symlink("unsupportedVerbs", m.path(staleStem+"-x.dmg")))
		},
		"another user's image": func(m *machine, _ *hostio.File) { m.giveAway(staleStem + "-x.dmg") },
		"another user's lock":  func(m *machine, _ *hostio.File) { m.giveAway(staleStem + lockSuffix) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			lock := m.killed(staleStem + "-x.dmg")
			m.t = t
			spoil(m, lock)
			before := m.hidden()
			m.do("create -size 1m -layout NONE new.dmg")
			assert.Equal(t, before, m.hidden())
		})
	}
}

// giveAway makes a file another user's.
func (m *machine) giveAway(name string) {
	m.t.Helper()
	if os.Geteuid() != 0 {
		m.t.Skip("needs root")
	}
	require.NoError(m.t, os.Lchown(m.path(name), 4711, -1))
}

// As long as an image is made nobody takes its files for leftovers.
func TestWhatIsBeingMadeIsNotSweptAway(t *testing.T) {
	m := newMachine(t)
	p, err := placeAt(m.path("x.dmg"))
	require.NoError(t, err)
	defer p.close()
	release := lockStem(p.dir, staleStem)
	m.write(staleStem+"-x.dmg", "half of it")
	m.do("create -size 1m -layout NONE new.dmg")
	assert.Contains(t, m.hidden(), staleStem+"-x.dmg")
	require.NoError(t, release())
	assert.Equal(t, []string{staleStem + "-x.dmg"}, m.hidden(), "the lock goes with the work")
}
