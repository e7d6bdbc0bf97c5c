package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dmgbench/internal/fleet"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// The folder of the agent has one with a folder for each task, which has a file.
const jobsFolder, taskFile = "jobs", "task.json"

// task is one occurrence of a job on this machine. Its folder exists from before
// the plan is checked until the result is stored and the job acknowledged.
type task struct {
	Job    fleet.Job    `json:"job"`
	Result fleet.Result `json:"result"` // without a State until it is not to be measured any more
	dir    string
}

// newTask describes an occurrence of a job; id is the one of its subject. A job
// that will be refused may have an id that cannot be the name of a folder.
func newTask(c Config, id string, occurrence int, job fleet.Job) *task {
	name := fmt.Sprintf("%.64s-%d", url.PathEscape(id), occurrence)
	return &task{Job: job, dir: filepath.Join(c.Folder, jobsFolder, name),
		Result: fleet.Result{Job: id, Machine: c.Link.User, Occurrence: occurrence, Plan: job.Plan,
			Digest: fmt.Sprintf("%x", sha256.Sum256([]byte(job.Text))), Started: time.Now().UTC()}}
}

// readTasks reads the tasks in the agent's folder. That of a folder without a
// readable file has no job: the agent was killed while it made or deleted it.
func readTasks(folder string) (list []*task) {
	entries, _ := os.ReadDir(filepath.Join(folder, jobsFolder))
	for _, e := range entries {
		t := &task{dir: filepath.Join(folder, jobsFolder, e.Name())}
		text, _ := os.ReadFile(filepath.Join(t.dir, taskFile))
		_ = json.Unmarshal(text, t)
		list = append(list, t)
	}
	return list
}

// run is the run folder, planFile the plan; its name becomes that of the run.
func (t *task) run() string      { return filepath.Join(t.dir, "run") }
func (t *task) planFile() string { return filepath.Join(t.dir, t.Job.Plan+".toml") }

// save replaces the file of the task atomically, so that a killed agent leaves
// the old state or the new one.
func (t *task) save() error {
	text, err1 := json.Marshal(t)
	err2 := os.MkdirAll(t.dir, 0o700)
	d, err3 := hostio.OpenDir(t.dir)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return fmt.Errorf("saving job %q: %w", t.Result.Job, err)
	}
	defer d.Close()
	return d.WriteFileAtomic(taskFile, text, 0o600)
}

// runID is the id of the run, "" before it has started.
func (t *task) runID() string {
	text, _ := os.ReadFile(filepath.Join(t.run(), ".dmgbench-run"))
	return strings.TrimSpace(string(text))
}

// progress is how many cases of the journal have ended; started reports whether
// the journal has a record, without which a run cannot be resumed.
func (t *task) progress() (ended int, started bool) {
	f, err := os.Open(filepath.Join(t.run(), result.JournalFile))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	// Steps do not count: an interrupted case is measured again from its start. A
	// record begins with its kind, and may be long.
	isStart := true
	for r := bufio.NewReader(f); ; {
		part, err := r.ReadSlice('\n')
		if isStart && bytes.Contains(part, []byte(`"kind":"case_end"`)) {
			ended++
		}
		isStart = err == nil
		started = started || isStart
		if err != nil && err != bufio.ErrBufferFull {
			return ended, started
		}
	}
}
