package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/simulated"
	"dmgbench/internal/bench/runner"
	dmgbench "dmgbench/internal/cli"
	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/plans"
)

// TestLoad has one plan executed by many agents of a server that is a process, on the simulated device, and prints what the server
// needs for it (DMGBENCH_LONG=1). DMGBENCH_LOAD_AGENTS=10,100 changes the numbers of agents.
func TestLoad(t *testing.T) {
	if os.Getenv("DMGBENCH_LONG") == "" || runtime.GOOS != "linux" {
		t.Skip("takes minutes, and reads /proc: DMGBENCH_LONG=1")
	}
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("DMGBENCH_LOAD_AGENTS"), "10,100,1000"), ",") {
		t.Run(size, func(t *testing.T) { testLoad(t, must(strconv.Atoi(size))(t)) })
	}
}

func testLoad(t *testing.T, n int) {
	folder := t.TempDir()
	server := serveFleet(t, folder)
	m := &manyAgents{T: t, flags: []string{"--folder", folder}}
	m.connect(must(broker.ReadControl(folder))(t))
	begun := time.Now()
	lap := func() (seconds float64) {
		defer func() { begun = time.Now() }()
		return time.Since(begun).Seconds()
	}
	var links []fleet.Link
	for i := range n {
		text := must(m.execute("add-machine", fmt.Sprintf("mac-%d", i+1)))(t)
		links = append(links, must(fleet.ParseLink(text))(t))
	}
	added := lap()
	cpu := server.cpu()
	m.start(links, limitedProgram(t), "")
	connected, connectCPU := lap(), server.cpu()-cpu
	rest, disk := server.memory("VmRSS"), diskUsage(t, folder)

	file := filepath.Join(t.TempDir(), "look.toml")
	require.NoError(t, os.WriteFile(file, simulatedPlan(), 0o600))
	lap()
	cpu = server.cpu()
	require.Equal(t, n, strings.Count(must(m.execute("submit", file))(t), ": job "))
	submitted := lap()
	m.until("all results", func() bool { return m.results() == n })
	ran, runCPU := submitted+lap(), server.cpu()-cpu
	m.until("an empty queue", func() bool { return m.count(fleet.Jobs) == 0 })
	disk = diskUsage(t, folder) - disk
	lap()
	archives := m.checkRuns(t.TempDir(), n, n)
	t.Logf("%d agents: added in %.1f s, all connected in %.1f s (server: %.1f s CPU); %.1f s from submit (%.1f s) to the last "+
		"result (server: %.1f s CPU); RSS %.0f MiB at rest before, %.0f MiB at most; %.1f kB on the disk and %.1f kB of archive "+
		"a result; all fetched and checked in %.1f s", n, added, connected, connectCPU, ran, submitted, runCPU, rest,
		server.memory("VmHWM"), float64(disk)/float64(n)/1e3, float64(archives)/float64(n)/1e3, lap())
}

// process is a server as /proc has it.
type process struct {
	*testing.T
	pid int
}

// serveFleet starts dmgbench-fleet serve.
func serveFleet(t *testing.T, folder string) process {
	t.Helper()
	// The default reserves 256 MiB for each machine, which a disk may not have for a thousand.
	cmd := exec.Command("dmgbench-fleet", "serve", "--folder", folder, "--runs", "16 MiB")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out := must(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		require.Empty(t, errs.String(), "what the server logged")
	})
	require.Contains(t, must(bufio.NewReader(out).ReadString('\n'))(t), "serving a fleet at")
	return process{t, cmd.Process.Pid}
}

// cpu is the time that the process has used, in seconds.
func (p process) cpu() float64 {
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid)))(p.T)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
	ticks := must(strconv.Atoi(fields[12]))(p.T) + must(strconv.Atoi(fields[13]))(p.T) // user and system
	return float64(ticks) / 100
}

// memory is a line of the status of the process, in MiB.
func (p process) memory(name string) float64 {
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid)))(p.T)
	_, rest, _ := strings.Cut(string(text), name+":")
	return float64(must(strconv.Atoi(strings.Fields(rest)[0]))(p.T)) / 1024
}

// diskUsage is what a folder takes on the disk, in bytes.
func diskUsage(t *testing.T, folder string) int {
	t.Helper()
	out, _ := exec.Command("du", "-sk", folder).Output() // a file may be gone meanwhile
	return must(strconv.Atoi(strings.Fields(string(out))[0]))(t) << 10
}

// limitedProgram is a program of which as many execute at a time as there are processors: each reads a byte of a pipe before, and
// writes it back.
func limitedProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	f := must(os.OpenFile(pipe, os.O_RDWR, 0))(t) // what is in it stays until f is closed
	t.Cleanup(func() { f.Close() })
	must(f.WriteString(strings.Repeat("\n", runtime.NumCPU())))(t)
	program := filepath.Join(dir, "dmgbench")
	script := fmt.Sprintf(`#!/bin/sh
[ "$1" = version ] && echo 'dmgbench simulated' && exit
exec 9<>'%s'
read -r _ <&9
DMGBENCH_RUN_ENGINE=inprocess dmgbench-simulated "$@" 9<&-
status=$?
echo >&9
exit $status
`, pipe)
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	return program
}

// simulatedPlan is the built-in plan quick without its steps and claims about content, which the simulated device does not keep.
func simulatedPlan() (kept []byte) {
	text, _ := plans.Get("quick")
	text, _, _ = bytes.Cut(text, []byte("[[claim]]"))
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(`"verify"`)) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// simulate is dmgbench with runs on a simulated device and a virtual clock. It executes other commands, and dry runs, as usual.
func simulate() {
	args := os.Args[1:]
	if args[0] != "run" || slices.Contains(args, "--dry-run") {
		os.Exit(dmgbench.Run())
	}
	i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--out=") })
	if err := simulateRun(args[1], strings.TrimPrefix(args[i], "--out="), os.Getenv("DMGBENCH_HOST_NAME")); err != nil {
		panic(err)
	}
}

func simulateRun(file, dir, machine string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p, problems := plan.Parse(file, text)
	if problems != nil {
		return problems
	}
	law, err := simulated.Parse("write = 5 GB/s\nread = 6 GB/s\nlatency = 200 us\nstep = 20 ms\nfile_noise = 5%")
	if err != nil {
		return err
	}
	c := clock.NewVirtual(time.Now())
	device, err := simulated.New(law, c, uint64(os.Getpid()), 1)
	if err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	o, err := runner.Run(context.Background(), runner.Config{Plan: p, Out: dir, Engine: device, Why: device.Simulated(),
		Clock: c, Host: result.Host{Name: machine}, Progress: jsonStatus{},
		Wait: func(context.Context) {
			if _, err := lines.ReadString('\n'); err != nil {
				os.Exit(exitInterrupted)
			}
		}})
	if err == nil && o.Status != runner.StatusDone {
		err = fmt.Errorf("the run ended %s", o.Status)
	}
	return err
}

// jsonStatus prints what an agent reads of a run that waits between its steps.
type jsonStatus struct{}

func (jsonStatus) Status(s runner.Status) {
	if s.Waiting {
		_ = json.NewEncoder(os.Stderr).Encode(struct {
			Kind string `json:"kind"`
			runner.Status
		}{"status", s})
	}
}
func (jsonStatus) Message(string)           {}
func (jsonStatus) Warning(string)           {}
func (jsonStatus) Failure(f runner.Failure) { fmt.Fprintln(os.Stderr, f) }
