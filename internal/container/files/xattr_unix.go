//go:build linux || darwin

package files

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"dmgbench/internal/hostio"
)

// Xattr lists the container's extended attributes with their values ("list"),
// or sets or removes one ("set", "remove"). Links are not followed. Linux wants
// names with a prefix such as "user.". Another action is errors.ErrUnsupported.
func Xattr(dir *hostio.Dir, container, action, name, value string) (map[string]string, error) {
	file := filepath.Join(dir.Path(), container)
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

func attributes(file string) (map[string]string, error) {
	names, err := sized(func(b []byte) (int, error) { return unix.Llistxattr(file, b) })
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for name := range strings.SplitSeq(string(names), "\x00") {
		if name == "" {
			continue
		}
		value, err := sized(func(b []byte) (int, error) { return unix.Lgetxattr(file, name, b) })
		if err != nil {
			return nil, err
		}
		all[name] = string(value)
	}
	return all, nil
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
