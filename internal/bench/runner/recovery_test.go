package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/bench/runner"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// damaging has two rounds of damage by a kind, on a copy with the name hurt.
func damaging(format, how string) string {
	return fmt.Sprintf(`
schema = 1
title = "Damaged"
[image]
format = "%s"
filesystem = "exFAT"
size = "16 MB"
band_size = "1 MiB"
[io]
cache = "buffered"
[files.few]
sizes = ["100 kB", "300 kB"]
sets = 5
[run]
rounds = 2
baseline = false
canary = false
[[protocol]]
steps = [
  { do = "create" },
  { do = "attach" },
  { do = "write", phase = "new" },
  { do = "detach" },
  { do = "damage", as = "hurt", %s },
  { do = "recover", on = "hurt" },
]
`, format, how)
}

// recoveries are the recover steps of a run, by round.
func recoveries(t *testing.T, c runner.Config) (out []result.Step) {
	t.Helper()
	for _, st := range fold(t, c.Out).Cases[0].Steps {
		if st.Do == "recover" {
			require.NotNil(t, st.Recovery)
			out = append(out, st)
		}
	}
	return out
}

// Rounds draw different places, a repeated run the same ones.
func TestPlacesOfDamageAreDrawnFromSeedAndRound(t *testing.T) {
	run := func(seed uint64) []result.Step {
		c := config(t, damaging("UDSB", `kind = "flipped", bytes = 6`))
		c.Plan.Run.Seed, c.Engine = seed, inprocess.New(nil)
		_, err := runner.Run(t.Context(), c)
		require.NoError(t, err)
		return recoveries(t, c)
	}
	first, again, other := run(1), run(1), run(2)
	require.Len(t, first, 2)
	for round, st := range first {
		assert.Positive(t, st.Recovery.Damaged+st.Recovery.Lost)
		assert.NotEmpty(t, st.Findings)
		assert.Equal(t, st.Findings, again[round].Findings)
		assert.Equal(t, st.Recovery.Noticed, again[round].Recovery.Noticed)
		assert.NotEqual(t, st.Findings, other[round].Findings)
	}
	assert.NotEqual(t, first[0].Findings, first[1].Findings)
}

// What was flushed before the kill is there; the file that was being written counts neither way.
func TestKilledWhileFilesAreWritten(t *testing.T) {
	for _, format := range []string{"UDRW", "UDSB"} {
		c := config(t, damaging(format, `kind = "killed"`))
		c.Engine = inprocess.New(nil)
		_, err := runner.Run(t.Context(), c)
		require.NoError(t, err)
		files := map[int]bool{}
		for _, st := range recoveries(t, c) {
			rc := st.Recovery
			assert.Greater(t, rc.Files, 10, "a file was written before it was killed")
			assert.Less(t, rc.Files, 20, "it was killed in the middle")
			assert.Zero(t, rc.Lost+rc.Damaged, "%v", st.Findings)
			assert.Contains(t, rc.InFlight, `file "batch002/`)
			assert.Equal(t, "check", rc.Noticed, "the volume was not unmounted")
			files[rc.Files] = true
		}
		assert.Len(t, files, 2, "rounds are killed at different moments")
		for _, st := range fold(t, c.Out).Cases[0].Steps {
			assert.Equal(t, st.Do == "damage", st.Written > 0, "what it writes counts")
		}
	}
}

// A recovery has the parts that the format allows, and its time is theirs.
func TestRecoveryHasItsParts(t *testing.T) {
	names := func(st result.Step) (out []string) {
		for _, p := range st.Recovery.Parts {
			out = append(out, p.Name)
		}
		return out
	}
	for _, test := range []struct {
		format, how, noticed string
		lost                 int
		parts                []string
	}{
		{"UDRW", `kind = "header"`, "check", 0, []string{"attach", "check", "repair", "attach again"}},
		{"UDRW", `kind = "volume"`, "attach", 0, []string{"attach", "check", "repair", "attach again"}},
		{"UDRW", `kind = "table"`, "attach", 10, []string{"attach", "check", "repair", "attach again"}},
		{"UDSB", `kind = "tail"`, "", 0, []string{"attach", "check", "repair", "attach again"}},
	} {
		c := config(t, damaging(test.format, test.how))
		c.Plan.Run.Rounds, c.Engine = 1, inprocess.New(nil)
		out, err := runner.Run(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, runner.StatusDone, out.Status, test.how)
		st := recoveries(t, c)[0]
		assert.Equal(t, test.parts, names(st), test.how)
		assert.Equal(t, test.noticed, st.Recovery.Noticed, test.how)
		assert.Equal(t, test.lost, st.Recovery.Lost, test.how)
		assert.Equal(t, 10, st.Recovery.Files)
		assert.Empty(t, st.Error, test.how)
		assert.Equal(t, test.lost > 0, strings.Contains(fmt.Sprint(st.Recovery.Parts[len(st.Recovery.Parts)-1]), "partition table"))
	}
}

