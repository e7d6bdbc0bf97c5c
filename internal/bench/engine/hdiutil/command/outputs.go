package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"howett.net/plist"
)

// ErrNoResult reports an output without the result of the command. Parsers
// never guess one.
var ErrNoResult = errors.New("the tool's output does not contain the result")

// Entity is one device of an attached image.
type Entity struct {
	Device     string `plist:"dev-entry"`       // /dev/diskN or /dev/diskNsM, always with /dev/
	Hint       string `plist:"content-hint"`    // as printed: a partition scheme or type, by name or GUID
	MountPoint string `plist:"mount-point"`     // "" while not mounted
	Kind       string `plist:"volume-kind"`     // "apfs", "hfs", "exfat", …; may be empty
	Filesystem string `plist:"filesystem-type"` // Kind, as diskutil names it
	Mountable  bool   `plist:"potentially-mountable"`
}

// Attached is what one attach made, or one image in the list of `hdiutil info`.
type Attached struct {
	Image    string   `plist:"image-path"` // only in the list
	Type     string   `plist:"image-type"` // "read/write", …, only in the list
	Server   int      `plist:"hdid-pid"`   // process that serves it, 0 if unknown; only in the list
	Entities []Entity `plist:"system-entities"`
	whole    string   // device of the whole disk, where the list names it
}

