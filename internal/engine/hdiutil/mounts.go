package hdiutil

import (
	"os"
	"strconv"
	"strings"
)

// mount is one line of the system's mount table.
type mount struct {
	from, on, kind string
	readOnly       bool
}

// parseMountinfo reads /proc/self/mountinfo (proc(5)). Lines that it cannot read are left out.
func parseMountinfo(text string) []mount {
	var list []mount
	for line := range strings.Lines(text) {
		head, tail, ok := strings.Cut(line, " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 6 || len(t) < 2 {
			continue
		}
		list = append(list, mount{from: unescape(t[1]), on: unescape(h[4]), kind: t[0], readOnly: strings.HasPrefix(h[5]+",", "ro,")})
	}
	return list
}

// unescape undoes the kernel's octal for blanks and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// host is what the engine looks at outside of the tools; tests replace it.
type host struct {
	mounts func() ([]mount, error)
	exists func(device string) bool
	trim   func(dir string) (int64, error) // errNoTrim where it cannot be done
}

// mountedOn is the last thing that is mounted on the folder.
func (h host) mountedOn(dir string) (mount, bool, error) {
	list, err := h.mounts()
	if err != nil {
		return mount{}, false, err
	}
	var found mount
	ok := false
	for _, m := range list {
		if m.on == dir {
			found, ok = m, true
		}
	}
	return found, ok, nil
}

// sameFile says whether both paths lead to one file or folder.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func nodeExists(device string) bool {
	_, err := os.Stat(device)
	return err == nil
}
