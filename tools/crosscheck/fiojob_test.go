package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

var fioSample = fioJob{Dir: "/a:b", Op: "write", Size: 2 << 20, Workers: 2, Files: 3, Direct: true, Seed: 7}

func TestFioJobText(t *testing.T) {
	text := fioSample.text()
	for _, line := range []string{"ioengine=psync", "rw=write", "direct=1", "bs=2097152", "filesize=2097152", "size=6291456", "nrfiles=3", "fsync=1",
		"fallocate=none", "create_on_open=1", "refill_buffers=0", "scramble_buffers=0", "file_service_type=sequential", "randseed=7", `directory=/a\:b`,
		"[worker0]", "filename=0-000:0-001:0-002", "[worker1]", "filename=1-000:1-001:1-002"} {
		assert.Contains(t, strings.Split(text, "\n"), line)
	}
	read := fioSample
	read.Op, read.Direct = "read", false
	text = read.text()
	assert.Contains(t, text, "rw=rw\nrwmixread=100\ndirect=0\n")
	assert.NotContains(t, text, "fsync")
}

func TestFioJobIsTheSameWork(t *testing.T) {
	b := &fioBench{sizes: "2 MiB, 100 MiB", workers: "2", megabytes: 10, buffered: true}
	require.NoError(t, b.parseJobs())
	require.Len(t, b.jobs, 2)
	j := b.jobs[0]
	assert.Equal(t, fioJob{Size: 2 << 20, Workers: 2, Files: 3}, j)
	assert.Equal(t, 2, b.jobs[1].Files, "fio times no flush of a single file")
	items := j.items()
	require.Len(t, items, 6)
	assert.Equal(t, []string{"0-000", "1-000", "0-001"}, []string{items[0].Name, items[1].Name, items[2].Name})
	assert.EqualValues(t, 6*2<<20, workload.Total(items))
	assert.Equal(t, workload.CacheBuffered, j.options().Cache)
	j.Op = "read"
	assert.Equal(t, workload.CacheCold, j.options().Cache, "fio drops the pages, too")
}

// answer is fio's output for the sample with values filled in.
func answer(errno int, bytes, calls, syncs int64, sync float64) string {
	one := fmt.Sprintf(`{"jobname":"worker0","error":%d,"usr_cpu":2.5,"sys_cpu":7.5,"job_runtime":200,
		"write":{"io_bytes":%d,"total_ios":%d,"clat_ns":{"mean":1000000,"N":%d}},"read":{"io_bytes":0,"clat_ns":{"mean":0,"N":0}},
		"sync":{"lat_ns":{"mean":%g,"N":%d}}}`, errno, bytes, calls, calls, sync, syncs)
	slower := strings.ReplaceAll(one, `"mean":1000000,`, `"mean":1500000.5,`)
	return "note: both\nfio: something\n{\"fio version\":\"fio-3.33\",\"jobs\":[" + one + "," + slower + "]}\n"
}

func TestParseFioOutput(t *testing.T) {
	for _, timed := range []int64{2, 3} { // fio leaves out the flush after the last call
		l, err := parseFioOutput([]byte(answer(0, 6<<20, 3, timed, 500_000)), fioSample)
		require.NoError(t, err)
		assert.EqualValues(t, 12<<20, l.bytes)
		assert.InDelta(t, (3*1500000.5+3*500000)/1e9, l.seconds, 1e-12, "the busiest worker's")
		assert.InDelta(t, 2*0.020, l.cpu, 1e-12)
	}
	for name, text := range map[string]string{
		"nothing":     "",
		"no JSON":     "fio: command not understood",
		"cut off":     answer(0, 6<<20, 3, 2, 1)[:200],
		"error":       answer(28, 6<<20, 3, 2, 1),
		"short":       answer(0, 5<<20, 3, 2, 1),
		"calls":       answer(0, 6<<20, 2, 2, 1),
		"no flush":    answer(0, 6<<20, 3, 0, 0),
		"flushes":     answer(0, 6<<20, 3, 6, 1),
		"negative":    answer(0, 6<<20, 3, 2, -1e12),
		"one job":     `{"jobs":[{}]}`,
		"other types": `{"jobs":[3,4]}`,
	} {
		_, err := parseFioOutput([]byte(text), fioSample)
		assert.ErrorIs(t, err, errFio, name)
	}
}

func FuzzParseFioOutput(f *testing.F) {
	f.Add([]byte(answer(0, 6<<20, 3, 2, 1000)))
	f.Add([]byte(`{"jobs":[{"write":{"clat_ns":{"mean":1e300}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseFioOutput(data, fioSample)
		if err == nil && (l.bytes != 12<<20 || !(l.seconds > 0) || !(l.cpu >= 0)) {
			t.Fatalf("%+v", l)
		}
	})
}

// fio itself has to understand the job and answer as is expected.
func TestFioUnderstandsTheJob(t *testing.T) {
	program, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is not installed")
	}
	dir := t.TempDir()
	d, err := hostio.OpenDir(dir)
	require.NoError(t, err)
	defer d.Close()
	b := &fioBench{place: d, program: program}
	j := fioSample
	j.Dir, j.Size, j.Files, j.Direct = dir, 128<<10, 2, false
	for _, op := range []string{"write", "read"} {
		j.Op = op
		l, err := b.runFio(t.Context(), "", j)
		require.NoError(t, err, op)
		assert.EqualValues(t, 4*128<<10, l.bytes)
		assert.Positive(t, l.seconds)
	}
	for _, it := range j.items() {
		fi, err := os.Stat(dir + "/" + it.Name)
		require.NoError(t, err)
		assert.EqualValues(t, j.Size, fi.Size())
	}
}
