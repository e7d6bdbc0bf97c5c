// Package files treats a container as what it is on the host: one regular file
// or one folder of them, whatever its format and whether or not it is
// encrypted.
//
// It reports identity and size, copies, evicts and damages containers, and
// reads their attributes. It knows the names in a sparse bundle, but not the
// contents of the device. Links are not followed, and anything but files and
// folders is refused.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"dmgbench/internal/system/hostio"
)

// Identity returns a string that changes when the container is replaced by another:
// the device and inode numbers of the file, or of the bundle's folder and of its
// file "token". Info.plist is left out: a resize replaces it. A missing container
// is fs.ErrNotExist.
func Identity(dir *hostio.Dir, name string) (string, error) {
	fi, err := dir.Lstat(name)
	if err != nil {
		return "", err
	}
	st := hostio.StatOf(fi)
	id := fmt.Sprintf("%x-%x", st.Dev, st.Inode)
	switch {
	case fi.Mode().IsRegular():
		return id, nil
	case !fi.IsDir():
		return "", fmt.Errorf("identifying %q: %w", name, hostio.ErrNotRegular)
	}
	// A bundle that never had a token is identified by its folder alone.
	if fi, err := dir.Lstat(path.Join(name, "token")); err == nil && fi.Mode().IsRegular() {
		st := hostio.StatOf(fi)
		id += fmt.Sprintf("+%x-%x", st.Dev, st.Inode)
	}
	return id, nil
}

// Walk visits the container: a file once, with the name ""; a bundle's folder, also
// with the name "", and the folders and files in it by their names inside the
// bundle, each folder before its content. It ends with the first error of visit. An
// entry of a bundle that is gone before it is visited is skipped, and so are the
// symbolic links in a native folder.
func Walk(ctx context.Context, dir *hostio.Dir, name string, visit func(inside string, fi fs.FileInfo) error) error {
	return walk(ctx, dir, name, "", visit)
}

// walk visits one entry of the container and, of a folder, everything below it.
func walk(ctx context.Context, dir *hostio.Dir, name, inside string, visit func(string, fs.FileInfo) error) error {
	fi, err := dir.Lstat(path.Join(name, inside))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case inside != "" && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case fi.Mode().Type() == fs.ModeSymlink && inside != "" && !strings.HasSuffix(name, ".sparsebundle"):
		return nil // a file of the user's in a native folder; a bundle has none
	case !fi.IsDir() && !fi.Mode().IsRegular():
		return fmt.Errorf("visiting %q: %w", path.Join(name, inside), hostio.ErrNotRegular)
	}
	if err := visit(inside, fi); err != nil || !fi.IsDir() {
		return err
	}
	list, err := dir.ReadDir(path.Join(name, inside))
	for _, e := range list {
		if err == nil {
			err = walk(ctx, dir, name, path.Join(inside, e.Name()), visit)
		}
	}
	return err
}

// sparseFrom is the difference in bytes between the length and the allocation of all
// files from which a container counts as sparse: file systems inline and compress
// small files.
const sparseFrom = 64 << 10

// Usage is the space that a container takes on the host, in bytes of its files.
type Usage struct {
	Allocated int64 // from st_blocks, as `du` counts
	Apparent  int64 // the sum of the file lengths
	Sparse    bool  // files have holes: allocated is below apparent by more than rounding
	Bands     int   // band files in a bundle; bands or chunks of the device in a sparse image
	BandsFull int   // those of full length without holes; in a sparse image all or none
}

// Add counts a file.
func (u *Usage) Add(st hostio.Stat) {
	u.Allocated += st.Allocated
	u.Apparent += st.Size
	u.Sparse = u.Apparent-u.Allocated >= sparseFrom
}

// UsageOf returns the space that the container takes on the host; folders are not
// counted, and Bands and BandsFull only in a bundle. bandSize and deviceSize (both
// in bytes) give the length of a full band; with 0 none counts as full.
func UsageOf(ctx context.Context, dir *hostio.Dir, name string, bandSize, deviceSize int64) (u Usage, err error) {
	err = Walk(ctx, dir, name, func(inside string, fi fs.FileInfo) error {
		if fi.IsDir() {
			return nil
		}
		st := hostio.StatOf(fi)
		u.Add(st)
		n, ok := Band(inside)
		if !ok {
			return nil
		}
		u.Bands++
		full := min(bandSize, deviceSize-n*bandSize)
		if bandSize > 0 && full > 0 && min(st.Size, st.Allocated) >= full {
			u.BandsFull++
		}
		return nil
	})
	return u, err
}

// FolderUsage adds up what files and folders in a folder occupy, and the lengths of
// the files. The folder itself is not counted.
func FolderUsage(ctx context.Context, dir *hostio.Dir, name string) (u Usage, err error) {
	err = Walk(ctx, dir, name, func(inside string, fi fs.FileInfo) error {
		st := hostio.StatOf(fi)
		if inside != "" {
			u.Allocated += st.Allocated
		}
		if !fi.IsDir() {
			u.Apparent += st.Size
		}
		return nil
	})
	u.Sparse = u.Allocated < u.Apparent
	return u, err
}

// Band returns the number of the band in a file of a bundle, by its name inside the
// bundle; false if the file is no band.
func Band(inside string) (int64, bool) {
	folder, base := path.Split(inside)
	n, ok := ParseBand(base)
	return n, ok && folder == "bands/"
}

// BandName is the name of the file of band n: lower-case hexadecimal without
// leading zeros.
func BandName(n int64) string { return strconv.FormatInt(n, 16) }

// ParseBand is the inverse of BandName.
func ParseBand(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 16, 64)
	return n, err == nil && n >= 0 && BandName(n) == name
}

// Evict drops the host's cached pages of every file.
func Evict(ctx context.Context, dir *hostio.Dir, name string) error {
	return Walk(ctx, dir, name, func(inside string, fi fs.FileInfo) error {
		if fi.IsDir() {
			return nil
		}
		f, err := dir.Open(path.Join(name, inside), hostio.OpenOptions{})
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Evict()
	})
}

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
