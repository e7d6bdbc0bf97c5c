package host

import (
	"strconv"
	"strings"
)

// Mount is one line of the table of mounts.
type Mount struct {
	Major, Minor uint32 // device number
	Point        string // the folder
	Type         string // of the file system
	Source       string // such as a device
	ReadOnly     bool
}

// ParseMounts reads /proc/self/mountinfo, see proc_pid_mountinfo(5), in the order of mounting. Malformed lines are left
// out.
func ParseMounts(table string) (list []Mount) {
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		mount, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 6 || len(system) < 2 {
			continue
		}
		major, minor, _ := strings.Cut(mount[2], ":")
		a, err1 := strconv.ParseUint(major, 10, 32)
		b, err2 := strconv.ParseUint(minor, 10, 32)
		if err1 == nil && err2 == nil {
			list = append(list, Mount{
				Major: uint32(a), Minor: uint32(b), Point: Unescape(mount[4]), Type: system[0],
				Source: Unescape(system[1]), ReadOnly: strings.HasPrefix(mount[5]+",", "ro,"),
			})
		}
	}
	return list
}
