package runner_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/system/hostio"
)

// telling reports something about every image and attachment that it makes, as tools do.
type telling struct{ engine.Engine }

type tellingImage struct{ engine.Container }

type tellingAttachment struct{ engine.Attachment }

func (e telling) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := e.Engine.Create(ctx, dir, name, s)
	return tellingImage{c}, err
}

func (c tellingImage) Convert(
	ctx context.Context, dir *hostio.Dir, name string, s engine.Spec,
) (engine.Container, error) {
	other, err := c.Container.Convert(ctx, dir, name, s)
	return tellingImage{other}, err
}

func (c tellingImage) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	other, err := c.Container.Transfer(ctx, dir, name)
	return tellingImage{other}, err
}

func (c tellingImage) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	a, err := c.Container.Attach(ctx, o)
	return tellingAttachment{a}, err
}

func (tellingImage) TakeReport() engine.Report {
	return engine.Report{Reported: map[string]string{"of": "the image"}}
}

func (tellingAttachment) TakeReport() engine.Report {
	return engine.Report{Reported: map[string]string{"of": "the attachment"}}
}

// What the tools report about what they make is in the record of the step.
func TestStepsThatMakeSomethingRecordWhatIsReported(t *testing.T) {
	c := lived(t, several)
	c.Engine = telling{c.Engine}
	out, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, runner.StatusPaused, out.Status)
	told := map[string]string{}
	for _, s := range fold(t, c.Out).Cases[0].Steps {
		if of := s.Reported["of"]; of != "" {
			told[s.Do] = of
		}
	}
	assert.Equal(t, map[string]string{"create": "the image", "convert": "the image", "transfer": "the image",
		"damage": "the image", "attach": "the attachment"}, told)
}

// evicting drops images from the cache of the host, or fails with err, and counts how often.
type evicting struct {
	engine.Engine
	n   *int
	err error
}

type evictingImage struct {
	engine.Container
	of evicting
}

func (e evicting) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := e.Engine.Create(ctx, dir, name, s)
	return evictingImage{c, e}, err
}

func (c evictingImage) Evict(context.Context) error {
	*c.of.n++
	return c.of.err
}

// What is read after a detach comes from the disk, unless the plan wants the cache; where it may not, the step says so.
func TestDetachedImagesLeaveTheCache(t *testing.T) {
	alone := strings.NewReplacer(`"UDRW", `, "", "rounds = 2", "rounds = 1", "baseline = true", "baseline = false")
	for _, k := range []struct {
		cache   string
		err     error
		evicted int
		warned  []string
	}{
		{"buffered", nil, 0, nil}, {"direct", nil, 1, nil},
		{"direct", syscall.EIO, 1, []string{"evicting the container: input/output error"}},
	} {
		c, n := lived(t, alone.Replace(compacting)+"[io]\ncache = \""+k.cache+"\"\n"), 0
		c.Engine = evicting{c.Engine, &n, k.err}
		_, err := runner.Run(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, k.evicted, n, k.cache)
		var warned []string
		for _, s := range fold(t, c.Out).Cases[0].Steps {
			for _, w := range s.Warnings {
				if s.Do == "detach" {
					warned = append(warned, w.Text)
				}
			}
		}
		assert.Equal(t, k.warned, warned, k.cache)
	}
}

// statuses keeps all that is told of the progress.
type statuses struct {
	heard
	all []runner.Status
}

func (s *statuses) Status(one runner.Status) { s.all = append(s.all, one) }

// What remains is forecast from the work and the waiting that are done: both grow, from nothing to all that there is.
func TestProgressTellsWorkAndWaiting(t *testing.T) {
	c, seen := config(t, small), &statuses{}
	c.Progress = seen
	_, err := runner.Run(t.Context(), c)
	require.NoError(t, err)
	first, last := seen.all[0], seen.all[len(seen.all)-1]
	assert.Zero(t, first.WorkNS)
	assert.Zero(t, first.WaitedNS)
	for i, s := range seen.all[1:] {
		assert.GreaterOrEqual(t, s.WorkNS, seen.all[i].WorkNS)
		assert.GreaterOrEqual(t, s.WaitedNS, seen.all[i].WaitedNS)
	}
	assert.Greater(t, last.WorkNS, last.OfWorkNS*9/10, "before the last step")
	assert.LessOrEqual(t, last.WorkNS, last.OfWorkNS)
	assert.Equal(t, int64(4*10*time.Minute), last.OfWaitNS, "two cases wait in each of two rounds")
	assert.Equal(t, last.OfWaitNS, last.WaitedNS)
}
