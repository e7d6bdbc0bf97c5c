package attach

import (
	"errors"
	"strings"
)

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
