package container

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/image/container/crypt"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// TestBundleCrash records the life of a bundle and crashes it all through: what no sync covers may be there or not, names
// and sectors each by themselves. The bundle opens and holds what was flushed.
func TestBundleCrash(t *testing.T) {
	rounds, least, every := uint64(1), 40, 2
	if os.Getenv("DMGBENCH_LONG") != "" {
		rounds, least, every = 12, 1000, 1
	}
	for name, e := range map[string]Encryption{"plain": {}, "encrypted": secret(512)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points := 0
			for seed := range rounds {
				points += crashBundle(t, e, seed, every)
			}
			assert.GreaterOrEqual(t, points, least)
			t.Log(points, "points")
		})
	}
}

func crashBundle(t *testing.T, e Encryption, seed uint64, every int) (points int) {
	rec := &hostiotest.Recorder{}
	d := tempDir(t, hostio.WithHook(rec))
	require.NoError(t, createBundle(d, "i", Spec{BandSize: 8 << 10, Size: 300 << 10, Encryption: e}))
	created := len(rec.Ops())
	img, err := Open(d, "i", OpenOptions{Sync: hostio.SyncFsync, Passphrase: []byte("secret")})
	require.NoError(t, err)
	img.(*bundle).open = &openBands{limit: 5}
	l := newLife(t, seed, img, func() int { return len(rec.Ops()) })
	for range 12 {
		for range l.rnd.IntN(5) {
			l.step(4, 30<<10)
		}
		l.sync()
	}
	l.resize(100<<10 + 512)
	l.write(90<<10, 10<<10)
	l.resize(200 << 10)
	l.discard(0, 50<<10)
	l.compact()
	l.write(150<<10-512, 9<<10)
	require.NoError(t, img.Close())
	ops, rnd := rec.Ops(), rand.New(rand.NewPCG(seed, 4))
	for n := created; n <= len(ops); n += every {
		tree := remains(rnd, ops, n)
		dst := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dst, "i", "bands"), 0o755))
		for name, data := range tree {
			file := filepath.Join(dst, name)
			require.NoError(t, os.WriteFile(file, data, 0o600))
		}
		h, err := hostio.OpenDir(dst)
		require.NoError(t, err)
		for _, readOnly := range []bool{true, false} {
			after, err := Open(h, "i", OpenOptions{ReadOnly: readOnly, Sync: hostio.SyncNone, Passphrase: []byte("secret")})
			require.NoError(t, err, "after operation %d", n)
			l.check(after, n)
			require.NoError(t, after.Close())
		}
		require.NoError(t, h.Close())
		require.NoError(t, os.RemoveAll(dst))
		points++
	}
	return points
}

// remains is what of the files a crash after n operations may leave.
func remains(rnd *rand.Rand, ops []hostio.Op, n int) map[string][]byte {
	keep := durable(ops, n)
	share := rnd.IntN(5)
	again := map[string]bool{} // names that were made anew: what had them before is gone
	for i := n - 1; i >= 0; i-- {
		op := ops[i]
		if !keep[i] && op.Kind != hostio.OpWrite {
			keep[i] = rnd.IntN(4) >= share || op.Kind == hostio.OpRemove && again[op.Path]
		}
		if keep[i] && op.Kind == hostio.OpCreate {
			again[op.Path] = true
		}
	}
	tree, lost := map[string][]byte{}, map[string]bool{}
	for i, op := range ops[:n] {
		if op.Kind == hostio.OpCreate {
			lost[op.Path] = !keep[i]
		}
		if lost[op.Path] {
			continue
		}
		parts := []hostio.Op{op}
		if !keep[i] {
			if parts = nil; op.Kind == hostio.OpWrite {
				parts = torn(rnd, []hostio.Op{op})
			}
		}
		for _, op := range parts {
			applyName(tree, ops[i], op)
		}
	}
	return tree
}

// applyName does to the files what op did to one; a part of a write has no name of its own.
func applyName(tree map[string][]byte, whole, op hostio.Op) {
	switch whole.Kind {
	case hostio.OpCreate:
		tree[whole.Path] = nil
	case hostio.OpRemove:
		delete(tree, whole.Path)
	case hostio.OpRename:
		tree[whole.To] = tree[whole.Path]
		delete(tree, whole.Path)
	case hostio.OpWrite, hostio.OpTruncate, hostio.OpPunch:
		tree[whole.Path] = applyOp(slices.Clone(tree[whole.Path]), op)
	}
}

