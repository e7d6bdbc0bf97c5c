package enginetest

import (
	"maps"
	"path"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/units"
)

// trees makes a tree, does every action to it, attaches the container again in
// between, and copies it to another container of the engine.
func (r *rig) trees() {
	c, copied := r.create("tree"), r.create("copy")
	set := plan.FileSet{Name: "tree", Tree: &plan.Tree{Files: 60, Folders: 9, Depth: 3, Links: 0.1, Executables: 0.2,
		Sizes: []units.Bytes{1, 700, 5000, 70_000}}}
	spec := workload.TreeSpec{Share: 0.5, Key: workload.Key{Seed: 1, Round: 1, Step: "rewrite"}}
	spec.Tree, spec.Files = workload.NewTree(set, 7, 1)
	links := len(spec.Tree.Links)
	counts := map[string]int64{}
	do := func(v workload.Volume, actions ...string) {
		for _, spec.Action = range actions {
			o := r.work(workload.CacheBuffered)
			o.Workers, o.Sync = 2, "fsync"
			out, err := workload.RunTree(r.ctx, v, &spec, o)
			require.NoError(r.t, err, spec.Action)
			for _, one := range out.Operations {
				counts[one.Kind] += one.Count
				assert.Equal(r.t, one.Count, one.Latency.Count())
			}
			assert.Positive(r.t, out.OperationsSpan.DurationNS)
		}
	}
	r.with(c, func(v workload.Volume) { do(v, "create", "list", "read") })
	if len(spec.Tree.Links) == 0 { // a volume without them
		links = 0
		spec.Tree.Links = nil
	}
	r.with(c, func(v workload.Volume) {
		r.intact(v, spec.Files)
		do(v, "list", "rewrite", "rename", "read")
		r.intact(v, spec.Files)
	})
	a := r.attach(c, engine.AttachOptions{ReadOnly: true})
	r.with(copied, func(v workload.Volume) {
		o := r.work(workload.CacheCold)
		o.Workers = 2
		copying := workload.TreeSpec{Action: "copy", Tree: spec.Tree, Files: spec.Files, To: v}
		out, err := workload.RunTree(r.ctx, a.Volume(), &copying, o)
		require.NoError(r.t, err)
		assert.Equal(r.t, workload.Total(spec.Files), out.Bytes)
		r.intact(v, spec.Files)
		diff, err := workload.CompareCopies(r.ctx, a.Volume(), v, spec.Files, o)
		require.NoError(r.t, err)
		assert.Empty(r.t, diff.Findings)
		for _, l := range spec.Tree.Links {
			names, err := v.List(path.Dir(l.Name))
			require.NoError(r.t, err)
			assert.Contains(r.t, names, path.Base(l.Name), "a link is copied as one")
		}
	})
	r.detach(a)
	r.with(c, func(v workload.Volume) {
		do(v, "delete")
		names, err := v.List(".")
		require.NoError(r.t, err)
		assert.NotContains(r.t, names, workload.BatchFolder(1))
	})
	want := map[string]int64{"mkdir": 10, "create": 60, "list": 20, "stat": 120, "read": 120, "rewrite": 30, "rename": 60,
		"remove": 60 + int64(links), "rmdir": 10}
	if links > 0 {
		maps.Copy(want, map[string]int64{"symlink": int64(links), "chmod": 12})
	}
	assert.Equal(r.t, want, counts)
	assert.Empty(r.t, spec.Files)
}
