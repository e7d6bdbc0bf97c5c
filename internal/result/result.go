// Package result defines the records of the journal, the result that is folded
// from them, and the run folder that contains both.
//
// A record is written once, after the event that it describes, and never
// changed. The package neither measures nor draws conclusions: the analysis
// adds summaries and verdicts to a [Result]. Times are integer nanoseconds,
// sizes integer bytes, rates bytes per second. Changes of the format are
// additive.
//
// # From event to result
//
// The runner appends a [Record] for every event to the journal of a [RunDir].
// Each kind of record is one row of the table recordKinds: how it is checked,
// and how [Replay] adds it to the [State] of the run, which resume needs.
// [Fold] makes the [Result] from that state. Package result/export writes
// results in formats of other programs.
//
// # Untrusted input
//
// A journal or result may come from other people. Names in it are plain file
// names ([SafeName]), or the journal is rejected. Files are reached only
// through the open run folder, never through links. A folder is resumed only if
// its marker, its journal and its owner agree. Host names, users and absolute
// paths are recorded only with
// --identify.
package result

import (
	"slices"
	"time"
)

// SchemaVersion is the version of result.json and journal.jsonl.
const SchemaVersion = 1

// Result is result.json.
type Result struct {
	Schema     int         `json:"schema"`
	Tool       Tool        `json:"tool"`
	Run        string      `json:"run"`    // run id
	Status     string      `json:"status"` // unfinished until the run ended, then done, failed or skipped
	Plan       PlanRef     `json:"plan"`
	Sources    *Sources    `json:"sources,omitempty"` // none in results of older versions and of several runs
	Seed       uint64      `json:"seed"`
	Rounds     int         `json:"rounds"`
	Sessions   []Session   `json:"sessions"`
	Departures []Departure `json:"departures"`
	Warnings   []Warning   `json:"warnings"` // of the run as a whole
	Cases      []Case      `json:"cases"`
	Summaries  []Summary   `json:"summaries"`
	Fits       []Fit       `json:"fits"`
	Relations  []Relation  `json:"relations"`
	Claims     []Claim     `json:"claims"`
	// Tables are those that the plan declares, filled in; none in results of
	// versions before them.
	Tables []Table `json:"tables,omitempty"`
	// Verbs are how often the steps on containers failed, or were tried again; none
	// in results of versions before them.
	Verbs []Verb `json:"verbs,omitempty"`
	// Uses answer which image to take for what, where the plan asks that.
	Uses []Use `json:"uses,omitempty"`
	// Auto is how the number of rounds came about where the plan left it to the
	// run.
	Auto *AutoRounds `json:"auto,omitempty"`
	// Preconditions are what was written before the rounds, where the plan asks
	// for a steady state.
	Preconditions []Precondition `json:"preconditions,omitempty"`
	// Runs are what a pooled result was made of, see [Pool]; none for a single
	// run.
	Runs []PooledRun `json:"runs,omitempty"`
}

// Tool is the program that made the result.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// PlanRef names the plan as executed. Digest is the SHA-256 of its canonical
// form.
type PlanRef struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Digest string `json:"digest"`
}

