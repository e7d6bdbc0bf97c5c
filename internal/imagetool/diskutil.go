package imagetool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"dmgbench/internal/container"
)

// imageFormat is the format of `diskutil image create`; column has its names.
func (c *call) imageFormat(operand string, column func(formatInfo) string) (formatInfo, error) {
	if c.has("--format") {
		return formatNamed(c.value("--format"), column)
	}
	if f := byExtension(operand); f.image != "" && f.here() {
		return f, nil
	} else if !f.here() {
		return f, refuse("format %s, which the name %q says, is not there yet", f.name, operand)
	}
	return formatTable[0], nil
}

// createBlank is `diskutil image create blank`.
func (c *call) createBlank() error {
	f, err := c.imageFormat(c.operands[0], byImage)
	if err != nil {
		return err
	}
	if !c.has("--size") {
		return misused("no size: want --size")
	}
	b := blank{format: f.name, label: "Untitled"}
	if err := c.plainStdin(); err != nil {
		return err
	}
	if b.encryption, err = c.encryption(); err != nil {
		return err
	}
	if b.size, err = parseDiskutilSize(c.value("--size")); err != nil {
		return misused("option --size: %v", err)
	}
	if c.has("--volumeName") {
		b.label = c.value("--volumeName")
	}
	switch name := c.value("--fs"); {
	case strings.EqualFold(name, "none"):
		b.bare = true
	case c.has("--fs"):
		b.filesystem, err = c.filesystem(name)
	default:
		b.filesystem = c.defaultFilesystem()
	}
	if err != nil {
		return err
	}
	path, err := c.make(b, f, c.operands[0])
	if err != nil {
		return err
	}
	return c.tellMadeDU(path)
}

func (c *call) tellMadeDU(path string) error {
	if c.has("--plist") {
		return c.printPlist(list{"image-path": path})
	}
	_, err := fmt.Fprintf(c.out, "%s created\n", path)
	return err
}

// createFrom is `diskutil image create from`.
func (c *call) createFrom() error {
	f, err := c.imageFormat(c.operands[1], byFrom)
	if err != nil {
		return err
	}
	path, err := c.convertTo(c.operands[0], c.operands[1], f, 0)
	if err != nil {
		return err
	}
	return c.tellMadeDU(path)
}

// attachImage is `diskutil image attach`.
func (c *call) attachImage() error {
	r := Request{ReadOnly: c.has("--readOnly"), Browse: !c.has("--nobrowse")}
	policy := map[string]string{"": "required", "forcemount": "required", "automount": "optional", "nomount": "suppressed"}[strings.ToLower(c.value("--mountPolicy"))]
	r.NoMount = c.has("--noMount") || policy == "suppressed"
	if r.NoMount && (c.has("--mountPoint") || c.has("--mountOptions")) {
		return misused("--mountPoint and --mountOptions conflict with noMount")
	}
	for _, o := range strings.FieldsFunc(c.value("--mountOptions"), func(r rune) bool { return r == ',' }) {
		switch o {
		case "nobrowse":
			r.Browse = false
		case "rdonly":
			r.ReadOnly = true
		case "owners", "noowners":
			on := o == "owners"
			r.Owners = &on
		default:
			return refuse("mount option %q is not known: want nobrowse, rdonly, owners or noowners", o)
		}
	}
	if c.has("--mountPoint") {
		point, err := c.mountFolder(c.value("--mountPoint"), true)
		if err != nil {
			return err
		}
		r.MountPoint, r.MakePoint = point, true
	}
	return c.attachAs(c.operands[0], r, policy)
}

// mountFolder is the folder to mount on. One that is to be made may be missing, and its parent may not.
func (c *call) mountFolder(name string, make bool) (string, error) {
	path, err := c.absolute(name)
	if err != nil {
		return "", err
	}
	real, err := followed(path)
	if make && errors.Is(err, fs.ErrNotExist) {
		real, err = followed(filepath.Dir(path))
		real = filepath.Join(real, filepath.Base(path))
	}
	return real, err
}

// infoImage is `diskutil image info`.
func (c *call) infoImage() error {
	return c.look(c.operands[0], func(p place, img container.Image) error {
		f := formatOf(p, img)
		name := f.image
		if name == "" {
			name = f.name
		}
		d := list{"Image Format": name, "Format Description": f.description, "Encryption Info": list{"Is Encrypted": c.secrets.encrypted},
			"Size Info": list{"Total Bytes": img.Size(), "Sector Count": img.Size() / sector}}
		if c.has("--extra") {
			parts, scheme, err := partitions(img)
			if err != nil {
				return err
			}
			d["Partition Info"] = list{"partition-scheme": scheme, "partitions": parts}
		}
		if c.has("--plist") {
			return c.printPlist(d)
		}
		var b strings.Builder
		printTree(&b, d, 0)
		_, err := io.WriteString(c.out, b.String())
		return err
	})
}

// resizeImage is `diskutil image resize`.
func (c *call) resizeImage() error {
	return c.resizeTo(c.operands[0], resizing{
		limits: !c.has("--size"), imageOnly: c.has("--image-only"), smallest: c.value("--size") == "min",
		size: func() (int64, error) {
			n, err := parseDiskutilSize(c.value("--size"))
			if err != nil {
				err = misused("option --size: %v", err)
			}
			return n, err
		},
		print: func(l limits) error {
			if c.has("--plist") {
				return c.printPlist(list{"min": l.min, "current": l.current, "max": l.max})
			}
			_, err := fmt.Fprintf(c.out, "current: %d\nmin: %d\nmax: %d\n", l.current, l.min, l.max)
			return err
		},
	})
}
