package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
	"dmgbench/internal/system/safetext"
)

// hostileText is a text of somebody else that a terminal or the log of a workflow would obey.
const hostileText = "::error::stop\n::add-mask::e ##[add-mask]e \x1b]0;title\x07 \u009b31m \u202egpj.exe"

const hostilePlan = `schema = 1
title = "::error::title ##[add-mask]e"
summary = """
::stop-commands::x
##[add-mask]e"""
[source]
title = "::error::source"
author = "::warning::author"
[image]
size = "32 MB"
format = "UDSB"
filesystem_preference = ["exFAT"]
[files.f]
sizes = ["64 KB"]
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "f" },
  { do = "remount" },
  { do = "read", phase = "new" },
]
[run]
rounds = 1
[[claim]]
says = "::error::It writes"
by = "us"
left = { write = { format = "UDSB" } }
bound = "> 1 B/s"
`

// spoil replaces the free texts of a record, by their keys, and the checksum, which records need not have.
func spoil(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "crc32c")
		for key, v := range value {
			_, isText := v.(string)
			if isText && slices.Contains([]string{"os", "os_version", "os_build", "kernel", "model", "cpu", "title", "why", "vendor",
				"version", "text", "reason", "error", "filesystem", "device", "medium", "go"}, key) {
				value[key] = hostileText
			}
			spoil(v)
		}
	case []any:
		for _, v := range value {
			spoil(v)
		}
	}
}

// hostileRun is a run folder whose plan and journal have hostile texts.
func hostileRun(t *testing.T, planFile string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "::error::run")
	code, stdout, stderr := call(t, stateEnv(t), "run", planFile, "--out", dir)
	require.Zero(t, code, stderr)
	requireHarmless(t, stdout+stderr, "run")
	journal, err := os.ReadFile(filepath.Join(dir, result.JournalFile))
	require.NoError(t, err)
	var spoilt bytes.Buffer
	for line := range bytes.Lines(journal) {
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		var record map[string]any
		require.NoError(t, decoder.Decode(&record))
		spoil(record)
		require.NoError(t, json.NewEncoder(&spoilt).Encode(record))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.JournalFile), spoilt.Bytes(), 0o644))
	return dir
}

var workflowCommand = regexp.MustCompile(`(?m)^\s*::|##\[`)

func requireHarmless(t *testing.T, text, command string) {
	t.Helper()
	require.NotRegexp(t, workflowCommand, text, command)
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") { // as lines of CSV end
		isolates := r == '\u2068' || r == '\u2069' // which keep right-to-left names in their place
		require.False(t, r != '\n' && r != '\t' && !isolates && (unicode.IsControl(r) || safetext.IsHidden(r)), "%s: %U", command, r)
	}
}

// No text of a plan, a run folder or an argument reaches a terminal or the log of a workflow as a command.
func TestCommandsPrintHostileTextsHarmlessly(t *testing.T) {
	plan := planFile(t, hostilePlan)
	run, other := hostileRun(t, plan), hostileRun(t, plan)
	broken := filepath.Join(t.TempDir(), "::error::broken.toml")
	require.NoError(t, os.WriteFile(broken, []byte("schema = 1\ntitle = \"x\"\n\"::error::\\u001b[31m\" = 1\n"), 0o644))
	seen := map[string]bool{}
	for _, line := range []string{
		"run PLAN --dry-run", "run BROKEN", "run ::error::nothing", "resume RUN", "resume ::error::nothing",
		"plans", "plans show PLAN", "plans show ::error::nothing", "plans copy ::error::nothing", "plans new PLAN",
		"check PLAN", "check BROKEN", "check ::error::nothing", "watch RUN", "watch ::error::nothing",
		"report RUN", "report RUN --verbose", "report RUN --format markdown", "report RUN --format summary", "report RUN --methods",
		"report RUN OTHER", "report --ledger RUNS", "report --ledger RUNS --format markdown", "report ::error::nothing",
		"compare RUN OTHER", "compare RUN OTHER --format markdown", "compare RUN OTHER --format summary",
		"compare RUN ::error::nothing", "export RUN --format openmetrics", "export RUN --format csv", "export RUN --format jsonl",
		"export RUN --format json", "export RUN --format benchfmt", "export RUN ::error::nothing",
		"history RUNS", "history RUNS --format trends", "history RUNS --format csv", "history RUNS --format json", "history ::error::nothing",
		"history baseline RUN", "history baseline ::error::nothing", "history prune --keep 1 RUNS",
		"schema ::error::nothing", "selftest --study ::error::nothing", "clean ::error::nothing", "doctor --on ::error::nothing",
		"man BROKEN", "version ::error::nothing", "hdiutil ::error::nothing", "hdiutil verify ::error::nothing", "::error::nothing",
	} {
		args := strings.Fields(line)
		for i, arg := range args {
			args[i] = strings.NewReplacer("RUNS", filepath.Dir(run), "RUN", run, "OTHER", other, "PLAN", plan, "BROKEN", broken).Replace(arg)
		}
		_, stdout, stderr := call(t, stateEnv(t, "DMGBENCH_CONFIG="), args...)
		requireHarmless(t, stdout, line)
		requireHarmless(t, stderr, line)
		assert.NotEmpty(t, stdout+stderr, line)
		seen[args[0]] = true
	}
	for _, row := range commandRows {
		assert.Contains(t, seen, strings.Fields(row.path)[0])
	}
}