// ward is an engine whose copies of containers are changed.
type ward struct {
	engine.Engine
	change func(engine.Container) engine.Container
}

func (w ward) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := w.Engine.Create(ctx, dir, name, s)
	return &patient{Container: c, copied: w.change}, err
}

// patient is a container whose methods are replaced where the functions are set.
type patient struct {
	engine.Container
	copied   func(engine.Container) engine.Container
	check    func() (engine.Report, error)
	identity func() error
	attach   func(engine.Attachment) engine.Attachment
}

func (p *patient) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	c, err := p.Container.Transfer(ctx, dir, name)
	return p.copied(c), err
}

func (p *patient) Check(ctx context.Context, o engine.CheckOptions) (engine.Report, error) {
	if p.check != nil {
		return p.check()
	}
	return p.Container.Check(ctx, o)
}

func (p *patient) Identity(ctx context.Context) (string, error) {
	if p.identity != nil {
		return "", p.identity()
	}
	return p.Container.Identity(ctx)
}

func (p *patient) Attach(ctx context.Context, o engine.AttachOptions) (engine.Attachment, error) {
	a, err := p.Container.Attach(ctx, o)
	if err == nil && p.attach != nil {
		a = p.attach(a)
	}
	return a, err
}

// immortal is an attachment that cannot be killed, or fails to be, or whose volume makes no file.
type immortal struct {
	engine.Attachment
	volume workload.Volume
}

func (i immortal) Volume() workload.Volume {
	if i.volume != nil {
		return i.volume
	}
	return i.Attachment.Volume()
}

type unkillable struct{ immortal }

func (unkillable) Kill() error { return errors.New("it fights back") }

type noFiles struct{ workload.Volume }

func (noFiles) Create(string, int64, workload.FileOptions) (workload.File, error) {
	return nil, errors.New("no file today")
}

// What the host prevents fails the case; what cannot be done to the format does not, and notices no damage.
func TestRecoveryDistinguishesDamageFromTheHost(t *testing.T) {
	refuse := func() (engine.Report, error) {
		return engine.Report{}, &engine.UnsupportedError{Engine: "x", What: "checking", Hint: "y"}
	}
	fail := func(err error) func() (engine.Report, error) {
		return func() (engine.Report, error) { return engine.Report{}, fmt.Errorf("checking: %w", err) }
	}
	for name, test := range map[string]struct {
		how    string
		copied func(*patient)
		failed string // reason, "" for a case that is done
	}{
		"nothing":          {`kind = "tail"`, func(*patient) {}, ""},
		"check is refused": {`kind = "tail"`, func(p *patient) { p.check = refuse }, ""},
		"check is busy":    {`kind = "tail"`, func(p *patient) { p.check = fail(syscall.EBUSY) }, "recover: checking: device or"},
		"gone": {`kind = "tail"`, func(p *patient) {
			p.check = func() (engine.Report, error) { return engine.Report{}, errors.New("checking nothing") }
			p.identity = func() error { return engine.ErrGone }
		}, "recover: checking nothing"},
		"disk full": {`kind = "tail"`, func(p *patient) { p.check = fail(syscall.ENOSPC) }, "recover: checking: no space"},
		"locked":    {`kind = "tail"`, func(p *patient) { p.check = fail(syscall.EAGAIN) }, "recover: checking: resource temp"},
		"no killer": {`kind = "killed"`, func(p *patient) {
			p.attach = func(a engine.Attachment) engine.Attachment { return immortal{Attachment: a} }
		}, "damage: killing what serves"},
		"kill fails": {`kind = "killed"`, func(p *patient) {
			p.attach = func(a engine.Attachment) engine.Attachment { return unkillable{immortal{Attachment: a}} }
		}, "damage: it fights back"},
		"no files before the kill": {`kind = "killed"`, func(p *patient) {
			p.attach = func(a engine.Attachment) engine.Attachment {
				return unkillable{immortal{a, noFiles{a.Volume()}}}
			}
		}, "no file today"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, damaging("UDSB", test.how))
			c.Plan.Run.Rounds = 1
			c.Engine = ward{inprocess.New(nil), func(con engine.Container) engine.Container {
				p := &patient{Container: con}
				test.copied(p)
				return p
			}}
			_, err := runner.Run(t.Context(), c)
			require.NoError(t, err)
			r := fold(t, c.Out).Cases[0]
			if test.failed != "" {
				assert.Equal(t, result.Failed, r.Status)
				assert.Contains(t, r.Reason, test.failed)
				return
			}
			require.Equal(t, result.Done, r.Status, r.Reason)
			rc := recoveries(t, c)[0].Recovery
			assert.Empty(t, rc.Noticed)
			assert.Positive(t, rc.Damaged, "silently")
		})
	}
}
