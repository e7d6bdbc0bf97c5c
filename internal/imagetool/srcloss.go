package imagetool

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dmgbench/internal/container/files"
	"dmgbench/internal/hostio"
)

// losses counts what of the files of a tree a volume without modes, owners, attributes and links does not keep.
type losses struct {
	modes, owners, attributes, hardLinks int
	links                                int // symbolic, which are refused
	firstLink                            string
}

// add looks at one file or folder.
func (l *losses) add(d *hostio.Dir, name string, fi fs.FileInfo) {
	plain := fs.FileMode(0o644)
	if fi.IsDir() {
		plain = 0o755
	}
	if fi.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != plain {
		l.modes++
	}
	if !isOwn(fi) {
		l.owners++
	}
	if !fi.IsDir() && hardLinked(fi) {
		l.hardLinks++
	}
	list, err := files.Xattr(d, name, "list", "", "")
	if err != nil {
		return // a host without attributes
	}
	for name := range list {
		// Labels and lists of access rights are of the host, not of the file.
		if !strings.HasPrefix(name, "security.") && !strings.HasPrefix(name, "system.") {
			l.attributes++
			return
		}
	}
}

// addLink notes a symbolic link.
func (l *losses) addLink(path string) {
	if l.links++; l.links == 1 {
		l.firstLink = path
	}
}

// refused is the error of a tree with symbolic links.
func (l *losses) refused() error {
	switch l.links {
	case 0:
		return nil
	case 1:
		return refuse("%q is a symbolic link, which %s cannot hold", l.firstLink, ours)
	}
	return refuse("%d symbolic links, which %s cannot hold; the first is %q", l.links, ours, l.firstLink)
}

// remark says in one line what is not kept.
func (l *losses) remark(c *call) {
	var list []string
	for _, k := range []struct {
		n    int
		what string
	}{{l.modes, "modes"}, {l.owners, "owners"}, {l.attributes, "extended attributes"}, {l.hardLinks, "hard links"}} {
		if k.n > 0 {
			list = append(list, fmt.Sprintf("%s of %d", k.what, k.n))
		}
	}
	if len(list) > 0 {
		c.warn("%s does not keep, of so many files and folders: %s", ours, strings.Join(list, ", "))
	}
}

// bundleExtensions are of folders that macOS shows as one file.
var bundleExtensions = []string{".app", ".appex", ".bundle", ".component", ".framework", ".kext", ".mpkg", ".pkg", ".plugin", ".prefpane", ".saver", ".xpc"}

// isBundle says whether a folder goes into an image as a whole, and not what is in it.
func isBundle(folder string) bool {
	return slices.Contains(bundleExtensions, strings.ToLower(filepath.Ext(folder)))
}
