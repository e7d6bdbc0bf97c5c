package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patient is a plan with a step of an hour, which an interrupt has to end.
const patient = `
schema = 1
title = "Patient"
[target]
kind = "directory"
[files.few]
sizes = ["64 KB"]
sets = 1
[run]
rounds = 1
canary = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new", files = "few" },
  { do = "settle", at_least = "1 h" },
]
`

// waitingFor calls do with each step that the lines of JSON say the run waits for.
type waitingFor struct {
	t     *testing.T
	do    func(step string)
	lines int
}

func (w *waitingFor) Write(p []byte) (int, error) {
	line := struct {
		Kind, Do string
		Waiting  bool
	}{}
	require.NoError(w.t, json.Unmarshal(p, &line), "%s", p)
	if line.Kind == "status" {
		w.lines++
		assert.True(w.t, line.Waiting, "%s", p)
		w.do(line.Do)
	}
	return len(p), nil
}

// A run that waits ends with 130 and cleans up if it is interrupted, and if stdin ends; while it waits, and in a step.
func TestAWaitingRunIsInterrupted(t *testing.T) {
	for name, test := range map[string]struct {
		at  string
		eof bool
	}{
		"interrupt while it waits":      {"write", false},
		"end of stdin while it waits":   {"write", true},
		"end of stdin in an hour's nap": {"after settle", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			stdin, answers := io.Pipe()
			defer answers.Close()
			stderr := &waitingFor{t: t, do: func(step string) {
				go func() { // the status comes before the read
					switch {
					case test.at == step && test.eof:
						answers.Close()
					case test.at == step:
						interrupt()
					default:
						_, _ = answers.Write([]byte("\n"))
					}
					if test.at == "after "+step {
						answers.Close()
					}
				}()
			}}
			out := filepath.Join(t.TempDir(), "run")
			code := Main(ctx, stdin, io.Discard, stderr, []string{"run", planFile(t, patient), "--out", out, "--format", "json",
				"--wait-between-steps"}, stateEnv(t))
			assert.Equal(t, exitInterrupted, code)
			assert.Equal(t, map[string]int{"write": 3, "after settle": 4}[test.at], stderr.lines)
			left, err := filepath.Glob(filepath.Join(out, "dmgbench-*"))
			require.NoError(t, err)
			assert.Empty(t, left)
			journal, err := os.ReadFile(filepath.Join(out, "journal.jsonl"))
			require.NoError(t, err)
			assert.Equal(t, 1, strings.Count(string(journal), `"end":"interrupted"`))
		})
	}
}
