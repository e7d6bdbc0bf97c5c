package container

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// life is a workload on a device with a note of what each sector may hold:
// what it held at the last flush, and what was put there since.
type life struct {
	t     testing.TB
	rnd   *rand.Rand
	img   Image
	clock func() int // host operations so far

	want  map[int64][]byte // by sector, of the device; none is zeros
	notes map[int64][]note
	sizes []note // whose content is the size in decimal
	turn  int
	flush []int // clock at the end of each flush, ascending
}

// note is content that was there from some operation on.
type note struct {
	at      int
	content []byte // nil: zeros
}

func newLife(t testing.TB, seed uint64, img Image, clock func() int) *life {
	l := &life{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), img: img, clock: clock, want: map[int64][]byte{}, notes: map[int64][]note{}}
	l.sizes = []note{{0, fmt.Append(nil, img.Size())}}
	return l
}

func (l *life) note(sector int64, content []byte, at int) {
	l.want[sector] = content
	l.notes[sector] = append(l.notes[sector], note{at, content})
}

func (l *life) write(off, n int64) {
	at := l.clock()
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(l.rnd.Uint32() | 1)
	}
	for i := int64(0); i < n; i += 512 {
		l.note((off+i)/512, p[i:i+512], at)
	}
	_, err := l.img.WriteAt(p, off)
	require.NoError(l.t, err)
}

func (l *life) discard(off, n int64) {
	at := l.clock()
	l.zero(off, n, at)
	require.NoError(l.t, l.img.Discard(off, n))
}

func (l *life) zero(off, n int64, at int) {
	for s := range l.want {
		if s*512 >= off && s*512 < off+n {
			l.note(s, nil, at)
		}
	}
}

func (l *life) resize(n int64) {
	at := l.clock()
	l.zero(n, 1<<62-n, at)
	l.sizes = append(l.sizes, note{at, fmt.Append(nil, n)})
	require.NoError(l.t, l.img.Resize(n))
	l.done()
}

func (l *life) compact() {
	_, err := l.img.Compact(nil)
	require.NoError(l.t, err)
	l.done()
}

func (l *life) sync() {
	require.NoError(l.t, l.img.Flush())
	l.done()
}

func (l *life) done() { l.flush = append(l.flush, l.clock()) }

// flushed is the clock at the end of the last flush that had returned at an operation, 0 for none.
func (l *life) flushed(at int) (last int) {
	for _, f := range l.flush {
		if f <= at {
			last = f
		}
	}
	return last
}

// allowed says whether a sector may hold content after a crash at an
// operation: what it held at the last flush that had returned, or anything put there since.
func allowed(list []note, last, at int, content []byte) bool {
	zero := isZero(content)
	ok := zero
	for _, n := range list {
		same := zero && n.content == nil || bytes.Equal(n.content, content)
		if n.at < last {
			ok = same // this one was durable, and all before it are gone
		} else if n.at <= at {
			ok = ok || same
		}
	}
	return ok
}

// check looks at all that was ever written.
func (l *life) check(img Image, at int) {
	size, last := img.Size(), l.flushed(at)
	require.True(l.t, allowed(l.sizes, last, at, fmt.Append(nil, size)), "size %d after operation %d", size, at)
	p := make([]byte, 512)
	l.turn++
	for s, list := range l.notes {
		if s*512 >= size || (s+int64(l.turn))%4 != 0 {
			continue // another point looks at it
		}
		if _, err := img.ReadAt(p, s*512); err != nil || !allowed(list, last, at, p) {
			require.NoError(l.t, err) // not for each sector: it looks for its caller
			require.Fail(l.t, "wrong content", "sector %d after operation %d", s, at)
		}
	}
}