// recordOf is the passphrase record that a header in b leads to.
func recordOf(t *testing.T, b []byte) []byte {
	h, err := crypt.ReadHeader(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Len(t, h.Records, 1)
	require.Equal(t, 1, h.Passphrases)
	return b[h.Records[0].Offset:][:h.Records[0].Length]
}

// TestPassphraseChangeCrash cuts the power all through a change: the header leads to the whole old record or to the whole new
// one, and when the change has returned to the new one, of which there is no copy.
func TestPassphraseChangeCrash(t *testing.T) {
	variants := 10
	if os.Getenv("DMGBENCH_LONG") != "" {
		variants = 100
	}
	for _, format := range []string{UDRW, UDSP} {
		rec := &hostiotest.Recorder{}
		d := tempDir(t, hostio.WithHook(rec))
		require.NoError(t, Create(d, "i", Spec{Format: format, Size: 64 << 10, Encryption: secret(512)}))
		start, err := d.ReadFile("i", 1<<30)
		require.NoError(t, err)
		rec.Reset()
		require.ErrorIs(t, ChangePassphrase(d, "i", []byte("wrong"), []byte("next"), 1000), ErrPassphrase)
		require.Empty(t, rec.Ops())
		require.NoError(t, ChangePassphrase(d, "i", []byte("secret"), []byte("next"), 1000))
		ops := rec.Ops()
		assert.Len(t, ops, 10, "five writes, each synced")
		end, err := d.ReadFile("i", 1<<30)
		require.NoError(t, err)
		require.True(t, bytes.Equal(start[crypt.DataOffset:], end[crypt.DataOffset:]), "the data stays")
		before, after := bytes.Clone(recordOf(t, start)), bytes.Clone(recordOf(t, end))
		require.Equal(t, 1, bytes.Count(end, after[:64]))
		require.Zero(t, bytes.Count(end, before[:64]))
		points := crashes(rand.New(rand.NewPCG(1, 5)), start, ops, 0, 1, variants, func(b []byte, at int) {
			found := recordOf(t, b)
			require.True(t, bytes.Equal(found, before) || bytes.Equal(found, after), "after operation %d", at)
		})
		assert.GreaterOrEqual(t, points, 10*variants)
		img, err := Open(d, "i", OpenOptions{Passphrase: []byte("next")})
		require.NoError(t, err)
		require.NoError(t, img.Close())
	}
}

// TestBundlePassphraseChangeCrash does the same to a bundle, whose token is replaced.
func TestBundlePassphraseChangeCrash(t *testing.T) {
	rec := &hostiotest.Recorder{}
	d := tempDir(t, hostio.WithHook(rec))
	require.NoError(t, Create(d, "i", Spec{Format: UDSB, Size: 1 << 20, Encryption: secret(512)}))
	created := len(rec.Ops())
	token := func(d *hostio.Dir) string {
		b, err := d.ReadFile("i/token", 1<<20)
		require.NoError(t, err)
		return string(b)
	}
	before := token(d)
	held := openSecret(t, d, OpenOptions{})
	require.ErrorIs(t, ChangePassphrase(d, "i", []byte("secret"), []byte("next"), 1000), ErrInUse)
	require.NoError(t, held.Close())
	require.NoError(t, ChangePassphrase(d, "i", []byte("secret"), []byte("next"), 1000))
	after, seen := token(d), map[string]int{}
	for n := created; n <= len(rec.Ops()); n++ {
		dst := tempDir(t)
		require.NoError(t, rec.Replay(0, n, dst, nil))
		seen[token(dst)]++
		require.NoError(t, Remove(dst, "i"), "with what an interrupted change leaves")
	}
	assert.Len(t, seen, 2)
	assert.Positive(t, seen[before])
	assert.Positive(t, seen[after])
	_, err := Open(d, "i", OpenOptions{Passphrase: []byte("secret")})
	require.ErrorIs(t, err, ErrPassphrase)
	img, err := Open(d, "i", OpenOptions{Passphrase: []byte("next")})
	require.NoError(t, err)
	require.NoError(t, img.Close())
}
