package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/result"
	"dmgbench/internal/system/hostio"
)

// markerName marks a folder that a run made and may remove.
const markerName = ".dmgbench-run"

// markerTemp is the prefix of the temporary names of a marker, see
// [hostio.Dir.WriteFileAtomic].
const markerTemp = "." + markerName + ".tmp-"

// maxMarker bounds the size of a marker in bytes.
const maxMarker = 4096

// workFolderName is the name of a run's own folder at a place.
func workFolderName(id string) string { return "dmgbench-" + id }

// marker is the content of the file that marks a folder.
type marker struct {
	Run string `json:"run"`
}

// workFolder is a run's own folder at one place.
type workFolder struct {
	name  string      // of the place
	title string      // of the place, in messages
	root  *hostio.Dir // the place itself
	dir   *hostio.Dir // dmgbench-<run id> in it
}

// openWorkFolder makes the run's marked folder at a place, or opens it if it
// exists.
func openWorkFolder(p Place, id string, hook hostio.Hook) (*workFolder, error) {
	title := p.title("")
	root, err := hostio.OpenDir(p.Path, hostio.WithHook(hook))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", title, err)
	}
	f := &workFolder{name: p.Name, title: title, root: root}
	if err = root.Mkdir(workFolderName(id)); err == nil || errors.Is(err, fs.ErrExist) {
		f.dir, err = root.Sub(workFolderName(id))
	}
	if err == nil {
		err = errors.Join(f.mark(id), f.checkOwn(id))
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("opening the run's own folder in %s: %w", title, err)
	}
	return f, nil
}

// mark marks a folder that is empty: a new one, or one that a killed run had
// made and not yet marked, or unmarked and not yet removed. Others stay as they
// are.
func (f *workFolder) mark(id string) error {
	list, err := f.dir.ReadDir(".")
	if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), markerTemp) }) {
		return nil
	}
	if err == nil {
		err = f.checkOwner(id)
	}
	if err != nil {
		return err
	}
	// Bands and files spread over fresh regions of the disk. Only ext4 supports
	// the hint.
	if err := f.dir.Spread(); err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		return err
	}
	text, _ := json.Marshal(marker{Run: id}) // a string never fails
	return f.dir.WriteFileAtomic(markerName, append(text, '\n'), 0o600)
}

// checkOwn fails unless the folder has the marker of run id and belongs to this
// user.
func (f *workFolder) checkOwn(id string) error {
	var m marker
	text, err := f.dir.ReadFile(markerName, maxMarker)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return fmt.Errorf("reading its marker: %w", err)
	}
	if m.Run != id {
		return fmt.Errorf("it belongs to run %q", m.Run)
	}
	return f.checkOwner(id)
}

// checkOwner fails unless the folder belongs to this user, or to the user who
// called sudo.
func (f *workFolder) checkOwner(id string) error {
	info, err := f.root.Lstat(workFolderName(id))
	if err == nil && !result.OwnedByUs(info) {
		err = errors.New("it belongs to another user")
	}
	return err
}

// isGone reports whether the place itself is gone: its disk was removed, or
// another folder has its path now.
func (f *workFolder) isGone() bool {
	own, err := f.root.Stat(".")
	if err != nil {
		return true
	}
	now, err := os.Stat(f.root.Path())
	return err != nil || !os.SameFile(own, now)
}

// remove deletes the folder if marker, run id and owner agree, and closes it.
// The marker is the last file that it deletes: a run that is killed before that
// leaves a folder that is recognized as its own.
func (f *workFolder) remove(id string) error {
	defer f.close()
	name := workFolderName(id)
	for _, step := range []func() error{
		func() error { return f.checkOwn(id) },
		func() error { return f.dir.Verify(f.root, name) },
		func() error { return f.clear(func(string) bool { return false }) },
		func() error { return f.dir.Remove(markerName) },
		func() error { return f.root.Remove(name) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("removing the run's own folder in %s: %w", f.title, err)
		}
	}
	return nil
}

// clear removes every file except the marker and those that keep reports true
// for.
func (f *workFolder) clear(keep func(name string) bool) error {
	list, err := f.dir.ReadDir(".")
	for _, e := range list {
		if err == nil && e.Name() != markerName && !keep(e.Name()) {
			err = f.dir.RemoveAll(e.Name())
		}
	}
	return err
}

// lock locks the marker while the returned file is open; the lock of a killed
// process ends with it. On a file system without locks it succeeds.
func (f *workFolder) lock() (*hostio.File, error) {
	file, err := f.dir.Open(markerName, hostio.OpenOptions{Write: true})
	if err != nil {
		return nil, err
	}
	if err := file.TryLock(); err != nil && !errors.Is(err, hostio.ErrUnsupported) {
		file.Close()
		return nil, err
	}
	return file, nil
}

// close closes the handles; the folder stays.
func (f *workFolder) close() {
	if f.dir != nil {
		f.dir.Close()
	}
	f.root.Close()
}

// fingerprint changes when a container that a pause left is modified or
// replaced: a digest of names, kinds, sizes, modification times and inodes of
// its files. It omits the device, since a restart may number disks anew, and
// the size of a folder's list, which depends on the file system.
func (f *workFolder) fingerprint(name string) (string, error) {
	h := sha256.New()
	err := files.Walk(context.Background(), f.dir, name, func(inside string, fi fs.FileInfo) error {
		st := hostio.StatOf(fi)
		if fi.IsDir() {
			st.Size = 0
		}
		fmt.Fprintf(h, "%q %v %d %d %d\n", path.Join(name, inside), fi.Mode().Type(), st.Size,
			fi.ModTime().UnixNano(), st.Inode)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("examining %q: %w: %w", name, engine.ErrGone, err)
	}
	return "files-" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}
