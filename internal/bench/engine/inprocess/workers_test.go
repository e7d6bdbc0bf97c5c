package inprocess_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

// TestWorkersAtOnce lets workers make, rewrite, read, sync and delete files of their own, while somebody trims, evicts,
// lists and measures. Every byte is right at the time and afterwards. (For the race detector above all.)
func TestWorkersAtOnce(t *testing.T) {
	const workers, turns = 4, 25
	formats := 0
	for _, cache := range []hostio.CacheMode{hostio.CacheBuffered, hostio.CacheBuffered, hostio.CacheDirect, hostio.CacheDirect} {
		format, dir := "UDRW", fast(t)
		if formats++; formats%2 == 0 {
			format = "UDSB"
		}
		if cache == hostio.CacheDirect {
			dir = place(t) // what is in memory knows nothing else than the cache
		}
		c, err := inprocess.New(nil).Create(t.Context(), dir, "img", engine.Spec{Format: format, Size: 24 << 20, BandSize: 1 << 20, Cache: cache})
		require.NoError(t, err)
		detach(t, attach(t, c))
		a := attach(t, c)
		v := a.Volume()
		want := make([]map[string][]byte, workers)
		var wg, aside sync.WaitGroup
		var over atomic.Bool
		for w := range workers {
			want[w] = map[string][]byte{}
			wg.Go(func() { assert.NoError(t, worker(v, w, turns, want[w])) })
		}
		aside.Go(func() {
			for !over.Load() {
				if _, err := a.Trim(t.Context()); !assert.NoError(t, err) {
					return
				}
				_, err := c.Usage(t.Context())
				assert.NoError(t, err)
				_, err = v.Size("/")
				assert.NoError(t, err)
				_, err = v.Free()
				assert.NoError(t, err)
				assert.NoError(t, v.Sync())
			}
		})
		wg.Wait()
		over.Store(true)
		aside.Wait()
		detach(t, a)
		clean(t, c)
		a = attach(t, c)
		for _, files := range want {
			for name, data := range files {
				requireFile(t, a.Volume(), name, data)
			}
		}
		detach(t, a)
	}
}

func requireFile(t *testing.T, v workload.Volume, name string, want []byte) {
	t.Helper()
	f, err := v.Open(name, workload.FileOptions{})
	require.NoError(t, err)
	require.NoError(t, same(f, want), name)
	require.NoError(t, f.Close())
}

func same(f workload.File, want []byte) error {
	got := make([]byte, len(want))
	if n, err := f.ReadAt(got, 0); err != nil && n < len(want) {
		return err
	}
	if !bytes.Equal(want, got) {
		return errors.New("other bytes")
	}
	return nil
}

func worker(v workload.Volume, w, turns int, files map[string][]byte) error {
	r := rand.New(rand.NewPCG(uint64(w), 9))
	for i := range turns {
		name := fmt.Sprintf("%d %d", w, i)
		data := make([]byte, r.IntN(400_000))
		_, _ = rand.NewChaCha8([32]byte{byte(w), byte(i)}).Read(data)
		f, err := v.Create(name, int64(r.IntN(len(data)+1)), workload.FileOptions{Worker: w})
		if errors.Is(err, syscall.ENOSPC) {
			continue
		}
		if err != nil {
			return err
		}
		if err := fillFile(f, data, r); err != nil {
			return errors.Join(err, f.Close())
		}
		files[name] = data
		if err := f.Close(); err != nil {
			return err
		}
		if gone := fmt.Sprintf("%d %d", w, i-r.IntN(6)); i%2 == 1 && files[gone] != nil {
			if err := v.Remove(gone); err != nil {
				return err
			}
			delete(files, gone)
		}
	}
	return nil
}

// fillFile writes in pieces, the first one twice, syncs, evicts and reads back.
func fillFile(f workload.File, data []byte, r *rand.Rand) error {
	for off := 0; off < len(data); {
		n := min(1+r.IntN(100_000), len(data)-off)
		if _, err := f.WriteAt(data[off:off+n], int64(off)); err != nil {
			return err
		}
		off += n
	}
	if _, err := f.WriteAt(data[:min(len(data), 5000)], 0); err != nil {
		return err
	}
	if _, err := f.Sync(hostio.SyncFsync); err != nil {
		return err
	}
	if err := f.Evict(); err != nil {
		return err
	}
	if _, err := f.Resident(); err != nil && !errors.Is(err, workload.ErrUnknown) {
		return err
	}
	return same(f, data)
}

// TestWritesDoNotWaitForOneAnother holds one worker's write up in the host and lets the others go on.
func TestWritesDoNotWaitForOneAnother(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		h := &holdUp{at: -1, reached: make(chan struct{}), release: make(chan struct{})}
		c, err := inprocess.New(nil).Create(t.Context(), fast(t, hostio.WithHook(h)), "img", engine.Spec{Format: format, Size: 24 << 20, BandSize: 1 << 20})
		require.NoError(t, err)
		a := attach(t, c)
		data := make([]byte, 600_000)
		var files []workload.File
		for w := range 3 {
			f, err := a.Volume().Create(fmt.Sprint(w), int64(len(data)), workload.FileOptions{Worker: w})
			require.NoError(t, err)
			_, err = f.WriteAt(data, 0)
			require.NoError(t, err)
			files = append(files, f)
		}
		h.arm()
		done := make(chan error)
		go func() { _, err := files[0].WriteAt(data, 0); done <- err }()
		<-h.reached
		for _, f := range files[1:] {
			_, err := f.WriteAt(data, 0)
			require.NoError(t, err)
			require.NoError(t, same(f, data))
			_, err = f.Sync(hostio.SyncFsync)
			require.NoError(t, err, "not even its flush")
		}
		other, err := a.Volume().Create("made meanwhile", 100_000, workload.FileOptions{Worker: 1})
		require.NoError(t, err)
		require.NoError(t, other.Close())
		close(h.release)
		require.NoError(t, <-done)
		for _, f := range files {
			require.NoError(t, f.Close())
		}
		detach(t, a)
	}
}

// holdUp stops the first data write after arm until it is released.
type holdUp struct {
	mu               sync.Mutex
	at               int
	reached, release chan struct{}
}

func (h *holdUp) arm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = 0
}

func (h *holdUp) Before(op hostio.Op) error {
	h.mu.Lock()
	first := op.Kind == hostio.OpWrite && op.Len > 100_000 && h.at == 0
	if first {
		h.at = 1
	}
	h.mu.Unlock()
	if first {
		close(h.reached)
		<-h.release
	}
	return nil
}

func (h *holdUp) After(hostio.Op, int, error) {}
