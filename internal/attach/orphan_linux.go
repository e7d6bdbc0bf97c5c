package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"dmgbench/internal/exfat"
)

// orphanPrefix starts the names of files that were deleted while somebody had them open. They are removed with the last
// handle, and those that a crash left when the volume is served next.
const orphanPrefix = ".dmgbench-deleted-"

// removeOrphans takes away what a crash left of deleted files.
func (v *volumeFS) removeOrphans() {
	list, err := v.volume.List("")
	for _, i := range list {
		if strings.HasPrefix(i.Name, orphanPrefix) && !i.Dir {
			err = errors.Join(err, v.volume.Remove(i.Name))
		}
	}
	v.fails.add("removing deleted files", err)
}

// sweep removes the deleted files that nobody has open any more.
func (v *volumeFS) sweep() {
	v.mu.Lock()
	defer v.mu.Unlock()
	var left []string
	for _, name := range v.orphans {
		switch err := v.volume.Remove(name); {
		case errors.Is(err, exfat.ErrBusy):
			left = append(left, name)
		case err != nil:
			v.fails.add("removing a deleted file", err)
		}
	}
	v.orphans = left
}

// remove deletes a file, open or not.
func (v *volumeFS) remove(name string) error {
	err := v.volume.Remove(name)
	if !errors.Is(err, exfat.ErrBusy) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	orphan := ""
	for err = fs.ErrExist; errors.Is(err, fs.ErrExist); { // some may be left of a crash
		v.next++
		orphan = fmt.Sprintf("%s%d", orphanPrefix, v.next)
		err = v.volume.Rename(name, orphan)
	}
	if err != nil {
		return err
	}
	v.orphans = append(v.orphans, orphan)
	return nil
}
