package inprocess_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/hostio/hostiotest"
)

// tally is a script of faults that counts how often it struck.
type tally struct {
	*hostiotest.Faults
	struck atomic.Int64
}

func (f *tally) Before(op hostio.Op) error {
	err := f.Faults.Before(op)
	if err != nil {
		f.struck.Add(1)
	}
	return err
}

// victim is an image that is used on a host that fails, up to the first error.
type victim struct {
	con  engine.Container
	att  engine.Attachment // while attached
	safe map[string][]byte // what was flushed, and said to be
}

func (v *victim) write(name string, n int) error {
	data := bytes.Repeat([]byte(name+" "), n/(len(name)+1)+1)[:n]
	f, err := v.att.Volume().Create(name, int64(n), workload.FileOptions{})
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		if _, err = f.Sync(hostio.SyncFull); err == nil {
			v.safe[name] = data
		}
	}
	return errors.Join(err, f.Close())
}

func (v *victim) attach(ctx context.Context) (err error) {
	v.att, err = v.con.Attach(ctx, engine.AttachOptions{})
	return err
}

func (v *victim) detach(ctx context.Context) error {
	_, err := v.att.Detach(ctx, false)
	if err == nil {
		v.att = nil
	}
	return err
}

func (v *victim) use(ctx context.Context) error {
	steps := []func() error{
		func() error { return v.attach(ctx) },
		func() error { return v.att.Volume().Mkdir("d") },
		func() error { return v.write("d/a", 5) },
		func() error { return v.write("d/b", 700_000) },
		func() error { return v.write("c", 1_600_001) },
		func() error { delete(v.safe, "d/b"); return v.att.Volume().Remove("d/b") },
		func() error { _, err := v.att.Trim(ctx); return err },
		func() error { return v.write("e", 300_000) },
		func() error { return v.detach(ctx) },
		func() error { return v.attach(ctx) },
		func() error { delete(v.safe, "c"); return v.att.Volume().Remove("c") },
		func() error { return v.att.Volume().Sync() },
		func() error { return v.detach(ctx) },
		func() error {
			_, err := v.con.Compact(ctx, engine.CompactOptions{})
			if _, no := errors.AsType[*engine.UnsupportedError](err); no {
				err = nil
			}
			return err
		},
		func() error { _, err := v.con.Resize(ctx, 12<<20); return err },
		func() error { _, err := v.con.Resize(ctx, 6<<20); return err },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func newVictim(t *testing.T, format string) (*tally, *hostio.Dir, *victim, engine.Spec) {
	f := &tally{Faults: &hostiotest.Faults{}}
	dir := fast(t, hostio.WithHook(f))
	s := engine.Spec{Format: format, Size: 8 << 20, BandSize: 1 << 20}
	c, err := inprocess.New(nil).Create(t.Context(), dir, "img", s)
	require.NoError(t, err)
	return f, dir, &victim{con: c, safe: map[string][]byte{}}, s
}

// mendBoot repairs what is left where the host failed in the middle of the volume's boot region, which a resize writes
// in place, the backup before it: one of the two is whole then, and a check has to bring the other back.
func mendBoot(t *testing.T, dir *hostio.Dir, s engine.Spec, err error) {
	t.Helper()
	if !strings.Contains(err.Error(), "resizing volume") || !strings.Contains(err.Error(), "writing 6144 bytes at") {
		return
	}
	c, err := inprocess.New(nil).Open(t.Context(), dir, "img", s)
	require.NoError(t, err)
	_, err = c.Check(t.Context(), engine.CheckOptions{Repair: true})
	require.NoError(t, err)
	r, err := c.Check(t.Context(), engine.CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, r.Findings, "a repaired volume")
}

// survived opens the image again after the host has come to its senses: it mounts, is wrong in nothing that an
// interruption does not explain, and holds all that was said to be flushed.
func survived(t *testing.T, dir *hostio.Dir, s engine.Spec, safe map[string][]byte) {
	t.Helper()
	c, err := inprocess.New(nil).Open(t.Context(), dir, "img", s)
	require.NoError(t, err)
	r, err := c.Check(t.Context(), engine.CheckOptions{})
	require.NoError(t, err)
	for _, f := range r.Findings {
		require.True(t, explained(f), "%s", f)
	}
	a, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.NoError(t, err)
	defer detach(t, a)
	for name, want := range safe {
		f, err := a.Volume().Open(name, workload.FileOptions{})
		require.NoError(t, err, name)
		got := make([]byte, len(want))
		_, err = f.ReadAt(got, 0)
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(want, got), name)
		require.NoError(t, f.Close())
	}
}

// TestEveryFailingCallIsReported lets single calls of every kind fail. Whoever asked is told, with the object's name;
// a flush that failed is not followed by one that succeeds; the image stays what it was.
func TestEveryFailingCallIsReported(t *testing.T) {
	kinds := []hostio.Kind{
		hostio.OpWrite, hostio.OpSync, hostio.OpDirSync, hostio.OpCreate, hostio.OpRemove, hostio.OpPunch, hostio.OpTruncate,
		hostio.OpRename, hostio.OpAllocate, hostio.OpOpen, hostio.OpRead,
	}
	rarer := 2 // the later calls repeat the earlier ones
	if long {
		rarer = 4
	}
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		for _, kind := range kinds {
			for k, struck := 1, true; struck; k += 1 + k/rarer {
				t.Run(fmt.Sprintf("%s %s %d", format, kind, k), func(t *testing.T) { struck = failingCall(t, format, kind, k) })
			}
		}
	}
}

