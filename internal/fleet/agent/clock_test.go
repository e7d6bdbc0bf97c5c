package agent

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

// offset is added to package time: programs that are built with it have a clock that a file of theirs moves, by seconds.
// Only the time of day jumps, not the monotonic clock, as when somebody sets the clock of a machine.
const offset = `package time

import (
	"syscall"
	"unsafe"
)

var clockOffset = func() *int64 {
	name, _ := syscall.Getenv("FLEET_CLOCK")
	if fd, err := syscall.Open(name, syscall.O_RDONLY, 0); err == nil {
		if data, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED); err == nil {
			return (*int64)(unsafe.Pointer(&data[0]))
		}
	}
	return new(int64)
}()
`

// buildWithClock builds these tests, for their processes, and dmgbench with such a package time.
func buildWithClock(t *testing.T) (tests, program string) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	dir, source := t.TempDir(), filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	require.NoError(t, err)
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	require.Contains(t, string(text), now)
	replaced := map[string]string{}
	for name, text := range map[string]string{"time.go": strings.Replace(string(text), now, now+"\tsec += *clockOffset\n", 1),
		"offset.go": offset} {
		replaced[filepath.Join(source, name)] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	text, err = json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	tests, program = filepath.Join(dir, "tests"), filepath.Join(dir, "dmgbench")
	for _, args := range [][]string{
		{"test", "-c", "-buildvcs=false", "-overlay", overlay, "-o", tests, "dmgbench/internal/fleet/agent"},
		{"build", "-buildvcs=false", "-overlay", overlay, "-o", program, "dmgbench/cmd/dmgbench"},
	} {
		out, err := exec.Command("go", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return tests, program
}

// clock is the file of a clock; set makes it differ from that of this machine.
type clock string

func (c clock) set(t *testing.T, d time.Duration) {
	t.Helper()
	// It is written in place: processes have mapped it.
	f, err := os.OpenFile(string(c), os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(d/time.Second)))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestClockJumps moves the clock of the machine and that of the server by an hour while a job is measured and a repeated one
// waits (DMGBENCH_LONG=1). The server's clock alone decides which occurrence is due, and none is measured twice.
func TestClockJumps(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" {
		t.Skip("builds programs with another clock: DMGBENCH_LONG=1")
	}
	const half = 30 * time.Minute // between two occurrences
	tests, program := buildWithClock(t)
	for _, c := range []struct {
		name         string
		isServer     bool
		jump, later  time.Duration // later is the server's clock at the end
		soon, at     int           // occurrence that is due after the jump, 0 for none, and at the end
		measuredOnce []string
	}{
		{"machine forward", false, time.Hour, half, 0, 1, []string{"often-0", "run-0", "next-0", "often-1"}},
		{"machine backward", false, -time.Hour, half, 0, 1, []string{"often-0", "run-0", "next-0", "often-1"}},
		{"server forward", true, time.Hour, 3 * half, 2, 3, []string{"often-0", "run-0", "often-2", "next-0", "often-3"}},
		{"server backward", true, -time.Hour, half, 0, 1, []string{"often-0", "run-0", "next-0", "often-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, smallLimits)
			s.nc.Close()
			s.server.Close() // from now on it is a process
			server, machine := clock(filepath.Join(t.TempDir(), "server")), clock(filepath.Join(t.TempDir(), "machine"))
			server.set(t, 0)
			machine.set(t, 0)
			config := s.config(recording(t, program))
			t.Cleanup(spawn(t, process{Binary: tests, Clock: string(server), Serve: s.folder}))
			t.Cleanup(spawn(t, process{Binary: tests, Clock: string(machine), Link: s.link, Folder: config.Folder,
				Program: config.Program, Engine: config.Engine, Places: config.Places}))
			s.reconnect()

			often := tinyJob("often")
			often.Every = half
			s.submit(often)
			s.await("often", 0)
			run := tinyJob("run")
			run.Text = strings.Replace(tinyPlan, "200 ms", "2 s", 1)
			s.submit(run)
			s.until("a run", func() bool { return s.status().Job == "run" && s.status().Progress != nil })
			if c.isServer {
				server.set(t, c.jump)
			} else {
				machine.set(t, c.jump)
			}
			if c.soon > 0 {
				s.await("often", c.soon)
			}
			s.submit(tinyJob("next"))
			for _, id := range []string{"run", "next"} {
				r := s.await(id, 0)
				assert.Equal(t, fleet.Done, r.State, r.Error)
				assert.Equal(t, 1, r.Attempts)
				s.checkRun(r, 2)
				s.awaitGone(id)
			}
			server.set(t, c.later)
			assert.Equal(t, fleet.Done, s.await("often", c.at).State)
			s.empty(config)
			text, err := os.ReadFile(config.Program + ".log")
			require.NoError(t, err)
			assert.Equal(t, c.measuredOnce, strings.Fields(string(text)))
		})
	}
}

// recording is a program that appends to a file the names of the tasks that it measures.
func recording(t *testing.T, program string) string {
	path := filepath.Join(t.TempDir(), "dmgbench")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--dry-run*) ;; run*|resume*)"+
		" basename \"$(dirname \"$2\")\" >>'%s.log';; esac\nexec '%s' \"$@\"\n", path, program)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}
