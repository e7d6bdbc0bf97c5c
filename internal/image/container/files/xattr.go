package files

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"dmgbench/internal/system/hostio"
)

// Xattr lists the container's extended attributes with their values ("list"),
// or sets or removes one ("set", "remove"). Links are not followed. On Linux a
// name of none of its name spaces gets "user." before it. Another action is
// errors.ErrUnsupported.
func Xattr(dir *hostio.Dir, container, action, name, value string) (map[string]string, error) {
	file, name := filepath.Join(dir.Path(), container), attributeName(runtime.GOOS, name)
	var all map[string]string
	var err error
	switch action {
	case "list":
		all, err = attributes(file)
	case "set":
		err = unix.Lsetxattr(file, name, []byte(value), 0)
	case "remove":
		err = unix.Lremovexattr(file, name)
	default:
		err = hostio.ErrUnsupported
	}
	if err != nil {
		return nil, fmt.Errorf("%s attribute %q of %q: %w", action, name, container, err)
	}
	return all, nil
}

// attributeName is the name on this system. Linux keeps what programs set under
// "user." and refuses names outside of its four name spaces (xattr(7)); the
// Mac's names have none.
func attributeName(system, name string) string {
	space, _, _ := strings.Cut(name, ".")
	if system != "linux" || name == "" || slices.Contains([]string{"user", "trusted", "security", "system"}, space) {
		return name
	}
	return "user." + name
}

// attributes reads all attributes of a file with their values.
func attributes(file string) (map[string]string, error) {
	names, err := sized(func(b []byte) (int, error) { return unix.Llistxattr(file, b) })
	all := map[string]string{}
	for name := range strings.FieldsFuncSeq(string(names), func(r rune) bool { return r == 0 }) {
		value, err := sized(func(b []byte) (int, error) { return unix.Lgetxattr(file, name, b) })
		if err != nil {
			return nil, err
		}
		all[name] = string(value)
	}
	return all, err
}

// sized asks for the length first, then for the bytes.
func sized(get func([]byte) (int, error)) ([]byte, error) {
	n, err := get(nil)
	if err != nil || n == 0 {
		return nil, err
	}
	b := make([]byte, n)
	n, err = get(b)
	return b[:max(n, 0)], err
}
