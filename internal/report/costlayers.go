package report

import (
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// layer is one thing that a file in an image has below it and a file in a native folder has not.
type layer uint8

const (
	layerRaw     layer = 1 << iota // an image and the file system in it: all images have these
	layerHelper                    // a process that serves the image, where the kernel alone could serve a raw one
	layerFormat                    // another format than the raw one
	layerSecrecy                   // encryption
)

// layersOf are the layers of an image. Where nobody said what served it, that is no layer of its own.
func layersOf(c *result.Case) layer {
	out := layerRaw
	if by := servedBy(c); by != "" && by != "loop" && by != "kernel" {
		out |= layerHelper
	}
	if c.Target.Format != "UDRW" {
		out |= layerFormat
	}
	if !unencrypted(c) {
		out |= layerSecrecy
	}
	return out
}

func servedBy(c *result.Case) string { return c.Target.ServedBy }

// text names the layers that one part has.
func (l layer) text(c *result.Case) string {
	helper := "helper process"
	if strings.HasPrefix(servedBy(c), "fuse") {
		helper = "FUSE"
	}
	switch l {
	case layerRaw:
		return "raw image and file system"
	case layerRaw | layerHelper:
		return "raw image, " + helper + " and file system"
	}
	if l&layerRaw != 0 {
		return partImage
	}
	var words []string
	for _, one := range []struct {
		layer layer
		word  string
	}{{layerHelper, helper}, {layerFormat, "format"}, {layerSecrecy, "encryption"}} {
		if l&one.layer != 0 {
			words = append(words, one.word)
		}
	}
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// link is one part: what c took more than what stands before it in the chain.
type link struct {
	name   string
	layers layer // that c has and the one before it has not; 0 for directories
	c      *result.Case
}

// chainOf is the way from the native folder to a case over the cases that have the layers below it, each as the case
// has them: a layer of which no case tells what it costs is one part with the next one.
func chainOf(c, native *result.Case, find func(*result.Case, func(*result.Case) bool) *result.Case) []link {
	chain := []link{{name: partNative, c: native}}
	switch {
	case c == native:
		return chain
	case c.Target.Kind == "directory":
		return append(chain, link{name: partReserved, c: c})
	}
	own, before := layersOf(c), layer(0)
	for _, top := range []layer{layerRaw, layerHelper, layerFormat, layerSecrecy} {
		below := own & (top | (top - 1))
		if own&top == 0 {
			continue
		}
		d := c
		if below != own {
			d = find(c, func(d *result.Case) bool { return beneath(c, d, below) })
		}
		if d != nil {
			chain = append(chain, link{(below &^ before).text(c), below &^ before, d})
			before = below
		}
	}
	return chain
}

// beneath reports whether d is c with no more than these of its layers.
func beneath(c, d *result.Case, layers layer) bool {
	if d.Target.Kind != "image" || d.Target.Filesystem != c.Target.Filesystem || layersOf(d) != layers {
		return false
	}
	but := []string{"encryption", "served_by"}
	if layers&layerFormat == 0 {
		but = append(but, "format", "band_size")
	} else if d.Target.Format != c.Target.Format {
		return false
	}
	return (layers&layerHelper == 0 || servedBy(d) == servedBy(c)) && agree(c, d, but...)
}

// unsplit says what the cases of a picture leave together, and what would tell it apart.
func unsplit(cases []costCase) string {
	has := func(of func(l layer) bool) bool {
		return slices.ContainsFunc(cases, func(c costCase) bool {
			return slices.ContainsFunc(c.parts, func(p costPart) bool { return of(p.layers) })
		})
	}
	out := TextIf(has(func(l layer) bool { return l&layerRaw != 0 && l&(layerFormat|layerSecrecy) != 0 }),
		" This run has no unencrypted raw image (UDRW) with the same files: what lies below the image is one part.")
	out += TextIf(has(func(l layer) bool { return l&(layerRaw|layerHelper) == layerHelper && l != layerHelper }),
		" It has no raw image that a helper process serves (served_by = \"helper\"): what the helper costs is one part with what comes with it.")
	return out + TextIf(has(func(l layer) bool { return l&layerRaw == 0 && l&layerFormat != 0 && l&layerSecrecy != 0 }),
		" It has no unencrypted image of the same format: format and encryption are one part.")
}