// Session is an uninterrupted stretch of a run on one boot of one machine.
type Session struct {
	Index    int       `json:"index"`
	Host     Host      `json:"host"`
	Engine   Engine    `json:"engine"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Boot     string    `json:"boot"` // digest that tells two boots apart, nothing more
	// Engines are all that took part when there was more than one, the native
	// baseline's included.
	Engines []Engine `json:"engines,omitempty"`
	End     string   `json:"end"`              // clean | interrupted | paused | lost (no end was written)
	Reason  string   `json:"reason,omitempty"` // why it ended, unless clean
	Run     string   `json:"run,omitempty"`    // which run it belongs to, in a pooled result
	// RetryFailed is set where the session measured failed case-rounds again.
	RetryFailed bool `json:"retry_failed,omitempty"`
}

// Engine names what made and attached the images.
type Engine struct {
	Name    string `json:"name"`   // hdiutil | inprocess | simulated
	Vendor  string `json:"vendor"` // Apple | dmgbench
	Version string `json:"version"`
	Title   string `json:"title"` // as output names it: "in-process", "hdiutil (Apple, macOS 26.4)"
	Why     string `json:"why"`   // why this one was picked
}

// Host is what the machine is; facts that could not be had are empty or zero.
type Host struct {
	OS          string   `json:"os"`
	OSVersion   string   `json:"os_version"`
	OSBuild     string   `json:"os_build"`
	Kernel      string   `json:"kernel"`
	Arch        string   `json:"arch"`
	Model       string   `json:"model"`
	CPU         string   `json:"cpu"`
	Cores       []Cores  `json:"cores"`
	CPUs        int      `json:"cpus"` // usable by this process
	Memory      int64    `json:"memory"`
	CPUQuota    float64  `json:"cpu_quota"` // cores allowed by a control group, 0 = no limit
	MemoryLimit int64    `json:"memory_limit"`
	Virtual     string   `json:"virtual"` // hypervisor or container kind, "" = none seen
	Power       string   `json:"power"`   // ac | battery | ""
	LowPower    bool     `json:"low_power"`
	Thermal     string   `json:"thermal"`
	Busy        []string `json:"busy"` // Spotlight, Time Machine, load …
	Disks       []Disk   `json:"disks"`
	// Translated is set where the program runs by an emulation of another
	// processor (Rosetta).
	Translated     bool   `json:"translated,omitempty"`
	MemoryPressure string `json:"memory_pressure,omitempty"` // normal | warning | critical | ""
	SwapUsed       int64  `json:"swap_used,omitempty"`
	FileVault      string `json:"filevault,omitempty"` // of the system's volume: on | off | ""
	// Versions of what serves images on a Mac: APFS, and the frameworks of hdiutil
	// and of `diskutil image`.
	APFS        string `json:"apfs_version,omitempty"`
	DiskImages  string `json:"disk_images_version,omitempty"`
	DiskImages2 string `json:"disk_images2_version,omitempty"`
	Name        string `json:"name,omitempty"` // DMGBENCH_HOST_NAME, or with --identify the host name
	User        string `json:"user,omitempty"` // only with --identify
}

// Cores is one level of processors.
type Cores struct {
	Level string `json:"level"` // performance | efficiency | ""
	Count int    `json:"count"`
}

// Disk is the disk behind a place, a folder in which a run puts images.
type Disk struct {
	Place      string `json:"place"`
	Filesystem string `json:"filesystem"`
	Device     string `json:"device"` // model, not a path
	Bus        string `json:"bus"`
	Medium     string `json:"medium"` // ssd | hdd | memory | network | unknown
	Encrypted  string `json:"encrypted"`
	Compressed bool   `json:"compressed,omitempty"` // by the file system, as its mount options ask for it
	Free       int64  `json:"free"`
	Total      int64  `json:"total"`
	Location   string `json:"location,omitempty"`  // internal | external | ""
	Indexed    string `json:"indexed,omitempty"`   // by Spotlight: on | off | ""
	Snapshots  int    `json:"snapshots,omitempty"` // local ones of Time Machine that were seen
	// Tool serves the place, by its own words about its version, where the plan
	// names one. With Backing, sizes of native folders at the place are those of
	// the folder in which it keeps its files.
	Tool    string `json:"tool,omitempty"`
	Backing bool   `json:"backing,omitempty"`
	Path    string `json:"path,omitempty"` // only with --identify
}

// Departure is a way in which the run differs from the published benchmark.
type Departure struct {
	// Kind is filesystem, engine, scale, sets, rounds, machine, os, choice,
	// codec, input, format, …
	Kind  string   `json:"kind"`
	Text  string   `json:"text"`
	Cases []string `json:"cases,omitempty"` // none: all
}

// Status of a case and of a case-round.
const (
	Done      = "done"
	Skipped   = "skipped"
	Failed    = "failed"
	Discarded = "discarded"
)

// Unfinished is the status of a run that has not ended; its other statuses are
// Done (skipped cases included), Failed (a case failed or was discarded) and
// Skipped (it was not measured).
const Unfinished = "unfinished"

// Case is one cell of the matrix with everything that was done to it, over all
// rounds.
type Case struct {
	ID       string      `json:"id"`
	Keys     [][2]string `json:"keys"`
	Baseline bool        `json:"baseline"`
	Target   Target      `json:"target"`
	Status   string      `json:"status"`
	Reason   string      `json:"reason"`
	Steps    []Step      `json:"steps"`
	// Rounds have for each round that was started whether its steps count: only
	// those of a round that is done do.
	Rounds   []CaseRound `json:"rounds"`
	Warnings []Warning   `json:"warnings,omitempty"`
}

// CaseRound is how one round of a case ended.
type CaseRound struct {
	Round  int    `json:"round"` // from 1
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Counts reports whether the steps of a round count: it was measured to its
// end.
func (c *Case) Counts(round int) bool {
	return slices.ContainsFunc(c.Rounds, func(r CaseRound) bool { return r.Round == round && r.Status == Done })
}

// Target is what is measured.
type Target struct {
	Kind         string `json:"kind"` // image | directory
	Place        string `json:"place"`
	Format       string `json:"format"`
	Encryption   string `json:"encryption"`
	Filesystem   string `json:"filesystem"`
	Size         int64  `json:"size"`
	BandSize     int64  `json:"band_size"`      // asked, 0 = default
	BandSizeUsed int64  `json:"band_size_used"` // found
	Backend      string `json:"backend"`
	ServedBy     string `json:"served_by,omitempty"`
	Mount        string `json:"mount,omitempty"`  // private | finder
	Owners       string `json:"owners,omitempty"` // ignored | kept | ""
}

// Step is one executed step.
type Step struct {
	Index      int               `json:"index"` // position in the case's protocol, repeats unrolled
	Do         string            `json:"do"`
	Phase      string            `json:"phase"`
	Op         string            `json:"op"`    // quantity group: write | read | stream | "" …
	Round      int               `json:"round"` // from 1
	Cycle      int               `json:"cycle"` // from 1 inside a repeat, else 0
	Session    int               `json:"session"`
	StartNS    int64             `json:"start_ns"`
	DurationNS int64             `json:"duration_ns"`
	RetryNS    int64             `json:"retry_ns,omitempty"` // failed tries and pauses between tries, not in DurationNS
	Retries    int               `json:"retries,omitempty"`  // failed tries
	Error      string            `json:"error"`
	Expect     string            `json:"expect"` // ok | fail
	Samples    []Sample          `json:"samples,omitempty"`
	Span       *Span             `json:"span,omitempty"`
	Disk       *DiskUse          `json:"disk,omitempty"`
	Made       *DiskUse          `json:"made,omitempty"` // what the container that the step made occupies
	Reported   map[string]string `json:"reported,omitempty"`
	Cache      *Achieved         `json:"cache,omitempty"`
	Sync       *Achieved         `json:"sync,omitempty"`
	QoS        *Achieved         `json:"qos,omitempty"`
	Device     *DeviceBytes      `json:"device_bytes,omitempty"`
	DeviceWhy  string            `json:"device_bytes_unknown,omitempty"` // why file work has no device bytes
	Workers    int               `json:"workers,omitempty"`
	Flushes    int64             `json:"flushes,omitempty"`     // calls that flushed files or folders of the host
	BytesFreed int64             `json:"bytes_freed,omitempty"` // reclaimed by compact or trim
	Written    int64             `json:"written,omitempty"`     // bytes, of steps without samples and operations
	Stream     *Stream           `json:"stream,omitempty"`
	// Operations are those of tree and random steps by kind, in the order of the
	// kinds' first calls; OperationsSpan is when they ran.
	Operations     []Operations    `json:"operations,omitempty"`
	OperationsSpan *OperationsSpan `json:"operations_span,omitempty"`
	// AttachNS is how long the last attach of the container took, of steps that
	// copy files out of it.
	AttachNS int64     `json:"attach_ns,omitempty"`
	Changes  *Changes  `json:"changes,omitempty"`  // of manifest steps after the first
	Findings []string  `json:"findings,omitempty"` // of check and verify
	Recovery *Recovery `json:"recovery,omitempty"`
	Live     int64     `json:"live"` // bytes of files on the volume after the step
	Warnings []Warning `json:"warnings,omitempty"`
	// FileWarnings are what the files alone show. The analysis adds them; nil: not
	// looked for, or none.
	FileWarnings []Warning `json:"file_warnings,omitempty"`
}

// Recovery is what a recover step found of a container and its files.
type Recovery struct {
	// Noticed is what reported the damage first: attach, check, repair, or read of
	// a missing or unreadable file; "" if none did, whether or not files are
	// damaged.
	Noticed string `json:"noticed,omitempty"`
	Files   int    `json:"files"`   // that have to be there as they were written
	Lost    int    `json:"lost"`    // of these, missing or unreadable
	Damaged int    `json:"damaged"` // of these, with another size or other bytes
	// InFlight is the file that was being written when the container was damaged,
	// and what became of it. It is not among Files.
	InFlight string         `json:"in_flight,omitempty"`
	Parts    []RecoveryPart `json:"parts"` // in order
}

// RecoveryPart is one action of a recover step.
type RecoveryPart struct {
	Name       string `json:"name"` // attach | check | repair | attach again
	DurationNS int64  `json:"duration_ns"`
	Error      string `json:"error,omitempty"` // findings are those of the step
}

// Span is the timed stretch of a step with workers: from the gate, the moment when
// all workers are released, to the first and to the last worker that is done, as
// times since the start of the session.
type Span struct {
	GateNS      int64 `json:"gate_ns"`
	FirstDoneNS int64 `json:"first_done_ns"`
	LastDoneNS  int64 `json:"last_done_ns"`
	Bytes       int64 `json:"bytes"`
	// BusyNS is the sum of the samples' durations; IdleNS the rest of worker
	// time between gate and last done.
	BusyNS int64 `json:"busy_ns"`
	IdleNS int64 `json:"idle_ns"`
	// Waves is how often the gate opened. Between two waves files are closed,
	// opened and their data made: that time, PausedNS, is cut out, so that gate
	// to last done is the sum of the waves.
	Waves    int   `json:"waves"`
	PausedNS int64 `json:"paused_ns"`
}

// Sample is one timed file.
type Sample struct {
	File       string `json:"file"`
	Bytes      int64  `json:"bytes"`
	StartNS    int64  `json:"start_ns"`
	DurationNS int64  `json:"duration_ns"`
	Worker     int    `json:"worker"`
	Order      int    `json:"order"`
	Set        int    `json:"set"`
	Stopped    bool   `json:"stopped,omitempty"`
}

// IsTimed reports whether the file counts: figures are made from such files only.
func (f *Sample) IsTimed() bool { return f.Bytes > 0 && f.DurationNS > 0 && !f.Stopped }

// IsSerial reports whether the files were transferred one after the other, so
// that the step's span is made of their times.
func (s *Step) IsSerial() bool { return s.Workers < 2 || s.Error == "" && len(s.Samples) == 1 }

// LeaveOut marks the i-th file as one during which the process was stopped. The
// span of a serial step loses the file, whose time becomes a pause.
func (s *Step) LeaveOut(i int) {
	f, p := &s.Samples[i], s.Span
	f.Stopped = true
	if !s.IsSerial() {
		return
	}
	p.Bytes, p.BusyNS, p.PausedNS = p.Bytes-f.Bytes, p.BusyNS-f.DurationNS, p.PausedNS+f.DurationNS
	p.FirstDoneNS, p.LastDoneNS = p.FirstDoneNS-f.DurationNS, p.LastDoneNS-f.DurationNS
}

// LacksFiles reports whether the span has lost files, so that its time is not
// that of the whole step.
func (s *Step) LacksFiles() bool {
	return s.IsSerial() && slices.ContainsFunc(s.Samples, func(f Sample) bool { return f.Stopped })
}

// DiskUse has the sizes of an image on the host, and free space, in bytes.
type DiskUse struct {
	Attached   bool  `json:"attached"`
	Allocated  int64 `json:"allocated"`
	Apparent   int64 `json:"apparent"`
	Sparse     bool  `json:"sparse"`
	Bands      int   `json:"bands"`
	BandsFull  int   `json:"bands_full"`
	VolumeFree int64 `json:"volume_free"` // -1: not known while detached
	HostFree   int64 `json:"host_free"`
}

// Achieved pairs a requested mode with the one that took effect.
type Achieved struct {
	Asked    string `json:"asked"`
	Achieved string `json:"achieved"`
}

// DeviceBytes is what the disk under the place really moved during a step.
type DeviceBytes struct {
	Read    int64 `json:"read"`
	Written int64 `json:"written"`
}

// Changes are what has changed in the files of a container on the host from one
// manifest to the next, in bytes of the new files: all those of a part of 4 KiB,
// 64 KiB, 1 MiB or of the whole file count if one of them has changed. This is
// what a program has to copy that compares or deduplicates such parts.
type Changes struct {
	Changed    int   `json:"changed"` // files
	Added      int   `json:"added"`
	Removed    int   `json:"removed"`
	Bytes4K    int64 `json:"bytes_4k"`
	Bytes64K   int64 `json:"bytes_64k"`
	Bytes1M    int64 `json:"bytes_1m"`
	BytesWhole int64 `json:"bytes_whole"`
	Edited     int64 `json:"edited"` // bytes that steps wrote to files in between
}

// Stream is the outcome of a stream step.
type Stream struct {
	Codec   string  `json:"codec"`
	Level   int     `json:"level"`
	Threads int     `json:"threads"`
	In      int64   `json:"in"`
	Out     int64   `json:"out"`
	Ratio   float64 `json:"ratio"`  // original / compressed
	Saving  float64 `json:"saving"` // share saved
}
