package result

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Sources are the SHA-256 of the files that a result was made of.
type Sources struct {
	Plan    string `json:"plan"`
	Journal string `json:"journal"`
}

// Sources are the digests of plan.toml and journal.jsonl as they are now.
func (d *RunDir) Sources() (*Sources, error) {
	plan, err := d.digest(PlanFile)
	if err != nil {
		return nil, err
	}
	journal, err := d.digest(JournalFile)
	return &Sources{Plan: plan, Journal: journal}, err
}

func (d *RunDir) digest(name string) (string, error) {
	f, err := d.openRegular(name, os.O_RDONLY)
	if err != nil {
		return "", &Error{Doing: "reading", File: name, Err: bare(err)}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", &Error{Doing: "reading", File: name, Err: bare(err)}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Outdated reports whether plan or journal in the run folder dir are others than
// those that r, its result.json, was made of. A folder without a journal holds a
// result alone, such as a pooled one, and one whose plan is lost cannot be analysed
// again. Results of older versions do not name their sources: for them the times of
// change of the files decide.
func Outdated(dir string, r *Result) (bool, error) {
	d, err := openDir(dir)
	if err != nil {
		return false, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	for _, name := range []string{PlanFile, JournalFile} {
		if _, err := d.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	if r.Sources == nil {
		made := d.changed(ResultFile)
		return d.changed(JournalFile).After(made) || d.changed(PlanFile).After(made), nil
	}
	now, err := d.Sources()
	return err == nil && *now != *r.Sources, err
}

// changed is when a file was changed, the zero time if that cannot be told.
func (d *RunDir) changed(name string) time.Time {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}
