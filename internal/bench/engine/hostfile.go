package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/system/hostio"
)

// HostFile is the file of an image, or the folder of a bundle, on the host. It
// remembers which one was opened, so that another one under the same name is
// never used in its place. The containers of image engines embed it.
type HostFile struct {
	Dir      *hostio.Dir
	File     string // name in Dir, with extension
	Attached bool   // by this process: kept by the engine
	id       string
}

// FileName is the name of an image with the extension of its format.
func FileName(name string, f image.Format) string {
	return strings.TrimSuffix(name, f.Extension) + f.Extension
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

// CheckDetached is CheckSame for what only a detached image allows; the error
// of an attached one is container.ErrInUse.
func (f *HostFile) CheckDetached(ctx context.Context, doing string) error {
	if f.Attached && ctx.Err() == nil {
		return fmt.Errorf("%s %q: it is attached: %w", doing, f.File, container.ErrInUse)
	}
	return f.CheckSame(ctx, doing)
}

// Evict drops the host's cached pages of the file, or of all files of the
// bundle.
func (f *HostFile) Evict(ctx context.Context) error {
	if err := f.CheckDetached(ctx, "evicting"); err != nil {
		return err
	}
	return Gone(files.Evict(ctx, f.Dir, f.File))
}

// CopyTo copies the file, or the bundle's folder with all its files, byte for
// byte, and flushes the copy; holes stay holes. A copy that failed is deleted.
func (f *HostFile) CopyTo(ctx context.Context, dir *hostio.Dir, file string) error {
	if err := f.CheckDetached(ctx, "copying"); err != nil {
		return err
	}
	if err := files.Copy(ctx, f.Dir, f.File, dir, file); err != nil {
		return fmt.Errorf("copying %q: %w", f.File, Gone(err))
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

// CanDamage reports whether an image of the format contains what this kind of
// damage changes.
func CanDamage(f image.Format, kind string) bool {
	switch kind {
	case "header", "truncated", "volume":
		return true
	case "table":
		return !f.UDIF
	}
	return kind == "band-missing" && f.Folder
}

// DamageHint names the kinds of damage.
const DamageHint = "the kinds are header, volume, truncated, band-missing for UDSB, and table for all but UDIF images"

// ShellQuote quotes a path for a shell, so that a leading "-" does not make it
// an option.
func ShellQuote(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// NoImage has the methods of a [Container] that only images have. Each returns
// the refusal of its action.
type NoImage struct{ Refuse func(Action) error }

// Compact refuses.
func (n NoImage) Compact(context.Context, CompactOptions) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "compact"})
}

// Resize refuses.
func (n NoImage) Resize(context.Context, int64) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "resize"})
}

// Convert refuses.
func (n NoImage) Convert(context.Context, *hostio.Dir, string, Spec) (Container, error) {
	return nil, n.Refuse(Action{Do: "convert"})
}

// Transfer refuses.
func (n NoImage) Transfer(context.Context, *hostio.Dir, string) (Container, error) {
	return nil, n.Refuse(Action{Do: "transfer"})
}

// Check refuses.
func (n NoImage) Check(context.Context, CheckOptions) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "check"})
}

// Damage refuses.
func (n NoImage) Damage(_ context.Context, kind string) error {
	return n.Refuse(Action{Do: "damage", Kind: kind})
}

// Xattr refuses.
func (n NoImage) Xattr(context.Context, string, string, string) (Report, error) {
	return Report{}, n.Refuse(Action{Do: "xattr"})
}
