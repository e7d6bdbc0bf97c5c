package hdiutil

import (
	"errors"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container"
	"dmgbench/internal/gpt"
)

// checkStructure looks at the container's own files and at both partition tables,
// of images of the work-alike: it stands in for what Apple's attach verifies,
// and finds what a copy that is in order stands in for.
func (c *image) checkStructure(t *tale) error {
	if c.e.o.Vendor != "dmgbench" || c.open != nil { // what is attached, its tool has open
		return nil
	}
	list, err := container.VerifyWith(c.dir, c.file, container.OpenOptions{Passphrase: c.pass()})
	if unknown(err) {
		return nil
	}
	if err != nil {
		return gone(err)
	}
	for _, f := range list {
		t.find(f.String())
	}
	img, err := container.Open(c.dir, c.file, container.OpenOptions{ReadOnly: true, Passphrase: c.pass()})
	switch {
	case unknown(err):
		return nil
	case errors.Is(err, container.ErrCorrupt):
		if len(list) == 0 {
			t.find(err.Error())
		}
		return nil
	case err != nil:
		return gone(err)
	}
	return errors.Join(c.checkTable(t, img), img.Close())
}

// unknown says that the container's format is one that has no check of its own.
func unknown(err error) bool {
	return errors.Is(err, errors.ErrUnsupported)
}

func (c *image) checkTable(t *tale, img blockdev.Device) error {
	if c.fs.name == "none" {
		return nil
	}
	_, warnings, err := gpt.Read(img)
	switch {
	case errors.Is(err, gpt.ErrNoTable), errors.Is(err, gpt.ErrDamaged), errors.Is(err, gpt.ErrInvalid), errors.Is(err, gpt.ErrTooSmall):
		t.find(err.Error())
		return nil
	case err != nil:
		return err
	}
	for _, w := range warnings {
		t.find(string(w))
	}
	return nil
}

// find keeps one finding of a check.
func (t *tale) find(text string) { t.r.Findings = append(t.r.Findings, text) }