// failingCall says whether there were as many as k calls of the kind.
func failingCall(t *testing.T, format string, kind hostio.Kind, k int) (struck bool) {
	f, dir, v, s := newVictim(t, format)
	f.FailNth(kind, "", k, syscall.EIO)
	err := v.use(t.Context())
	if f.struck.Load() == 0 {
		require.NoError(t, err)
		return false
	}
	require.ErrorIs(t, err, syscall.EIO)
	assert.Contains(t, err.Error(), "img.")
	failed := err
	if v.att != nil {
		flush := kind == hostio.OpSync || kind == hostio.OpDirSync
		if flush {
			require.Error(t, v.att.Volume().Sync(), "flushing again cannot succeed")
		}
		if _, err = v.att.Detach(t.Context(), true); flush {
			require.Error(t, err)
		}
	}
	mendBoot(t, dir, s, failed)
	survived(t, dir, s, v.safe)
	return true
}

// TestDiskFullAnywhere gives the host's disk room for some bytes only, and then room again: the image goes on.
func TestDiskFullAnywhere(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		for room, struck := int64(0), true; struck; room += 250_001 {
			t.Run(fmt.Sprintf("%s %d bytes", format, room), func(t *testing.T) { struck = diskFull(t, format, room) })
		}
	}
}

func diskFull(t *testing.T, format string, room int64) (struck bool) {
	f, dir, v, s := newVictim(t, format)
	f.NoSpaceAfter(room)
	err := v.use(t.Context())
	if f.struck.Load() == 0 {
		require.NoError(t, err)
		return false
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	f.NoSpaceAfter(-1)
	if v.att == nil {
		mendBoot(t, dir, s, err)
	}
	if v.att != nil {
		require.NoError(t, v.write("after", 100_000))
		require.NoError(t, v.detach(t.Context()))
		r, err := v.con.Check(t.Context(), engine.CheckOptions{})
		require.NoError(t, err)
		assert.Empty(t, r.Findings)
	}
	survived(t, dir, s, v.safe)
	return true
}

// TestShortTransfers moves all data in small pieces.
func TestShortTransfers(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB", "UDSP", "ASIF"} {
		f, dir, v, s := newVictim(t, format)
		f.ShortTransfers(7001)
		require.NoError(t, v.use(t.Context()))
		f.ShortTransfers(0)
		survived(t, dir, s, v.safe)
	}
}
