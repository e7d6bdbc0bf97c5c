package runner_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/hostio"
)

// tape keeps every change of every file at a place, in order, with a digest of what was written.
type tape struct {
	mu  sync.Mutex
	ops []string
}

// runFolder is the part of a path that names the run, and temporary the end of a temporary name.
var (
	runFolder = regexp.MustCompile(`dmgbench-[0-9TZ]+-[0-9a-f]+`)
	temporary = regexp.MustCompile(`\.tmp-\w+`)
)

func (*tape) Before(hostio.Op) error { return nil }

// After keeps what changes something. Flushes of bands run beside each other and
// change nothing; temporary names are random.
func (r *tape) After(op hostio.Op, _ int, err error) {
	switch op.Kind {
	case hostio.OpRead, hostio.OpOpen, hostio.OpEvict, hostio.OpSync, hostio.OpDirSync:
		return
	}
	path := temporary.ReplaceAllString(runFolder.ReplaceAllString(op.Path, "RUN"), "")
	data := op.Data
	if path == "RUN/..dmgbench-run" { // the marker holds the run's id
		data = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, fmt.Sprintf("%s %s %d %d %x %v", op.Kind, path, op.Off, op.Len, sha256.Sum256(data), err))
}

// taped runs the plan with a seed, without anything random around it.
func taped(t *testing.T, seed uint64) []string {
	t.Helper()
	c := lived(t, life)
	c.Plan.Run.Seed = seed
	r := &tape{}
	c.Hook = r
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	require.Greater(t, len(r.ops), 100)
	return r.ops
}

func TestOneSeedWritesTheSameBytesInTheSameOrder(t *testing.T) {
	first, second, other := taped(t, 7), taped(t, 7), taped(t, 8)
	for i := range min(len(first), len(second)) {
		require.Equal(t, first[i], second[i], "operation %d", i)
	}
	require.Len(t, second, len(first))
	assert.NotEqual(t, places(first), places(other), "another seed, another order")
	assert.NotEqual(t, first, other)
}

// places are the operations without what was written.
func places(ops []string) []string {
	var out []string
	for _, op := range ops {
		f := strings.Fields(op)
		out = append(out, strings.Join(f[:4], " "))
	}
	return out
}
