package folder_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/bench/workload/folder"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/clock"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// BenchmarkOperationsBesideTheirCalls compares the median latency of stat and rename in a tree, in the folder ON, with
// that of the single call on the same names, made beside it (make bench-spans).
func BenchmarkOperationsBesideTheirCalls(b *testing.B) {
	at, err := os.MkdirTemp(os.Getenv("ON"), "spans")
	require.NoError(b, err)
	defer os.RemoveAll(at)
	dir, err := hostio.OpenDir(at)
	require.NoError(b, err)
	defer dir.Close()
	set := plan.FileSet{Name: "tree", Tree: &plan.Tree{Files: 2000, Folders: 100, Depth: 6, Sizes: []units.Bytes{100}}}
	spec := workload.TreeSpec{}
	spec.Tree, spec.Files = workload.NewTree(set, 7, 1)
	operation := func(action, kind string) int64 {
		spec.Action = action
		out, err := workload.RunTree(b.Context(), folder.New(dir, false), &spec, workload.Options{Clock: clock.NewReal(),
			Data: workload.NewData(7, 1, "spans", workload.DataRandom, 0), Sync: hostio.SyncNone,
			Cache: workload.CacheBuffered, Memory: 1 << 30, Workers: 1})
		require.NoError(b, err)
		i := slices.IndexFunc(out.Operations, func(one result.Operations) bool { return one.Kind == kind })
		require.GreaterOrEqual(b, i, 0)
		return out.Operations[i].Latency.Quantile(0.5)
	}
	single := func(call func(dir int, base string) error) int64 {
		var times []int64
		for _, it := range spec.Files {
			fd, err := unix.Open(filepath.Join(at, path.Dir(it.Name)), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			require.NoError(b, err)
			start := time.Now()
			err = call(fd, path.Base(it.Name))
			times = append(times, int64(time.Since(start)))
			require.NoError(b, err)
			require.NoError(b, unix.Close(fd))
		}
		slices.Sort(times)
		return times[len(times)/2]
	}
	operation("create", "create")
	for _, one := range []struct {
		action, kind string
		call         func(dir int, base string) error
	}{
		{"list", "stat", func(dir int, base string) error {
			return unix.Fstatat(dir, base, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW)
		}},
		{"rename", "rename", func(dir int, base string) error {
			return unix.Renameat(dir, base, dir, base[:len(base)-3]+"one")
		}},
	} {
		b.Run(one.kind, func(b *testing.B) {
			for range b.N {
				ours, alone := operation(one.action, one.kind), single(one.call)
				b.ReportMetric(float64(ours), "ns/"+one.kind)
				b.ReportMetric(float64(alone), "ns/call")
				b.ReportMetric(float64(ours)/float64(alone), "times")
				for _, it := range spec.Files { // as before
					name := filepath.Join(at, it.Name)
					_ = os.Rename(name[:len(name)-3]+"one", name)
				}
			}
		})
	}
}
