package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/template"

	"dmgbench/internal/bench/workload"
)

// fioJob is one run of fio: workers that each write or read files of one size,
// one after the other, each file in one call. Each written file is flushed
// after it.
type fioJob struct {
	Dir     string // existing folder
	Op      string // write | read
	Size    int64  // of a file, bytes
	Workers int
	Files   int // of each worker
	Direct  bool
	Seed    uint64
}

// fioName is the i-th file of a worker.
func fioName(worker, i int) string { return fmt.Sprintf("%d-%03d", worker, i) }

// fioText is the job file. No file is laid out or preallocated beforehand: each
// is made when it is first opened. The buffers are filled once, before the
// clock, and neither refilled nor scrambled; they start at 2 MiB, so that with
// files of whole huge pages they are made of such, as ours are. The flush is
// the one that fio issues after every so many calls, which it times, not
// end_fsync, which it does not. Reads are a mix of 100 % reads: for a job that
// might write, fio touches its buffers before the clock, otherwise page by page
// inside its first call.
var fioText = template.Must(template.New("fio").Funcs(template.FuncMap{"name": fioName}).Parse(`[global]
ioengine=psync
thread=1
clocksource=clock_gettime
randrepeat=1
randseed={{.Seed}}
{{if eq .Op "read"}}rw=rw
rwmixread=100
{{else}}rw=write
fsync=1
{{end}}direct={{if .Direct}}1{{else}}0{{end}}
bs={{.Size}}
filesize={{.Size}}
size={{.Total}}
nrfiles={{.Files}}
file_service_type=sequential
fallocate=none
create_on_open=1
refill_buffers=0
scramble_buffers=0
invalidate=1
iomem_align=2097152
directory={{.Directory}}
{{range $worker := .Workers}}
[worker{{$worker}}]
filename={{range $i := $.Files}}{{if $i}}:{{end}}{{name $worker $i}}{{end}}
{{end}}`))

// Total is what one worker transfers, in bytes.
func (j fioJob) Total() int64 { return j.Size * int64(j.Files) }

// name is the name of the benchmark: benchstat makes a row of each.
func (j fioJob) name() string {
	op := map[string]string{"write": "Write", "read": "Read"}[j.Op]
	return fmt.Sprintf("%s/size=%dKiB/workers=%d", op, j.Size>>10, j.Workers)
}

// Directory is the folder as fio takes it.
func (j fioJob) Directory() string { return strings.ReplaceAll(j.Dir, ":", `\:`) }

// text is the job file of the job.
func (j fioJob) text() string {
	var b strings.Builder
	if err := fioText.Execute(&b, j); err != nil {
		panic(err) // the template fits the type
	}
	return b.String()
}

// fioLatency is a distribution of durations in nanoseconds, as fio summarises
// it.
type fioLatency struct {
	Mean float64 `json:"mean"`
	N    int64   `json:"N"`
}

// fioSide is one direction of a job.
type fioSide struct {
	Bytes   int64      `json:"io_bytes"`
	Calls   int64      `json:"total_ios"`
	Latency fioLatency `json:"clat_ns"`
}

// fioOutput is the part of fio's JSON that is used (format version of fio 3.x).
type fioOutput struct {
	Jobs []struct {
		Name   string  `json:"jobname"`
		Error  int     `json:"error"`
		User   float64 `json:"usr_cpu"` // per cent of Time
		Kernel float64 `json:"sys_cpu"`
		Time   float64 `json:"job_runtime"` // ms
		Read   fioSide `json:"read"`
		Write  fioSide `json:"write"`
		Sync   struct {
			Latency fioLatency `json:"lat_ns"`
		} `json:"sync"`
	} `json:"jobs"`
}

var errFio = errors.New("unexpected output of fio")

// parseFioOutput reads the JSON that fio printed for the job: all bytes, and
// the time that the busiest worker spent in its calls and flushes, by the
// latencies that fio took in nanoseconds. Its own run times are whole
// milliseconds, and include making the files. Processor time is that of the
// jobs' threads while they run, which fio has to the millisecond, rounded down.
// fio times no flush after the last call of a job; it is counted at the mean of
// the others.
func parseFioOutput(data []byte, j fioJob) (l load, err error) {
	var out fioOutput
	at := max(bytes.IndexByte(data, '{'), 0) // notes may precede it
	if err := json.NewDecoder(bytes.NewReader(data[at:])).Decode(&out); err != nil {
		return l, fmt.Errorf("%w: %w", errFio, err)
	}
	if len(out.Jobs) != j.Workers {
		return l, fmt.Errorf("%w: %d jobs, want %d", errFio, len(out.Jobs), j.Workers)
	}
	for _, job := range out.Jobs {
		side, files := job.Read, int64(j.Files)
		var flush float64 // ns
		isFlushed := true
		if j.Op == "write" {
			sync := job.Sync.Latency
			side, flush = job.Write, sync.Mean*float64(files)
			isFlushed = sync.N >= 1 && (sync.N == files || sync.N == files-1)
		}
		ns := side.Latency.Mean*float64(side.Latency.N) + flush
		isWhole := job.Error == 0 && side.Bytes == j.Total() && side.Calls == files && side.Latency.N == files
		isTimed := ns > 0 && !math.IsInf(ns, 0) && job.User >= 0 && job.Kernel >= 0 && job.Time >= 0
		if !isWhole || !isFlushed || !isTimed {
			return l, fmt.Errorf("%w: want %d files of %d bytes, timed and flushed: %+v", errFio, files, j.Size, job)
		}
		l.cpu += (job.User + job.Kernel) / 100 * job.Time / 1e3
		l.bytes += side.Bytes
		l.seconds = max(l.seconds, ns/1e9)
	}
	return l, nil
}

// items are the same files for the workload, in the order in which the workers
// take them.
func (j fioJob) items() []workload.Item {
	var items []workload.Item
	for i := range j.Files {
		for w := range j.Workers {
			items = append(items, workload.Item{Name: fioName(w, i), Size: j.Size, Batch: 1, Set: 1, Index: len(items)})
		}
	}
	return items
}