// Hints of the parts of APFS, by GUID and by the name that diskutil prints.
var (
	// The system makes a disk of its own for a container.
	hintContainer = []string{"EF57347C-0000-11AA-AA11-00306543ECAC", "APPLE_APFS_CONTAINER"}
	hintVolume    = []string{"41504653-0000-11AA-AA11-00306543ECAC", "APPLE_APFS_VOLUME"}
	hintStore     = []string{"7C3457EF-0000-11AA-AA11-00306543ECAC", "APPLE_APFS"} // the slice that holds a container
	hintNoVolume  = []string{"C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "EFI", "APPLE_FREE"}
)

// partitionScheme ends the hints of whole disks with a partition table
// ("GUID_partition_scheme").
const partitionScheme = "_partition_scheme"

func (e Entity) hintIn(list []string) bool { return slices.Contains(list, strings.ToUpper(e.Hint)) }

// IsStore reports whether the device is the physical store of an APFS
// container.
func (e Entity) IsStore() bool { return e.hintIn(hintStore) }

func (e Entity) isContainer() bool { return e.hintIn(hintContainer) }

func (e Entity) isDivided() bool { return strings.HasSuffix(e.Hint, partitionScheme) }

func (e Entity) isMounted() bool { return e.MountPoint != "" }

// ParseAttach parses `hdiutil attach -plist` and `diskutil image attach
// --plist`.
func ParseAttach(out []byte) (Attached, error) {
	a, err := findPlist[Attached](out)
	a.clean()
	if err == nil {
		_, err = a.Disk()
	}
	return a, err
}

// Info is what `hdiutil info -plist` prints. Without attached images the key
// images is missing.
type Info struct {
	Images    []Attached `plist:"images"`
	Vendor    string     `plist:"vendor"`
	Framework string     `plist:"framework"` // version
}

// ParseInfo parses `hdiutil info -plist`.
func ParseInfo(out []byte) (Info, error) {
	i, err := findPlist[Info](out)
	for n := range i.Images {
		i.Images[n].clean()
	}
	return i, err
}

// clean leaves out entities without the name of a device, and gives devices and
// kinds one form.
func (a *Attached) clean() {
	a.Entities = slices.DeleteFunc(a.Entities, func(e Entity) bool { return devicePath(e.Device) == "" })
	for i := range a.Entities {
		e := &a.Entities[i]
		e.Device, e.Kind = devicePath(e.Device), strings.ToLower(cmp.Or(e.Kind, e.Filesystem))
	}
}

// devicePath is the path of a device: diskutil prints the name alone. What
// could be an option or lead to another folder is "".
func devicePath(dev string) string {
	name := strings.TrimPrefix(dev, "/dev/")
	if name == "" || strings.HasPrefix(name, "-") || strings.Contains(name, "..") ||
		strings.ContainsAny(name, " \t\r\n\x00") {
		return ""
	}
	return "/dev/" + name
}

// Disk is the image's whole disk, which is the device to detach: the one with a
// partition scheme, else the shortest name that is neither a slice nor an APFS
// container.
func (a Attached) Disk() (string, error) {
	if a.whole != "" {
		return a.whole, nil
	}
	var own []string
	for _, e := range a.Entities {
		if e.isDivided() {
			return e.Device, nil
		}
		if !e.isContainer() && !a.isSlice(e.Device) {
			own = append(own, e.Device)
		}
	}
	if len(own) == 0 {
		return "", fmt.Errorf("%w: no whole disk among %d devices", ErrNoResult, len(a.Entities))
	}
	return slices.MinFunc(own, func(x, y string) int {
		return cmp.Or(len(x)-len(y), strings.Compare(x, y))
	}), nil
}

// isSlice reports whether the device is a slice: diskNsM, or another entity's
// name with a partition number (loop0p1).
func (a Attached) isSlice(device string) bool {
	if rest, ok := strings.CutPrefix(device, "/dev/disk"); ok {
		return strings.Contains(rest, "s")
	}
	return slices.ContainsFunc(a.Entities, func(e Entity) bool {
		rest, ok := strings.CutPrefix(device, e.Device)
		return ok && strings.HasPrefix(rest, "p")
	})
}

// find is the first entity that passes the test, or the zero value.
func (a Attached) find(test func(Entity) bool) Entity {
	if i := slices.IndexFunc(a.Entities, test); i >= 0 {
		return a.Entities[i]
	}
	return Entity{}
}

// Scheme is the hint of the partition scheme, or "" for an image without one.
func (a Attached) Scheme() string { return a.find(Entity.isDivided).Hint }

// Candidate is the device that carries the volume of an image, mounted or not.
// If an APFS container is so damaged that the system makes no disk of it, that
// is its physical store. The zero value is an image without a volume.
func (a Attached) Candidate() Entity {
	for _, test := range []func(Entity) bool{
		Entity.isMounted,
		func(e Entity) bool { return e.Kind != "" || e.hintIn(hintVolume) },
		func(e Entity) bool { return e.Mountable },
		func(e Entity) bool { return a.isSlice(e.Device) && !e.IsStore() && !e.hintIn(hintNoVolume) },
		func(Entity) bool { return len(a.Entities) == 1 },
		func(e Entity) bool { return e.IsStore() && a.find(Entity.isContainer).Device == "" },
	} {
		if e := a.find(test); e.Device != "" {
			return e
		}
	}
	return Entity{}
}

// MountPoints are the mount points of all volumes.
func (a Attached) MountPoints() (points []string) {
	for _, e := range a.Entities {
		if e.isMounted() {
			points = append(points, e.MountPoint)
		}
	}
	return points
}

// registryClass is the class of attached images in the I/O registry.
const registryClass = "AppleDiskImageDevice"

// registryEntry is an entry of the I/O registry as `ioreg -a` prints it.
type registryEntry struct {
	URL      string          `plist:"DiskImageURL"`
	Device   string          `plist:"BSD Name"`
	Children []registryEntry `plist:"IORegistryEntryChildren"`
}

// ParseRegistry parses the output of [Registry]: the attached images with their
// files and devices, the whole disk of each first. Without an image the tool
// prints nothing. Images that come from no file, and those whose disk is not
// there yet, are left out.
func ParseRegistry(out []byte) (list []Attached, err error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, nil
	}
	entries, err := findPlist[[]registryEntry](out)
	for _, e := range entries {
		file, failed := url.Parse(e.URL)
		a := Attached{}
		e.addDevices(&a.Entities)
		a.clean()
		if failed != nil || file.Scheme != "file" || len(a.Entities) == 0 {
			continue
		}
		a.Image, a.whole = strings.TrimSuffix(file.Path, "/"), a.Entities[0].Device // a bundle's ends with a slash
		list = append(list, a)
	}
	return list, err
}

