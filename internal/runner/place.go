package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/hostio"
	"dmgbench/internal/result"
)

// markerName marks a folder that a run made and may remove.
const markerName = ".dmgbench-run"

// markerTemp begins the names under which a marker is written before it gets its own.
const markerTemp = "." + markerName + ".tmp-"

// workFolder is the run's own folder at a place.
func workFolder(id string) string { return "dmgbench-" + id }

type marker struct {
	Run string `json:"run"`
}

// place is one opened place with the run's own folder in it.
type place struct {
	name  string
	title string      // for people
	root  *hostio.Dir // the place itself
	dir   *hostio.Dir // dmgbench-<run id> inside it
}

// openPlace makes the run's marked folder at a place, or finds it again.
func openPlace(p Place, id string, hook hostio.Hook) (*place, error) {
	root, err := hostio.OpenDir(p.Path, hostio.WithHook(hook))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", p.title(""), err)
	}
	name := workFolder(id)
	switch err := root.Mkdir(name); {
	case err == nil:
		err = mark(root, name, id)
		if err != nil {
			root.Close()
			return nil, fmt.Errorf("marking the run's own folder in %s: %w", p.title(""), err)
		}
	case !errors.Is(err, fs.ErrExist):
		root.Close()
		return nil, fmt.Errorf("making a folder in %s: %w", p.title(""), err)
	}
	dir, err := root.Sub(name)
	if err == nil {
		if err = errors.Join(remark(root, dir, name, id), ours(root, dir, name, id)); err != nil {
			dir.Close()
		}
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("opening the run's own folder in %s: %w", p.title(""), err)
	}
	return &place{name: p.Name, title: p.title(""), root: root, dir: dir}, nil
}

// remark marks a folder that a killed run had made and not yet marked, or
// unmarked and not yet removed. Such a folder is empty; any other is left as it is.
func remark(root, dir *hostio.Dir, name, id string) error {
	list, err := dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, f := range list {
		if !strings.HasPrefix(f.Name(), markerTemp) {
			return nil
		}
	}
	if err := mine(root, name); err != nil {
		return err
	}
	return mark(root, name, id)
}

func mark(root *hostio.Dir, name, id string) error {
	dir, err := root.Sub(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	// Bands and files spread over fresh regions of the disk; only ext4 knows the hint.
	if err := dir.Spread(); err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	text, err := json.Marshal(marker{Run: id})
	if err != nil {
		return err
	}
	return dir.WriteFileAtomic(markerName, append(text, '\n'), 0o600)
}

// ours says nil if the folder carries the marker of run id and belongs to this user.
func ours(root, dir *hostio.Dir, name, id string) error {
	text, err := dir.ReadFile(markerName, 4096)
	if err != nil {
		return fmt.Errorf("reading its marker: %w", err)
	}
	var m marker
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("reading its marker: %w", err)
	}
	if m.Run != id {
		return fmt.Errorf("it belongs to run %q", m.Run)
	}
	return mine(root, name)
}

// mine says nil if the folder belongs to this user, or to whom root works for by sudo.
func mine(root *hostio.Dir, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if uid, known := owner(info); known && !result.OwnedByUs(info) {
		return fmt.Errorf("it belongs to user %d", uid)
	}
	return nil
}

// away says that the place itself is there no more: its disk was taken out, or another folder lies at its path.
func (p *place) away() bool {
	own, err := p.root.Stat(".")
	if err != nil {
		return true
	}
	now, err := os.Stat(p.root.Path())
	return err != nil || !os.SameFile(own, now)
}

// away is a place of the case that is there no more, nil if all are.
func (x *caseRun) away() *place {
	if x.place.away() {
		return x.place
	}
	for _, h := range x.handles() {
		if h.place.away() {
			return h.place
		}
	}
	return nil
}

// remove deletes the run's folder, but only where marker, run id and owner agree.
func (p *place) remove(id string) error {
	defer p.root.Close()
	defer p.dir.Close()
	err := ours(p.root, p.dir, workFolder(id), id)
	if err == nil {
		err = p.dir.Verify(p.root, workFolder(id))
	}
	if err == nil {
		err = p.empty(id)
	}
	if err != nil {
		return fmt.Errorf("removing the run's own folder in %s: %w", p.title, err)
	}
	return nil
}

// empty removes what is in the run's folder, then the marker, then the folder: a
// run that is killed in the middle leaves a folder that is known as its own.
func (p *place) empty(id string) error {
	if err := p.clear(nil); err != nil {
		return err
	}
	if err := p.dir.Remove(markerName); err != nil {
		return err
	}
	return p.root.Remove(workFolder(id))
}

// clear removes everything in the run's folder but the marker and what keep says.
func (p *place) clear(keep func(name string) bool) error {
	list, err := p.dir.ReadDir(".")
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.Name() == markerName || keep != nil && keep(f.Name()) {
			continue
		}
		if err := p.dir.RemoveAll(f.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) close() {
	p.dir.Close()
	p.root.Close()
}

// existing is the nearest folder above path that exists, to ask it for free space.
func existing(path string) string {
	for {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path
		}
		up := filepath.Dir(path)
		if up == path {
			return path
		}
		path = up
	}
}

// freeAt is the free space of the file system that path is or will be on.
func freeAt(path string) (int64, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return 0, err
	}
	dir, err := hostio.OpenDir(existing(abs))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	free, _, _, err := dir.FreeSpace()
	return free, err
}

// target says of a case what the plan asks for.
func target(c caseSettings) result.Target {
	t := result.Target{
		Kind: c.Target, Place: c.Place, Format: c.Format, Encryption: c.Encryption,
		Size: int64(c.Size), BandSize: int64(c.BandSize), Backend: c.Backend,
	}
	if len(c.Filesystems) > 0 {
		t.Filesystem = c.Filesystems[0]
	}
	return t
}
