package runner_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

// model follows one case in one round from its plan alone and holds every
// executed step against what had to happen.
type model struct {
	t    *testing.T
	p    *plan.Plan
	c    plan.Case
	live map[string]int64 // files of write steps that are on the volume
	last []string         // of the newest batch
	sets map[string]int
	made map[string]int64 // files of copy and stream steps
	// lost is set once files were deleted by lot: then only the bytes of live are known.
	lost bool
	wrote,
	read int64
	before map[string]int64 // live when the parallel block began that the step is in
}

func (m *model) set(st plan.Step) *plan.FileSet {
	name := st.Files
	if name == "" {
		name = m.c.Settings.Files
	}
	i := slices.IndexFunc(m.p.Files, func(f plan.FileSet) bool { return f.Name == name })
	require.GreaterOrEqual(m.t, i, 0, "file set %q", name)
	return &m.p.Files[i]
}

// step checks one executed step.
func (m *model) step(st cycled, got result.Step) {
	t, what := m.t, m.c.ID+": "+strings.TrimSpace(st.Do+" "+st.Phase)
	require.Equal(t, []string{st.Do, st.Phase}, []string{got.Do, got.Phase}, what)
	assert.Equal(t, st.Cycle, got.Cycle, what)
	assert.GreaterOrEqual(t, got.StartNS, int64(0), what)
	if st.Do != "manifest" { // outside every clock
		assert.Positive(t, got.DurationNS, what)
	}
	if st.Do == "settle" {
		assert.GreaterOrEqual(t, got.DurationNS, int64(st.AtLeast.Std()), what)
	}
	if st.Expect == "fail" {
		assert.NotEmpty(t, got.Error, what)
		assert.NotContains(t, got.Error, "in use", what)
		return
	}
	assert.Empty(t, got.Error, what)
	if st.Do != "recover" { // of damage
		assert.Empty(t, got.Findings, what)
	}
	if st.Do == "convert" || st.Do == "transfer" {
		require.NotNil(t, got.Made, what)
		assert.Positive(t, got.Made.Allocated, what)
	}
	if st.On != "" {
		if st.Do == "read" { // what the dry run says is compared with the sum
			m.read += sum(sizes(got.Samples))
		}
		return
	}
	switch st.Do {
	case "write":
		m.write(st.Step, got, what)
	case "read":
		m.reads(st.Step, got, what)
	case "delete":
		m.delete(st.Step, got, what)
	case "measure":
		require.NotNil(t, got.Disk, what)
		assert.GreaterOrEqual(t, got.Disk.Allocated, int64(0), what)
	case "stream":
		require.NotNil(t, got.Stream, what)
		assert.Positive(t, got.Stream.Out, what)
		assert.Equal(t, int64(m.p.Inputs[0].Size), got.Stream.In, what)
		m.made[st.To] = got.Stream.Out
	case "copy":
		require.Len(t, got.Samples, 1, what)
		assert.Equal(t, int64(m.p.Inputs[0].Size), got.Samples[0].Bytes, what)
		m.made[st.To] = got.Samples[0].Bytes
	case "parallel":
		m.before = m.live
	}
}

// write wants exactly the drawn sizes, each timed.
func (m *model) write(st plan.Step, got result.Step, what string) {
	var want, have []int64
	for _, sizes := range m.set(st).Draw(m.p.Run.Seed) {
		for _, size := range sizes {
			want = append(want, int64(size))
		}
	}
	live := map[string]int64{}
	for name, size := range m.live {
		live[name] = size
	}
	m.last, m.sets = nil, map[string]int{}
	for _, s := range got.Samples {
		m.sets[s.File] = s.Set
		have = append(have, s.Bytes)
		assert.NotContains(m.t, live, s.File, what)
		assert.Positive(m.t, s.DurationNS, what)
		live[s.File] = s.Bytes
		m.last = append(m.last, s.File)
		m.wrote += s.Bytes
	}
	m.live = live
	slices.Sort(want)
	slices.Sort(have)
	require.Equal(m.t, want, have, what)
	require.NotNil(m.t, got.Span, what)
	assert.Equal(m.t, sum(have), got.Span.Bytes, what)
	assert.Positive(m.t, got.Span.LastDoneNS-got.Span.GateNS, what)
}

// reads wants every file of the batch once, in its full length.
func (m *model) reads(st plan.Step, got result.Step, what string) {
	live := m.live
	if m.before != nil {
		live, m.before = m.before, nil
	}
	seen := map[string]bool{}
	for _, s := range got.Samples {
		require.Contains(m.t, live, s.File, what)
		assert.Equal(m.t, live[s.File], s.Bytes, what)
		assert.False(m.t, seen[s.File], what)
		assert.Positive(m.t, s.DurationNS, what)
		seen[s.File] = true
		m.read += s.Bytes
	}
	if m.lost {
		assert.NotEmpty(m.t, got.Samples, what)
		return
	}
	want := len(live)
	if st.Batch != "all" {
		want = 0
		for _, name := range m.last {
			if _, ok := live[name]; ok {
				want++
			}
		}
	}
	assert.Len(m.t, got.Samples, want, what)
}

// delete takes the files away that the step names, as far as that is no matter of lot.
func (m *model) delete(st plan.Step, got result.Step, what string) {
	left := map[string]int64{}
	switch {
	case st.All && st.Batch != "last":
		clear(m.made)
	case st.All:
	case st.LastSets > 0:
		top := slices.Max(slices.Collect(maps.Values(m.sets)))
		for name, size := range m.live {
			if m.sets[name] <= top-st.LastSets { // of older batches the set is 0
				left[name] = size
			}
		}
		assert.NotEmpty(m.t, left, what)
	case st.Largest > 0:
		gone := slices.Clone(m.last)
		slices.SortStableFunc(gone, func(a, b string) int { return int(m.live[b] - m.live[a]) })
		for name, size := range m.live {
			if !slices.Contains(gone[:st.Largest], name) {
				left[name] = size
			}
		}
	default:
		left, m.lost = m.live, true
	}
	m.live = left
	m.lost = m.lost && !st.All
	if m.lost {
		assert.LessOrEqual(m.t, got.Live, total(left)+total(m.made), what)
		assert.Positive(m.t, got.Live, what)
		return
	}
	assert.Equal(m.t, total(left)+total(m.made), got.Live, what)
}

func sizes(samples []result.Sample) (list []int64) {
	for _, s := range samples {
		list = append(list, s.Bytes)
	}
	return list
}

func total(files map[string]int64) (n int64) {
	for _, size := range files {
		n += size
	}
	return n
}

func sum(list []int64) (n int64) {
	for _, x := range list {
		n += x
	}
	return n
}
