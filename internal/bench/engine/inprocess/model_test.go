package inprocess_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/image/exfat"
	"dmgbench/internal/system/hostio"
)

// session is an image and what its files must hold.
type session struct {
	t     *testing.T
	dir   *hostio.Dir
	con   engine.Container
	att   engine.Attachment
	files map[string][]byte
	n     int
}

func (s *session) attach(t *rapid.T) {
	a, err := s.con.Attach(s.t.Context(), engine.AttachOptions{})
	require.NoError(t, err)
	s.att = a
}

func (s *session) detach(t *rapid.T) {
	_, err := s.att.Detach(s.t.Context(), false)
	require.NoError(t, err)
}

func (s *session) detached(t *rapid.T, do func()) {
	s.detach(t)
	do()
	s.attach(t)
}

func (s *session) write(t *rapid.T) {
	s.n++
	name := fmt.Sprintf("%s %d", rapid.SampledFrom([]string{"f", "ß", "日本 🎉", "a name that is longer than one entry takes"}).Draw(t, "name"), s.n)
	if rapid.Bool().Draw(t, "in folder") {
		name = "dir/" + name
	}
	data := make([]byte, rapid.OneOf(rapid.IntRange(0, 9000), rapid.IntRange(0, 2_500_000)).Draw(t, "size"))
	for i := range data {
		data[i] = byte(i*7+s.n) | 1
	}
	f, err := s.att.Volume().Create(name, int64(len(data)), workload.FileOptions{Worker: rapid.IntRange(0, 2).Draw(t, "worker")})
	if errors.Is(err, syscall.ENOSPC) {
		return
	}
	require.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	require.NoError(t, err)
	if rapid.Bool().Draw(t, "sync") {
		_, err = f.Sync(hostio.SyncFsync)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	s.files[name] = data
}

func (s *session) remove(t *rapid.T) {
	if len(s.files) == 0 {
		t.Skip("no files")
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(s.files))).Draw(t, "file")
	require.NoError(t, s.att.Volume().Remove(name))
	delete(s.files, name)
}

func (s *session) trim(t *rapid.T) {
	_, err := s.att.Trim(s.t.Context())
	require.NoError(t, err)
}

func (s *session) remount(t *rapid.T) { s.detached(t, func() {}) }

func (s *session) compact(t *rapid.T) {
	s.detached(t, func() {
		_, err := s.con.Compact(s.t.Context(), engine.CompactOptions{})
		if _, no := errors.AsType[*engine.UnsupportedError](err); !no {
			require.NoError(t, err)
		}
	})
}

func (s *session) resize(t *rapid.T) {
	s.detached(t, func() {
		_, err := s.con.Resize(s.t.Context(), 512*rapid.Int64Range(8<<11, 60<<11).Draw(t, "sectors"))
		if !errors.Is(err, exfat.ErrShrinkUsed) && !errors.Is(err, exfat.ErrFATTooSmall) {
			require.NoError(t, err)
		}
	})
}

func (s *session) convert(t *rapid.T) {
	s.detached(t, func() {
		s.n++
		spec := engine.Spec{Format: rapid.SampledFrom([]string{"UDRW", "UDSB", "UDSP", "ASIF"}).Draw(t, "format"), BandSize: 1 << 20}
		c, err := s.con.Convert(s.t.Context(), s.dir, fmt.Sprint("img", s.n), spec)
		require.NoError(t, err)
		require.NoError(t, s.con.Remove(s.t.Context()))
		s.con = c
	})
}

// check compares every byte and lets both checks look.
func (s *session) check(t *rapid.T) {
	s.detached(t, func() {
		r, err := s.con.Check(s.t.Context(), engine.CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, r.Findings)
	})
	for name, want := range s.files {
		f, err := s.att.Volume().Open(name, workload.FileOptions{})
		require.NoError(t, err)
		require.NoError(t, same(f, want), name)
		require.NoError(t, f.Close())
	}
}

// TestImageAgainstModel does what plans do, in any order, beside a map of what must be there; at the end exfatprogs judges.
func TestImageAgainstModel(t *testing.T) {
	fsck, missing := exec.LookPath("fsck.exfat")
	rapid.Check(t, func(rt *rapid.T) {
		path, err := os.MkdirTemp(fast(t).Path(), "")
		require.NoError(rt, err)
		defer os.RemoveAll(path)
		dir, err := hostio.OpenDir(path)
		require.NoError(rt, err)
		defer dir.Close()
		spec := engine.Spec{Format: rapid.SampledFrom([]string{"UDRW", "UDSB", "UDSP", "ASIF"}).Draw(rt, "first format"), Size: 24 << 20, BandSize: 1 << 20}
		s := &session{t: t, dir: dir, files: map[string][]byte{}}
		s.con, err = inprocess.New(nil).Create(t.Context(), dir, "img", spec)
		require.NoError(rt, err)
		s.attach(rt)
		require.NoError(rt, s.att.Volume().Mkdir("dir"))
		rt.Repeat(map[string]func(*rapid.T){
			"write": s.write, "write 2": s.write, "write 3": s.write, "remove": s.remove, "trim": s.trim, "remount": s.remount,
			"compact": s.compact, "resize": s.resize, "convert": s.convert, "check": s.check,
		})
		s.check(rt)
		s.detach(rt)
		if missing == nil && filepath.Ext(s.con.Name()) == ".dmg" {
			data, err := os.ReadFile(filepath.Join(path, s.con.Name()))
			require.NoError(rt, err)
			part := filepath.Join(path, "part")
			require.NoError(rt, os.WriteFile(part, data[1<<20:], 0o600))
			out, err := exec.Command(fsck, "-n", part).CombinedOutput()
			require.NoError(rt, err, "%s", out)
			require.Contains(rt, string(out), "clean")
		}
	})
}