// torn is a random part of writes that no sync covers: whole operations and
// sectors of them get lost.
func torn(rnd *rand.Rand, pending []hostio.Op) (list []hostio.Op) {
	share := rnd.IntN(5) // how much is lost: nothing, or some, or all
	lost := func() bool { return rnd.IntN(4) < share }
	for _, op := range pending {
		if op.Kind != hostio.OpWrite {
			if !lost() {
				list = append(list, op)
			}
			continue
		}
		for p := op.Data; len(p) > 0; {
			at := op.Off + op.Len - int64(len(p))
			n := min(int64(len(p)), 512-at%512)
			if !lost() {
				list = append(list, hostio.Op{Kind: hostio.OpWrite, Off: at, Len: n, Data: p[:n]})
			}
			p = p[n:]
		}
	}
	return list
}

// crashes calls look with the file as it may be after a crash at each of the
// recorded operations: everything before the last sync, and some parts of the rest.
func crashes(rnd *rand.Rand, start []byte, ops []hostio.Op, first, every, variants int, look func(b []byte, at int)) (points int) {
	durable := slices.Clone(start)
	var pending []hostio.Op
	for i := 0; ; i++ {
		for v := 0; v < variants && i >= first && i%every == 0; v++ {
			b := slices.Clone(durable)
			for _, op := range torn(rnd, pending) {
				b = applyOp(b, op)
			}
			look(b, i)
			points++
		}
		if i == len(ops) {
			return points
		}
		switch op := ops[i]; op.Kind {
		case hostio.OpSync:
			for _, op := range pending {
				durable = applyOp(durable, op)
			}
			pending = nil
		case hostio.OpWrite, hostio.OpTruncate, hostio.OpPunch:
			pending = append(pending, op)
		}
	}
}

// TestMappedCrash records a life and crashes it all through. The image must open, also when the opening that repairs it
// crashes too, and hold what was flushed.
func TestMappedCrash(t *testing.T) {
	rounds, at, least := uint64(1), 130, 100
	if os.Getenv("DMGBENCH_LONG") != "" {
		rounds, at, least = 8, 400, 1000
	}
	for name, c := range crashCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points := 0
			for seed := range rounds {
				points += crashLife(t, c, seed, at)
			}
			assert.GreaterOrEqual(t, points, least)
			t.Log(points, "points")
		})
	}
}

// crashCase is a format with a workload.
type crashCase struct {
	format string
	create func(d *hostio.Dir) error
	// encrypted is set for an encrypted file.
	encrypted bool
	live      func(l *life)
	// variants is how many crashes there are at one operation.
	variants int
}

// open opens the image in a file.
func (c crashCase) open(f store, o OpenOptions) (Image, error) {
	if !c.encrypted {
		return openChunked(f, c.format, o)
	}
	o.Passphrase = []byte("secret")
	s, k, err := decryptStore(f, probeResult{}, o)
	if err != nil {
		return nil, err
	}
	return openContents(s, k, o)
}

// record lives a life and returns the file before it and what it did to that:
// in memory, or on the host, whose flushes take their time.
func record(t *testing.T, c crashCase, seed uint64, host bool) (start []byte, ops []hostio.Op, l *life) {
	d := tempDir(t)
	require.NoError(t, c.create(d))
	start, err := d.ReadFile("i", 1<<30)
	require.NoError(t, err)
	f := &memStore{b: slices.Clone(start)}
	log := func() []hostio.Op { return f.log }
	open := func() (Image, error) { return c.open(f, OpenOptions{}) }
	if host {
		rec := &hostiotest.Recorder{}
		h, err := hostio.OpenDir(d.Path(), hostio.WithHook(rec))
		require.NoError(t, err)
		defer h.Close()
		log = rec.Ops
		open = func() (Image, error) {
			return Open(h, "i", OpenOptions{Sync: hostio.SyncFsync, Passphrase: []byte("secret")})
		}
	}
	img, err := open()
	require.NoError(t, err)
	l = newLife(t, seed, img, func() int { return len(log()) })
	c.live(l)
	require.NoError(t, img.Close())
	return start, log(), l
}

