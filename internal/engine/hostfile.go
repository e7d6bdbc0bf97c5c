package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dmgbench/internal/container/files"
	"dmgbench/internal/hostio"
)

// HostFile is the file of an image, or the folder of a bundle, on the host. It
// remembers which one was opened, so that another one under the same name is
// never used in its place.
type HostFile struct {
	Dir  *hostio.Dir
	File string // name in Dir, with extension
	id   string
}

// OpenHostFile notes the identity of the file.
func OpenHostFile(dir *hostio.Dir, file string) (HostFile, error) {
	f := HostFile{Dir: dir, File: file}
	return f, f.Renew()
}

// Renew notes the identity of the file anew, after a tool that may have
// replaced it.
func (f *HostFile) Renew() (err error) {
	f.id, err = f.Identity(context.Background())
	return err
}

// Name is the name of the file or folder.
func (f *HostFile) Name() string { return f.File }

// Identity is the device and inode of the file, or of the bundle's folder and
// its token.
func (f *HostFile) Identity(context.Context) (string, error) {
	id, err := files.Identity(f.Dir, f.File)
	return id, Gone(err)
}

// CheckSame fails with [ErrGone] if the file is missing or another one.
func (f *HostFile) CheckSame(ctx context.Context, doing string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now, err := f.Identity(ctx)
	if err == nil && now != f.id {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", doing, f.File, err)
	}
	return nil
}

// Xattr lists the extended attributes of the file with their values, or sets or
// removes one. Links are not followed.
func (f *HostFile) Xattr(ctx context.Context, action, name, value string) (Report, error) {
	if err := f.CheckSame(ctx, "attributes of"); err != nil {
		return Report{}, err
	}
	all, err := files.Xattr(f.Dir, f.File, action, name, value)
	if errors.Is(err, errors.ErrUnsupported) {
		err = &UnsupportedError{Engine: "this host", What: "extended attributes: " + action,
			Hint: "list, set or remove, on a disk that keeps them"}
	}
	return Report{Reported: all}, err
}

// ShellQuote quotes a path for a shell, so that a leading "-" does not make it
// an option.
func ShellQuote(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
