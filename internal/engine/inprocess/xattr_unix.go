//go:build linux || darwin

package inprocess

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"dmgbench/internal/engine"
)

// Xattr lists the container's extended attributes with their values, or sets
// or removes one. Links are not followed. Linux wants names with a prefix such
// as "user.".
func (c *image) Xattr(ctx context.Context, action, name, value string) (engine.Report, error) {
	var r engine.Report
	if err := c.same(ctx, "attributes of", false); err != nil {
		return r, err
	}
	file := filepath.Join(c.dir.Path(), c.file)
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
	if err != nil {
		return r, fmt.Errorf("%s attribute %q of %q: %w", action, name, c.file, err)
	}
	return r, nil
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
