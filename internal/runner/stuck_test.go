package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine"
	"dmgbench/internal/hostio"
	"dmgbench/internal/runner"
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
	require.NoError(t, runner.Clean(t.Context(), c.StateDir, runner.Cleaning{Release: func(_ context.Context, folder string) ([]string, error) {
		released = append(released, filepath.Dir(folder))
		return nil, nil
	}}, &said))
	assert.Equal(t, []string{c.Places[0].Path}, released, said.String())
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
