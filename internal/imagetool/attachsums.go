package imagetool

import (
	"fmt"

	"dmgbench/internal/container"
	"dmgbench/internal/container/udif"
)

// checkSums computes the checksums of an image that stores some before hdiutil
// attaches it. `diskutil image` has no such option, and looks at none.
func (c *call) checkSums(operand string) error {
	switch {
	case c.has("-verify") && c.has("-noverify"):
		return misused("both -verify and -noverify")
	case c.tool != "hdiutil" || c.has("-noverify"):
		return nil
	}
	return c.look(operand, func(_ place, img container.Image) error {
		t, ok := img.(container.Tabled)
		if !ok {
			return nil
		}
		report, err := t.UDIF().Verify(c.ctx, udif.StreamOptions{})
		if err != nil {
			return err
		}
		bad := report.Err()
		switch {
		case bad == nil:
			return nil
		case c.has("-ignorebadchecksums"):
			fmt.Fprintf(c.err, "%s: attach: WARNING: %v\n", c.tool, bad)
			return nil
		}
		return &refusal{words: "corrupt image", err: bad}
	})
}

// keepSums prepares checkRead, before the image is read.
func keepSums(img container.Image) {
	if t, ok := img.(container.Tabled); ok {
		t.UDIF().KeepSums()
	}
}

// checkRead holds what was read of an image against the checksums that it stores; what was not read yet is read for it.
// With -noverify what differs is a warning.
func (c *call) checkRead(img container.Image) error {
	t, ok := img.(container.Tabled)
	if !ok {
		return nil
	}
	report, err := t.UDIF().VerifyRead(c.ctx, udif.StreamOptions{})
	if err != nil {
		return err
	}
	bad := report.Err()
	switch {
	case bad == nil:
		return nil
	case c.has("-noverify"):
		c.warn("%v", bad)
		return nil
	}
	return fmt.Errorf("%w: %w", container.ErrData, bad)
}
