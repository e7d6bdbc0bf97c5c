package runner

import (
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/result"
)

// Remains is what a run that no process is at has left at its places.
type Remains struct {
	Folder  string   // the run folder
	Images  []string // folders with images of the run
	Ended   bool     // the run has ended, and its images were kept
	Paused  bool     // the run waits for its user
	Resumes bool     // the run can go on
}

// Leftovers lists the registered runs that left images and are not going on, in the order of their ids.
func Leftovers(stateDir string) (all []Remains) {
	list, err := os.ReadDir(filepath.Join(stateDir, "runs"))
	if err != nil {
		return nil
	}
	for _, f := range list {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue
		}
		e, err := readEntry(stateDir, id)
		if err != nil || result.Running(e.Folder) {
			continue
		}
		r := Remains{Folder: e.Folder}
		for _, at := range e.folders() {
			dir := filepath.Join(at.Path, workFolder(id))
			if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
				r.Images = append(r.Images, dir)
			}
		}
		if len(r.Images) > 0 {
			r.stand(id)
			all = append(all, r)
		}
	}
	return all
}

// stand fills in where the run stands by its journal.
func (r *Remains) stand(id string) {
	d, err := result.OpenRun(r.Folder)
	if err != nil {
		return
	}
	defer d.Close()
	recs, err := d.Journal()
	if err != nil {
		return
	}
	if s, err := result.Replay(recs); err == nil && s.Run.ID == id {
		r.Ended, r.Paused, r.Resumes = s.Ended != nil, s.Paused != nil, s.Ended == nil
	}
}

// PausedImageGone reports whether the container that a pause left is not there any more.
func PausedImageGone(c Config, run result.RunStart, p *result.Pause) bool {
	places, err := placesAgain(c, run)
	if err != nil {
		return false
	}
	at := c.Out
	for _, known := range places {
		if known.Name == p.Place {
			at = known.Path
		}
	}
	_, err = os.Lstat(filepath.Join(at, workFolder(run.ID), p.Container))
	return os.IsNotExist(err)
}