// crashLife crashes a life at about so many of its operations.
func crashLife(t *testing.T, c crashCase, seed uint64, most int) (points int) {
	start, ops, l := record(t, c, seed, seed%2 == 1)
	rnd := rand.New(rand.NewPCG(seed, 2))
	points = crashes(rnd, start, ops, 0, 1+len(ops)/most, c.variants, func(b []byte, at int) {
		f := &memStore{b: b}
		seen, err := c.open(f, OpenOptions{ReadOnly: true})
		require.NoError(t, err, "after operation %d", at)
		l.check(seen, at)
		require.Empty(t, f.log, "reading changes nothing")
		f = &memStore{b: slices.Clone(b)}
		seen, err = c.open(f, OpenOptions{})
		require.NoError(t, err, "after operation %d", at)
		l.check(seen, at)
		if len(f.log) > 1 {
			points += crashes(rnd, b, f.log, 1, 1+len(f.log)/4, 1, func(b []byte, _ int) {
				seen, err := c.open(&memStore{b: b}, OpenOptions{})
				require.NoError(t, err, "in the repair after operation %d", at)
				l.check(seen, at)
			})
		}
		require.NoError(t, seen.Close())
	})
	return points
}

func crashCases() map[string]crashCase {
	udsp := func(l *life) {
		for range 25 {
			for range l.rnd.IntN(4) {
				l.step(1, 300*512)
			}
			l.sync()
		}
		l.write(0, 2500*512) // three nodes
		l.sync()
		l.discard(200*512, 1500*512)
		l.compact()
		l.resize(1100 * 512)
		l.resize(2200 * 512)
		l.write(1000*512, 1200*512)
		l.discard(0, 400*512)
		l.sync()
		l.compact()
	}
	return map[string]crashCase{
		"udsp": {UDSP, func(d *hostio.Dir) error { return createUDSP(d, "i", Spec{Size: 3000 * 512, BandSize: 512}) }, false, udsp, 1},
		"udsp encrypted": {UDSP, func(d *hostio.Dir) error {
			return createUDSP(d, "i", Spec{Size: 3000 * 512, BandSize: 512, Encryption: secret(512)})
		}, true, udsp, 1},
		"asif": {ASIF, createSmallASIF, false, func(l *life) {
			for k := range int64(30) { // tables in several sectors of the directory, each in a version of its own
				l.write((k%2*64+k)*(64<<20), 2048)
				l.sync()
			}
			for range 8 {
				for range l.rnd.IntN(4) {
					l.step(smallChunk/512, 2*smallChunk)
				}
				l.sync()
			}
			l.discard(0, 1<<30)
			l.compact()
			l.resize(2 << 30)
			l.resize(5 << 30)
			l.write(5<<30-6*smallChunk, 5*smallChunk)
			l.discard(0, 2<<30)
			l.compact()
		}, 2},
	}
}

// step is a random write or discard near the start of one of four regions.
func (l *life) step(unit, longest int64) {
	size := l.img.Size() / 512
	n := (1 + l.rnd.Int64N(longest/512)) * 512
	off := (l.rnd.Int64N(4)*size/4 + l.rnd.Int64N(20*unit)) * 512
	n = min(n, l.img.Size()-off)
	if l.rnd.IntN(3) == 0 {
		l.discard(off, n)
		return
	}
	l.write(off, n)
}

const smallChunk = 32 << 10

// createSmallASIF makes an image whose tables are named all over its directory.
func createSmallASIF(d *hostio.Dir) error {
	h := smallASIF(6 << 30)
	return Encryption{}.createFile(d, "i", 0, h.write)
}

func smallASIF(size int64) asifHead { return shortASIF(size, 8<<30) }

// shortASIF is the header of an image with short chunks for at most so many bytes.
func shortASIF(size, most int64) asifHead {
	h := newASIF(size, [16]byte{})
	h.Chunk, h.MaxBlocks = smallChunk, most/512
	h.Meta = h.MaxBlocks*512/smallChunk - 1
	h.placeDirs()
	return h
}
