//go:build linux || darwin

package inprocess

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"dmgbench/internal/engine"
)

// Xattr lists the container's extended attributes with their values, or sets
// or removes one. Links are not followed. A host file system without extended
// attributes is an [engine.UnsupportedError].
func (c *image) Xattr(ctx context.Context, action, name, value string) (engine.Report, error) {
	var r engine.Report
	if err := c.same(ctx, "attributes of", false); err != nil {
		return r, err
	}
	file, name := filepath.Join(c.dir.Path(), c.file), attributeName(runtime.GOOS, name)
	var err error
	switch action {
	case "list":
		r.Reported, err = attributes(file)
	case "set":
		err = unix.Lsetxattr(file, name, []byte(value), 0)
	case "remove":
		err = unix.Lremovexattr(file, name)
	default:
		return r, refuse("extended attributes: "+action, "list, set or remove")
	}
	switch {
	case errors.Is(err, unix.ENOTSUP):
		return r, refuse("extended attributes on this file system", "put the images on another disk")
	case err != nil:
		return r, fmt.Errorf("%s attribute %q of %q: %w", action, name, c.file, err)
	}
	return r, nil
}

// attributeName is the name on this system. Linux keeps what programs set under
// "user." and refuses names outside of its four name spaces (xattr(7)); the Mac's
// names have none.
func attributeName(system, name string) string {
	space, _, _ := strings.Cut(name, ".")
	if system != "linux" || name == "" || slices.Contains([]string{"user", "trusted", "security", "system"}, space) {
		return name
	}
	return "user." + name
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
