// Package fleet is what the programs of a fleet agree on: names, subjects,
// streams, messages, join strings and the archive of a run folder.
//
// A fleet is one account of a NATS server with JetStream, of which the account of
// each machine imports what that machine may use. Control puts a job for
// a machine into the work-queue stream; the machine's own consumer hands it to
// the agent, which measures, stores the run folder in the machine's object store,
// publishes the result, and only then acknowledges the job. A job that is no
// longer in the stream is done or cancelled.
package fleet

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"dmgbench/internal/result"
)

// Limits of what one message may carry, in bytes.
const (
	MaxPlan    = 256 << 10 // the text of a plan
	MaxMessage = 512 << 10 // a message: a plan and its options, or lines of a log
	MaxResult  = 32 << 10  // a result
	MaxStatus  = 64 << 10  // a status: decoded, it takes many times that
)

// machineName is a token of a subject, a name of a consumer and a part of a
// bucket's name.
var machineName = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$`)

// jobID is a token of a subject and the name of a folder.
var jobID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

// CheckMachine returns an error if name cannot be the name of a machine.
func CheckMachine(name string) error {
	if !machineName.MatchString(name) {
		return fmt.Errorf("machine name %q: want 1 to 32 lower-case letters, digits and hyphens", name)
	}
	return nil
}

// CheckJob returns an error if id cannot be the id of a job.
func CheckJob(id string) error {
	if !jobID.MatchString(id) {
		return fmt.Errorf("job %q: want 1 to 64 letters, digits and hyphens", id)
	}
	return nil
}

// Options are the flags of `dmgbench run` that a job may have. Places and inputs
// are not among them: the owner of a machine gives these to its agent.
type Options struct {
	Rounds    string   `json:"rounds,omitempty"`
	Sets      int      `json:"sets,omitempty"`
	Scale     string   `json:"scale,omitempty"`
	Seed      *uint64  `json:"seed,omitempty"` // 0 is a seed, too
	Workers   int      `json:"workers,omitempty"`
	Engine    string   `json:"engine,omitempty"`
	Precision string   `json:"precision,omitempty"`
	Only      []string `json:"only,omitempty"`
}

// Job is one plan for one machine. With Every it is repeated: occurrence k is due
// k times that after the job was stored, and one that is missed is left out.
type Job struct {
	ID        string        `json:"id"`
	Plan      string        `json:"plan"`           // its name: letters, digits, hyphens
	Text      string        `json:"text,omitempty"` // of the plan, TOML
	Options   Options       `json:"options"`
	Submitted time.Time     `json:"submitted"`
	Every     time.Duration `json:"every_ns,omitempty"`
	Repeat    int           `json:"repeat,omitempty"` // occurrences, with Every; 0 is until it is cancelled
}

// States of a result. A run that is incomplete has failed or discarded cases.
const (
	Done       = "done"
	Incomplete = "incomplete"
	Failed     = "failed"
	Refused    = "refused"
	Cancelled  = "cancelled"
)

// Result is how one occurrence of a job ended on a machine.
type Result struct {
	Job        string    `json:"job"`
	Machine    string    `json:"machine"`
	Occurrence int       `json:"occurrence"`
	Plan       string    `json:"plan"`
	Digest     string    `json:"digest"`        // SHA-256 of the job's plan text, in hexadecimal
	Run        string    `json:"run,omitempty"` // id of the run, and name of its archive in the object store
	State      string    `json:"state"`
	Exit       int       `json:"exit"` // status of the last `dmgbench run` or `resume`
	Error      string    `json:"error,omitempty"`
	Size       int64     `json:"size,omitempty"`   // of the archive, in bytes
	Started    time.Time `json:"started,omitzero"` // on the machine's clock, as Ended
	Ended      time.Time `json:"ended,omitzero"`
	Attempts   int       `json:"attempts"` // how often `dmgbench run` or `resume` was started
}

// States of a machine.
const (
	Idle      = "idle"
	Checking  = "checking"
	Measuring = "measuring"
	Storing   = "storing"
	Stopped   = "stopped" // its agent was ended; one that was killed is silent
	Revoked   = "revoked" // it has no key
)

// Progress is a line of `dmgbench run --format json`.
type Progress struct {
	Case   string `json:"case"`
	Do     string `json:"do"`
	Phase  string `json:"phase"`
	Round  int    `json:"round"`
	Rounds int    `json:"rounds"`
	Bytes  int64  `json:"run_bytes"`    // written so far
	Of     int64  `json:"of_run_bytes"` // to be written
	Left   int64  `json:"left_ns"`
}

// Status is the last that a machine said of itself. It says nothing while a file
// is timed.
type Status struct {
	Machine  string      `json:"machine"`
	Host     result.Host `json:"host"` // its disks are the places; "" is the one for plans with a single place
	Tags     []string    `json:"tags,omitempty"`
	Inputs   []string    `json:"inputs,omitempty"` // names
	State    string      `json:"state"`
	Job      string      `json:"job,omitempty"`
	Plan     string      `json:"plan,omitempty"`
	Progress *Progress   `json:"progress,omitempty"`
	Error    string      `json:"error,omitempty"` // the last one of this job, or of the connection
	Time     time.Time   `json:"time,omitzero"`   // on the machine's clock
}

// Names of the streams that all machines share. To the submissions, the jobs that
// there were without their texts, only Control writes.
const (
	Jobs        = "FLEET_JOBS"
	Submissions = "FLEET_SUBMISSIONS"
	Statuses    = "FLEET_STATUS"
)

// Results is the name of the stream with the results of a machine.
func Results(machine string) string { return "FLEET_RESULTS-" + machine }

// Logs is the name of the stream with the log messages of a machine.
func Logs(machine string) string { return "FLEET_LOGS-" + machine }

// JobSubject is where the job of a machine is.
func JobSubject(machine, job string) string { return "fleet.job." + machine + "." + job }

// SubmissionSubject is where it is recorded that a machine was given a job.
func SubmissionSubject(machine, job string) string { return "fleet.submission." + machine + "." + job }

// ResultSubject is where the result of an occurrence of a job is.
func ResultSubject(machine, job string, occurrence int) string {
	return "fleet.result." + machine + "." + job + "." + strconv.Itoa(occurrence)
}

// StatusSubject is where the status of a machine is.
func StatusSubject(machine string) string { return "fleet.status." + machine }

// LogSubject is where the lines are that a machine printed during a job.
func LogSubject(machine, job string) string { return "fleet.log." + machine + "." + job }

// Wake is a message under the CancelSubject that an agent ignores.
const Wake = "wake"

// CancelSubject tells a machine to look whether its job is still in the stream. It
// is in no stream.
func CancelSubject(machine string) string { return "fleet.cancel." + machine }

// Bucket is the name of a machine's object store.
func Bucket(machine string) string { return "fleet-" + machine }

// Decode reads a message, of which nothing can be assumed.
func Decode[T any](data []byte) (v T, err error) {
	if len(data) > MaxMessage {
		return v, fmt.Errorf("a message of %d bytes: want at most %d", len(data), MaxMessage)
	}
	if err = json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("decoding a message: %w", err)
	}
	return v, nil
}

// Encode is the inverse of Decode.
func Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err == nil && len(data) > MaxMessage {
		err = fmt.Errorf("a message of %d bytes: want at most %d", len(data), MaxMessage)
	}
	return data, err
}
