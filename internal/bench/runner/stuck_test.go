package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/hostio"
)

// stuck makes images that nothing detaches, as the system may hold a volume.
type stuck struct{ engine.Engine }

type stuckImage struct{ engine.Container }

type stuckAttachment struct{ engine.Attachment }

func (e stuck) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := e.Engine.Create(ctx, dir, name, s)
	return stuckImage{c}, err
}

func (c stuckImage) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	a, err := c.Container.Attach(ctx, o)
	return stuckAttachment{a}, err
}

func (stuckAttachment) Detach(context.Context, bool) (engine.Report, error) {
	return engine.Report{}, syscall.EBUSY
}

// What is attached when a run ends keeps its files: clean detaches it first.
func TestImagesThatStayAttachedAreNotDeleted(t *testing.T) {
	c := lived(t, once)
	c.Engine = stuck{c.Engine}
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, runner.StatusFailed, out.Status)
	images, err := filepath.Glob(filepath.Join(work(t, c), "case*"))
	require.NoError(t, err)
	assert.Len(t, images, 2)
	var warned []string
	for _, w := range fold(t, c.Out).Warnings {
		warned = append(warned, w.Text)
	}
	assert.Contains(t, strings.Join(warned, "\n"), "dmgbench clean")

	var released []string
	var said strings.Builder
	require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.CleanOptions{Release: func(_ context.Context, folder string) ([]string, error) {
		released = append(released, filepath.Dir(folder))
		return nil, nil
	}}, &said))
	assert.Equal(t, []string{c.Places[0].Path}, released, said.String())
	nothingLeft(t, c)
}

// releasing detaches what an earlier session left, or cannot.
type releasing struct {
	engine.Engine
	err error
}

func (e releasing) Release(context.Context, string) ([]string, error) {
	if e.err != nil {
		return nil, e.err
	}
	return []string{"case01.dmg"}, nil
}

// A resume that cannot detach what was left deletes nothing of it, and the next one goes on.
func TestResumeDeletesNothingThatStaysAttached(t *testing.T) {
	c := lived(t, once)
	healthy := c.Engine
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Engine, c.Progress = stuck{healthy}, &at{when: step("UDSB", "mkdir", ""), do: cancel}
	out, err := runner.Run(ctx, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, out.Status)
	images, err := filepath.Glob(filepath.Join(work(t, c), "case*"))
	require.NoError(t, err)
	require.NotEmpty(t, images)

	c.Progress, c.Engine = nil, releasing{healthy, syscall.EBUSY}
	_, err = resumed(t.Context(), t, c)
	require.ErrorIs(t, err, syscall.EBUSY)
	for _, path := range images {
		_, err := os.Lstat(path)
		require.NoError(t, err)
	}
	away := filepath.Join(t.TempDir(), "away") // nor one that does not come so far
	again := c
	again.Plan, again.Places = nil, append(slices.Clone(c.Places), runner.Place{Name: "other", Path: away})
	_, err = runner.Resume(t.Context(), c.Out, again)
	require.Error(t, err)
	for _, path := range images {
		_, err := os.Lstat(path)
		require.NoError(t, err)
	}

	c.Engine = releasing{healthy, nil}
	out, err = resumed(t.Context(), t, c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusDone, out.Status)
	nothingLeft(t, c)
}

// What could not be detached when its case ended is once more before its folder goes.
func TestTheLastLookDetachesWhatACaseCouldNot(t *testing.T) {
	c := lived(t, once)
	c.Engine = releasing{stuck{c.Engine}, nil}
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, runner.StatusFailed, out.Status)
	nothingLeft(t, c)
}

// tells makes no image, and names the folder as tools do: with links followed.
type tells struct{ engine.Engine }

func (tells) Create(_ context.Context, dir *hostio.Dir, _ string, _ engine.Spec) (engine.Container, error) {
	real, err := filepath.EvalSymlinks(dir.Path())
	return nil, errors.Join(errors.New("creating "+filepath.Join(real, "x.dmg")), err)
}

func TestFoldersByTheirOtherNamesStayOutOfTheJournal(t *testing.T) {
	c := lived(t, once)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(c.Places[0].Path, link))
	c.Places[0].Path, c.Engine = link, tells{c.Engine}
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	_, reasons := failed(t, c)
	require.NotEmpty(t, reasons)
	assert.Contains(t, reasons[0], "creating <run>/dmgbench-")
	nothingLeft(t, c)
}
