package result

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/system/hostio"
)

// forgetful is a file whose system takes writes and drops what it could not flush, as network file systems do on a full
// disk and Linux does behind an error of the disk: fsync(2) tells once, and the next one succeeds.
type forgetful struct {
	cached, kept memory
	full         bool
}

var errQuota = errors.New("disk quota exceeded")

func (f *forgetful) ReadAt(p []byte, off int64) (int, error) { return f.cached.ReadAt(p, off) }

func (f *forgetful) WriteAt(p []byte, off int64) (int, error) { return f.cached.WriteAt(p, off) }

func (f *forgetful) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	if f.full {
		f.cached.data = append([]byte(nil), f.kept.data...)
		return hostio.SyncNone, errQuota
	}
	f.kept.data = append([]byte(nil), f.cached.data...)
	return mode, nil
}

func TestWriterWritesAgainWhatAFailedFlushLost(t *testing.T) {
	recs := sampleRecords()
	want := journalOf(t, recs...)
	for from := range recs {
		f := &forgetful{}
		f.cached.room = len(want)
		w := newWriter(f, "", nil, 0, true)
		for i, r := range recs {
			r.At = start.Add(time.Duration(i) * time.Second)
			require.NoError(t, w.Append(r))
			if i%2 == 1 {
				require.NoError(t, w.Flush())
			}
			if f.full = i == from || i == from+1; f.full {
				require.ErrorIs(t, w.Sync(), errQuota)
			} else {
				require.NoError(t, w.Sync())
			}
		}
		f.full = false
		require.NoError(t, w.Sync())
		assert.Equal(t, string(want), string(f.kept.data), "failed from record %d on", from+1)
	}
}

// remembering is a file whose system still shows what it could not flush, and takes it for flushed, as Linux does until it
// needs the memory.
type remembering struct {
	cached, kept memory
	dirty        map[int]bool // by byte
	full         bool
}

func (f *remembering) ReadAt(p []byte, off int64) (int, error) { return f.cached.ReadAt(p, off) }

func (f *remembering) WriteAt(p []byte, off int64) (int, error) {
	for i := range p {
		f.dirty[int(off)+i] = true
	}
	return f.cached.WriteAt(p, off)
}

func (f *remembering) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) {
	if !f.full {
		f.kept.data = append(f.kept.data, make([]byte, len(f.cached.data)-len(f.kept.data))...)
		for i := range f.dirty {
			f.kept.data[i] = f.cached.data[i]
		}
	}
	clear(f.dirty)
	if f.full {
		return hostio.SyncNone, errQuota
	}
	return mode, nil
}

// Whoever goes on with a run cannot tell what of its journal lies in the system's memory alone.
func TestWriterWritesAgainWhatAnEarlierProcessCouldNotFlush(t *testing.T) {
	recs := sampleRecords()
	want := journalOf(t, recs...)
	for from := 1; from < len(recs); from++ {
		f := &remembering{dirty: map[int]bool{}}
		f.cached.room = len(want)
		w := newWriter(f, "", nil, 0, true)
		for i, r := range recs {
			if i == from {
				f.full = true
				require.ErrorIs(t, w.Sync(), errQuota)
				f.full = false
				w = newWriter(f, "", bytes.Clone(f.cached.data), i, true)
				require.NoError(t, w.Sync(), "nothing to write")
			}
			r.At = start.Add(time.Duration(i) * time.Second)
			require.NoError(t, w.Append(r))
			require.NoError(t, w.Flush())
		}
		require.NoError(t, w.Sync())
		assert.Equal(t, string(want), string(f.kept.data), "went on at record %d", from+1)
	}
}
