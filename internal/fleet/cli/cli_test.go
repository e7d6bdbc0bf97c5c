package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/control"
	"dmgbench/internal/result"
)

// call executes one command line in this process.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("DMGBENCH_STATE", t.TempDir())
	var out, err bytes.Buffer
	code = Main(t.Context(), &out, &err, args)
	return code, out.String(), err.String()
}

func TestHelp(t *testing.T) {
	commands := []commandRow{{name: ""}}
	for _, row := range append(commands, commandRows...) {
		args := append(strings.Fields(row.name), "--help")
		code, text, errs := call(t, args...)
		require.Zero(t, code, row.name)
		assert.Empty(t, errs, row.name)
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "%s: %q", row.name, line)
		}
		assert.Contains(t, text, "EXIT STATUS", row.name)
		assert.Contains(t, text, "Examples:\n  dmgbench-fleet ", row.name)
		assert.NotRegexp(t, `--\S+ string `, text, "%s: a flag does not name its value", row.name)
		_, _, flags, _ := readHelp(helpName(row.name))
		for line := range strings.Lines(flags) {
			assert.Regexp(t, flagLine, line, row.name)
		}
	}
}

// helpName is the file of a command's help.
func helpName(name string) string {
	if name == "" {
		return "dmgbench-fleet"
	}
	return name
}

// TestManPages: each command has a page with its flags and those of all commands.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "man")
	code, out, errs := call(t, "man", dir)
	require.Zero(t, code, errs)
	assert.Empty(t, out)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, len(commandRows), "all but man, and the page of the program")
	program, err := os.ReadFile(filepath.Join(dir, "dmgbench-fleet.1"))
	require.NoError(t, err)
	for _, row := range commandRows {
		if row.name == "man" {
			assert.NotContains(t, string(program), ".BR dmgbench\\-fleet\\-man (1)\n")
			continue
		}
		name := "dmgbench-fleet-" + row.name
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		require.NoError(t, err)
		assert.Contains(t, string(page), "\n      \\-\\-nats URL ", name)
		assert.Contains(t, string(page), "\n.SH \"EXIT STATUS\"\n  0 ", name)
		assert.Contains(t, string(program), ".BR "+strings.ReplaceAll(name, "-", "\\-")+" (1)\n")
	}
	code, _, errs = call(t, "man", filepath.Join(dir, "dmgbench-fleet.1"))
	assert.Equal(t, exitError, code)
	assert.Contains(t, errs, "dmgbench-fleet: making folder ")
}

// TestHostileMachines: what a machine sends cannot control the terminal, nor add a line to a table.
func TestHostileMachines(t *testing.T) {
	const bad = "\x1b[2J\r\nfake  idle\u202e\u200b\u009b31m\x7f\x00\xff##[add-mask]x\n::error::stop"
	now := time.Now()
	machines := []control.Machine{
		{Heard: now.Add(time.Hour), Queued: -1, Status: fleet.Status{Machine: "m", State: bad, Job: bad, Error: strings.Repeat(bad, 999),
			Host:     result.Host{OS: bad, OSVersion: bad, Arch: bad},
			Progress: &fleet.Progress{Case: bad, Round: -1, Rounds: -9, Bytes: 1 << 62, Of: -1, Left: -1 << 63}}},
		{Status: fleet.Status{Machine: "n"}},
	}
	jobs := []control.JobView{{IsEnded: true, Result: fleet.Result{Machine: "m", Job: bad, Plan: bad, State: bad, Error: bad,
		Occurrence: 1 << 62, Run: bad}}, {Due: now.Add(1 << 62)}}
	text := formatStatus(machines, jobs)
	assert.Equal(t, 7, strings.Count(text, "\n"), text)
	assert.Less(t, len(text), 2500)
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs}
	a.print("%s", bad)
	a.print("::error::stop")
	a.note("%s", bad)
	w := lineWriter{print: a.note} // what ssh prints of another machine
	fmt.Fprintf(&w, "%s\n%s", bad, bad)
	w.flush()
	assert.Equal(t, 2, strings.Count(out.String(), "\n"))
	encoded := encodeStatus(machines, jobs)
	var decoded struct{ Machines []control.Machine }
	require.NoError(t, json.Unmarshal([]byte(encoded), &decoded))
	assert.Equal(t, strings.ToValidUTF8(bad, "\uFFFD"), decoded.Machines[0].Job)
	printed := text + out.String() + errs.String() + encoded
	assert.NotRegexp(t, `(?m)^\s*::|##\[`, printed)
	for _, r := range printed {
		assert.False(t, r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)), "%q", r)
	}
}

// What a machine does not report itself is told by the times of its last status, on both clocks.
func TestTrouble(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		state, err   string
		heard, clock time.Duration // after now
		want         string
	}{
		{fleet.Idle, "", -4 * time.Minute, -4 * time.Minute, ""},
		{fleet.Idle, "the reason", 0, time.Hour, "the reason"},
		{fleet.Idle, "", 0, time.Hour, "its clock is 1h0m0s ahead of the server's"},
		{fleet.Idle, "", 0, -time.Hour, "its clock is -1h0m0s ahead of the server's"},
		{fleet.Idle, "the reason", -time.Hour, -time.Hour, "silent: off, asleep, offline, or in a long step"},
		{fleet.Measuring, "", -time.Hour, -time.Hour, "silent: off, asleep, offline, or in a long step"},
		{fleet.Stopped, "", -time.Hour, -time.Hour, ""},
		{fleet.Idle, "", time.Hour, time.Hour, ""}, // the clock of the server jumped
	} {
		m := control.Machine{Heard: now.Add(c.heard), Status: fleet.Status{State: c.state, Error: c.err, Time: now.Add(c.clock)}}
		assert.Equal(t, c.want, trouble(m), c)
		assert.Contains(t, formatStatus([]control.Machine{m}, nil), c.want)
	}
	assert.Empty(t, trouble(control.Machine{}), "it has not joined")
}

func TestCancelledCommandsEndWith130(t *testing.T) {
	t.Setenv("DMGBENCH_STATE", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	assert.Equal(t, exitInterrupted, Main(ctx, &out, &errs, []string{"status"}))
}

// TestMeasuringProgramHasNoServer: dmgbench does not grow by the fleet.
func TestMeasuringProgramHasNoServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "dmgbench/cmd/dmgbench").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "dmgbench/internal/cli\n")
	assert.NotRegexp(t, `nats-io|dmgbench/internal/fleet`, string(out))
}