// addDevices adds the devices in the tree, parents before their children.
func (e registryEntry) addDevices(list *[]Entity) {
	*list = append(*list, Entity{Device: e.Device})
	for _, child := range e.Children {
		child.addDevices(list)
	}
}

// Image describes an image file.
type Image struct {
	Format    string // Apple's four letters; "" if the tool printed none
	Size      int64  // of the device in bytes, 0 if the tool printed none
	Encrypted bool
	Scheme    string // partition scheme: "GUID", "none", …
}

// totalBytes is the size of an image.
type totalBytes struct {
	Bytes int64 `plist:"Total Bytes"`
}

// imageInfo is an image in the lists of both tools. diskutil prints the
// encryption without the passphrase, too.
type imageInfo struct {
	Format      string
	ImageFormat string `plist:"Image Format"`
	Size        int64
	TotalBytes  int64          `plist:"Total Bytes"`
	Information totalBytes     `plist:"Size Information"`
	SizeInfo    totalBytes     `plist:"Size Info"`
	Encryption  map[string]any `plist:"Encryption Info"`
	Store       struct {
		Encryption string
	} `plist:"Backing Store Information"`
	Properties struct{ Encrypted bool }
	Partitions struct {
		Scheme string `plist:"partition-scheme"`
	} `plist:"partitions"`
}

// ParseImageInfo parses `hdiutil imageinfo -plist` and `diskutil image info
// --plist`.
func ParseImageInfo(out []byte) (Image, error) {
	d, err := findPlist[imageInfo](out)
	encrypted := len(d.Encryption) > 0
	if answer, ok := d.Encryption["Is Encrypted"].(bool); ok {
		encrypted = answer
	}
	i := Image{
		Format:    cmp.Or(d.Format, d.ImageFormat),
		Size:      max(cmp.Or(d.Information.Bytes, d.SizeInfo.Bytes, d.TotalBytes, d.Size), 0),
		Encrypted: d.Properties.Encrypted || encrypted || d.Store.Encryption != "" && d.Store.Encryption != "none",
		Scheme:    d.Partitions.Scheme,
	}
	if err == nil && i.Format == "" && i.Size == 0 && len(d.Encryption) == 0 {
		err = fmt.Errorf("%w: neither format nor size", ErrNoResult)
	}
	return i, err
}

// maxTrims is how many messages of one attachment are kept.
const maxTrims = 32

var diskOfSlice = regexp.MustCompile(`^/dev/(disk[0-9]+)(s[0-9]+)*$`)

