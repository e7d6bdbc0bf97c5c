package result

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forgetful is a file whose system takes writes and drops what it could not flush, as network file systems do on a full
// disk and Linux does behind an error of the disk: fsync(2) tells once, and the next one succeeds.
type forgetful struct {
	cached, kept memory
	full         bool
}

var errQuota = errors.New("disk quota exceeded")

func (f *forgetful) WriteAt(p []byte, off int64) (int, error) { return f.cached.WriteAt(p, off) }

func (f *forgetful) Sync() error {
	if f.full {
		f.cached.data = append([]byte(nil), f.kept.data...)
		return errQuota
	}
	f.kept.data = append([]byte(nil), f.cached.data...)
	return nil
}

func TestWriterWritesAgainWhatAFailedFlushLost(t *testing.T) {
	recs := sampleRecords()
	want := journalOf(t, recs...)
	for from := range recs {
		f := &forgetful{}
		f.cached.room = len(want)
		w := newWriter(f, "", 0, 0, true)
		for i, r := range recs {
			r.At = start.Add(time.Duration(i) * time.Second)
			require.NoError(t, w.append(r))
			if i%2 == 1 {
				require.NoError(t, w.flush())
			}
			if f.full = i == from || i == from+1; f.full {
				require.ErrorIs(t, w.sync(), errQuota)
			} else {
				require.NoError(t, w.sync())
			}
		}
		f.full = false
		require.NoError(t, w.sync())
		assert.Equal(t, string(want), string(f.kept.data), "failed from record %d on", from+1)
	}
}
