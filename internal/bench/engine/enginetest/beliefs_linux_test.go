package enginetest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil"
	"dmgbench/internal/bench/engine/hdiutil/command"
	"dmgbench/internal/linuxhdiutil/attach"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
)

// run runs a program in place of command.Run.
type run func(context.Context, command.Job) (command.Result, error)

// examine examines the work-alike and returns what differs. It is stopped after
// so many observations, 0: never, and leaves no image and no mount point then either.
func examine(t *testing.T, stopAfter int, by run) (differs []string) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it attaches images")
	}
	if !attach.Loops() {
		t.Skip("no loop device")
	}
	t.Setenv("DMGBENCH_RUNTIME_DIR", t.TempDir())
	self, err := os.Executable()
	require.NoError(t, err)
	o := hdiutil.WorkAlike(clock.NewReal(), self, "hdiutil")
	o.WorkDir, o.Run = t.TempDir(), by
	e, err := hdiutil.New(t.Context(), o)
	require.NoError(t, err)
	dir, err := hostio.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := 0
	err = e.Examine(ctx, dir, func(o hdiutil.Observation) {
		if o.Verdict == hdiutil.Differs {
			differs = append(differs, o.Name+": "+o.Seen)
		}
		if seen++; seen == stopAfter {
			stop()
		}
	})
	if stopAfter > 0 {
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, stopAfter, seen)
	} else {
		require.NoError(t, err)
		assert.GreaterOrEqual(t, seen, 55)
	}
	attached, err := hdiutil.Attached(t.Context(), o, dir.Path())
	require.NoError(t, err)
	assert.Empty(t, attached)
	left, err := os.ReadDir(o.WorkDir)
	require.NoError(t, err)
	assert.Empty(t, left)
	return differs
}

// The work-alike does what the driver assumes, as far as Linux can.
func TestExaminationOfTheWorkAlike(t *testing.T) {
	stopAfter := 9 // an image has been attached for writing and for reading
	if long {
		stopAfter = 0
	}
	assert.Empty(t, examine(t, stopAfter, nil))
}

// A tool that does one thing in another way is found out, and in that thing alone.
func TestExaminationOfALyingTool(t *testing.T) {
	differs := examine(t, 8, func(ctx context.Context, j command.Job) (command.Result, error) {
		r, err := command.Run(ctx, j)
		if slices.Contains(j.Args, "imageinfo") && r.Status == 1 {
			r.Status, r.Stderr = 16, []byte(strings.Replace(string(r.Stderr), "image not recognized", "Resource busy", 1))
		}
		return r, err
	})
	assert.Equal(t, []string{"hdiutil imageinfo of a text: busy, status 16"}, differs)
}