// ParseTrims parses `log show --style ndjson`: the messages of APFS that name
// the container of the volume on the device ("/dev/disk9s1" is in disk9), in
// the order of the log, without their time. Messages about other containers,
// which come and go at the same time, are left out. An output without any line
// of a log is [ErrNoResult].
func ParseTrims(out []byte, device string) (list []string, err error) {
	m := diskOfSlice.FindStringSubmatch(device)
	if m == nil {
		return nil, fmt.Errorf("%w: %q is in no container", ErrNoResult, device)
	}
	namesContainer := regexp.MustCompile(`(^|\s)` + m[1] + `(s\S*)?(\s|$)`)
	err = fmt.Errorf("%w: no line of the log", ErrNoResult)
	for line := range bytes.Lines(out) {
		var entry struct {
			Message string `json:"eventMessage"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // headings
		}
		err = nil
		if namesContainer.MatchString(entry.Message) && len(list) < maxTrims {
			list = append(list, cleanLine(entry.Message))
		}
	}
	return list, err
}

// Messages are the lines that a tool printed in addition to its result.
type Messages struct {
	Deprecated []string // announcements of another command
	Lines      []string // all others, without progress
}

// Deprecations name the new command beside the old one, in any language. What
// names it in an error is no deprecation.
var (
	deprecation = regexp.MustCompile(`(?i)deprecat|obsolet|hdiutil.*diskutil (image|eject|mount|unmount)`)
	failure     = regexp.MustCompile(`(?i)failed|error\b|couldn.t|not supported|usage:`)
	// progress is at the start of a line, which may go on with an error.
	progress = regexp.MustCompile(`^(PERCENT:-?[0-9.]+|\[?[ 0-9.]+%( completed?)?\]?|[.…]{2,}|[.…]+$)\s*`)
)

// ParseMessages sorts the lines of an output. Progress is left out.
func ParseMessages(text string) Messages {
	var m Messages
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = cleanLine(line)
		for progress.MatchString(line) {
			line = progress.ReplaceAllString(line, "")
		}
		switch {
		case line == "":
		case !deprecation.MatchString(line) || failure.MatchString(line):
			m.Lines = append(m.Lines, line)
		case !slices.Contains(m.Deprecated, line):
			m.Deprecated = append(m.Deprecated, line)
		}
	}
	return m
}

const maxLine = 400 // bytes of a line that are kept

// cleanLine replaces control characters and invalid UTF-8, and shortens a long
// line.
func cleanLine(line string) string {
	line = strings.ToValidUTF8(strings.TrimSpace(line), "�")
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return strings.TrimSpace(line)
}

// Last are the last two lines, which mostly give the reason of a failure.
func (m Messages) Last() string {
	return strings.Join(m.Lines[max(0, len(m.Lines)-2):], "; ")
}

// FindNames returns the candidates that occur in a help text as words of their
// own. "+" counts as a letter: "HFS" is not a word of "HFS+".
func FindNames(help string, candidates []string) (found []string) {
	for _, c := range candidates {
		word := regexp.MustCompile(`(^|[^\pL\pN+])` + regexp.QuoteMeta(c) + `($|[^\pL\pN+])`)
		if word.MatchString(help) {
			found = append(found, c)
		}
	}
	return found
}

// maxPlist bounds the property lists that are parsed, in bytes. Real lists have
// a few kilobytes, the registry some tens for each image. The bound also limits how deep elements nest: the library
// recurses for each level.
const maxPlist = 4 << 20

// The starts and the end of a list.
var (
	xmlStart   = []byte("<?xml")
	plistStart = []byte("<plist")
	plistEnd   = []byte("</plist>")
)

// findPlist parses the last property list in the output of a tool into a struct:
// tools print licences and warnings around it, which may contain what looks like
// the start of a list. It ignores keys that the struct does not have, and leaves
// the fields of missing keys zero. The root has to be a dictionary, or a list of
// them, in XML: the library also reads binary and OpenStep lists, which no tool prints; binary ones
// can refer to an object again and again and so unfold without bound. The error
// is [ErrNoResult].
func findPlist[T any](out []byte) (v T, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some malformed lists
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			v, err = *new(T), fmt.Errorf("%w: reading property list: %w", ErrNoResult, err)
		}
	}()
	start := bytes.LastIndex(out, xmlStart)
	if start < 0 {
		start = bytes.LastIndex(out, plistStart)
	}
	if start < 0 {
		return v, errors.New("there is none")
	}
	list, _, isComplete := bytes.Cut(out[start:], plistEnd)
	if !isComplete || len(list) > maxPlist {
		return v, fmt.Errorf("cut off after %d bytes, or more than %d bytes", len(list), maxPlist)
	}
	format, err := plist.Unmarshal(out[start:start+len(list)+len(plistEnd)], &v)
	if err == nil && (format != plist.XMLFormat || !bytes.Contains(list, []byte("<dict"))) {
		err = errors.New("not a dictionary in XML")
	}
	return v, err
}
