package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"dmgbench/internal/bench/workload"
	"dmgbench/internal/system/hostio"
)

// fioJob is one run of fio: workers that each write or read files of one size,
// one after the other, each file in one call.
type fioJob struct {
	dir     string // existing folder
	op      string // write | read
	size    int64  // of a file, bytes
	workers int
	files   int // of each worker
	direct  bool
	flush   bool // each written file, after its last call
	seed    uint64
}

// fioName is the i-th file of a worker.
func fioName(worker, i int) string { return fmt.Sprintf("%d-%03d", worker, i) }

// fioAlign is what fio's buffers start at: with files of whole huge pages
// theirs are made of huge pages, as ours are.
const fioAlign = 2 << 20

// text is the job file. No file is laid out or preallocated beforehand: each is
// made when it is first opened. The buffers are filled once, before the clock,
// and neither refilled nor scrambled. The flush is the one that fio issues
// after every so many calls, which it times, not end_fsync, which it does not.
// Reads are a mix of 100 % reads: for a job that might write, fio touches its
// buffers before the clock, otherwise page by page inside its first call.
func (j fioJob) text() string {
	pattern, direct := j.op, 0
	if pattern == "read" {
		pattern = "rw\nrwmixread=100"
	}
	if j.direct {
		direct = 1
	}
	b := fmt.Appendf(nil, "[global]\nioengine=psync\nthread=1\nclocksource=clock_gettime\nrandrepeat=1\n")
	b = fmt.Appendf(b, "randseed=%d\nrw=%s\ndirect=%d\n", j.seed, pattern, direct)
	b = fmt.Appendf(b, "bs=%d\nfilesize=%d\nsize=%d\nnrfiles=%d\nfile_service_type=sequential\n",
		j.size, j.size, j.size*int64(j.files), j.files)
	b = fmt.Append(b, "fallocate=none\ncreate_on_open=1\nrefill_buffers=0\nscramble_buffers=0\ninvalidate=1\n")
	b = fmt.Appendf(b, "iomem_align=%d\n", fioAlign)
	if j.op == "write" && j.flush {
		b = fmt.Append(b, "fsync=1\n")
	}
	b = fmt.Appendf(b, "directory=%s\n", strings.ReplaceAll(j.dir, ":", `\:`))
	for w := range j.workers {
		names := make([]string, j.files)
		for i := range names {
			names[i] = fioName(w, i)
		}
		b = fmt.Appendf(b, "\n[worker%d]\nfilename=%s\n", w, strings.Join(names, ":"))
	}
	return string(b)
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
func parseFioOutput(data []byte, j fioJob) (load, error) {
	var l load
	at := bytes.IndexByte(data, '{') // notes may precede it
	if at < 0 {
		return l, fmt.Errorf("%w: no JSON in %d bytes", errFio, len(data))
	}
	var out fioOutput
	if err := json.NewDecoder(bytes.NewReader(data[at:])).Decode(&out); err != nil {
		return l, fmt.Errorf("%w: %w", errFio, err)
	}
	if len(out.Jobs) != j.workers {
		return l, fmt.Errorf("%w: %d jobs, want %d", errFio, len(out.Jobs), j.workers)
	}
	for _, job := range out.Jobs {
		side := job.Write
		if j.op == "read" {
			side = job.Read
		}
		files := int64(j.files)
		if job.Error != 0 || side.Bytes != files*j.size || side.Calls != files || side.Latency.N != files {
			return l, fmt.Errorf("%w: job %.40q ended with error %d after %d bytes in %d calls (%d timed), want %d in %d",
				errFio, job.Name, job.Error, side.Bytes, side.Calls, side.Latency.N, files*j.size, files)
		}
		ns := side.Latency.Mean * float64(side.Latency.N)
		if j.op == "write" && j.flush {
			sync := job.Sync.Latency
			if sync.N != files && sync.N != files-1 || sync.N < 1 {
				return l, fmt.Errorf("%w: job %.40q timed %d flushes of %d files", errFio, job.Name, sync.N, files)
			}
			ns += sync.Mean * float64(files)
		}
		if !(ns > 0) || math.IsInf(ns, 0) || !(job.User >= 0 && job.Kernel >= 0 && job.Time >= 0) {
			return l, fmt.Errorf("%w: job %.40q took %v ns and %v + %v %% of %v ms",
				errFio, job.Name, ns, job.User, job.Kernel, job.Time)
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
	for i := range j.files {
		for w := range j.workers {
			items = append(items, workload.Item{Name: fioName(w, i), Size: j.size, Batch: 1, Set: 1, Index: len(items)})
		}
	}
	return items
}

// options are the same work for the workload.
func (j fioJob) options(s *fioSetup) workload.Options {
	o := workload.Options{Workers: j.workers, Sync: hostio.SyncNone, Cache: s.cache}
	if j.flush {
		o.Sync = s.sync
	}
	if o.Cache == workload.CacheBuffered && j.op == "read" {
		o.Cache = workload.CacheCold // as invalidate=1
	}
	return o
}
