package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dmgbench/internal/fleet"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

const (
	jobsFolder = "jobs"      // in the agent's folder: one folder for each task
	taskFile   = "task.json" // in the folder of a task
	maxTask    = 2 * fleet.MaxMessage

	// markerFile contains the id of the run in a run folder.
	markerFile = ".dmgbench-run"
)

// task is one occurrence of a job on this machine. Its folder exists from before
// the plan is checked until the result is stored and the job acknowledged.
type task struct {
	Job    fleet.Job    `json:"job"`
	Result fleet.Result `json:"result"` // without a State until it is not to be measured any more
	dir    string
}

// newTask describes an occurrence of a job; id is the one of its subject.
func newTask(folder, machine, id string, occurrence int, job fleet.Job) *task {
	sum := sha256.Sum256([]byte(job.Text))
	return &task{Job: job, dir: filepath.Join(folder, jobsFolder, id+"-"+strconv.Itoa(occurrence)),
		Result: fleet.Result{Job: id, Machine: machine, Occurrence: occurrence, Digest: hex.EncodeToString(sum[:])}}
}

// readTasks reads the tasks in the agent's folder. One without a readable file
// was killed while its folder was made: it has no job.
func readTasks(folder string) (list []*task, err error) {
	entries, err := os.ReadDir(filepath.Join(folder, jobsFolder))
	if err != nil {
		return nil, fmt.Errorf("reading the tasks: %w", err)
	}
	for _, e := range entries {
		t := &task{dir: filepath.Join(folder, jobsFolder, e.Name())}
		if d, err := hostio.OpenDir(t.dir); err == nil {
			text, _ := d.ReadFile(taskFile, maxTask)
			_ = json.Unmarshal(text, t)
			d.Close()
		}
		list = append(list, t)
	}
	return list, nil
}

// run is the run folder, planFile the plan; its name becomes that of the run.
func (t *task) run() string      { return filepath.Join(t.dir, "run") }
func (t *task) planFile() string { return filepath.Join(t.dir, t.Job.Plan+".toml") }

// save replaces the file of the task atomically, so that a killed agent leaves
// the old state or the new one.
func (t *task) save() error {
	text, err := json.Marshal(t)
	if err == nil {
		err = os.MkdirAll(t.dir, 0o700)
	}
	var d *hostio.Dir
	if err == nil {
		d, err = hostio.OpenDir(t.dir)
	}
	if err == nil {
		defer d.Close()
		err = d.WriteFileAtomic(taskFile, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("saving job %q: %w", t.Result.Job, err)
	}
	return nil
}

// runID is the id of the run, "" before it has started.
func (t *task) runID() string {
	text, err := os.ReadFile(filepath.Join(t.run(), markerFile))
	id := strings.TrimSuffix(string(text), "\n")
	if err != nil || result.SafeName(id) != nil {
		return ""
	}
	return id
}

// progress is how many cases of the journal have ended; started reports whether
// the journal has a record, without which there is no run to resume.
func (t *task) progress() (ended int, started bool) {
	text, _ := os.ReadFile(filepath.Join(t.run(), result.JournalFile))
	return bytes.Count(text, []byte(`"kind":"case_end"`)), bytes.IndexByte(text, '\n') >= 0
}
