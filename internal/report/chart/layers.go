package chart

import (
	"slices"
	"strings"

	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// layer is one thing that a file in an image passes through and a file in a
// native folder does not.
type layer uint8

const (
	layerRaw        layer = 1 << iota // an image and the file system in it: all images have these
	layerHelper                       // a process that serves the image, where the kernel alone could serve a raw one
	layerFormat                       // another format than the raw one
	layerEncryption                   // encryption
)

// layersOf are the layers of an image. Where the run did not record what served
// it, it is not a layer of its own.
//
// "loop" and "kernel" are served by the kernel alone: no process is between file and image.
func layersOf(c *result.Case) layer {
	out := layerRaw
	if by := c.Target.ServedBy; by != "" && by != "loop" && by != "kernel" {
		out |= layerHelper
	}
	if c.Target.Format != "UDRW" {
		out |= layerFormat
	}
	if c.Target.Encryption != "none" && c.Target.Encryption != "" {
		out |= layerEncryption
	}
	return out
}

// name names the layers that are one part of the time of a case.
func (l layer) name(c *result.Case) string {
	helper := "helper process"
	if strings.HasPrefix(c.Target.ServedBy, "fuse") {
		helper = "FUSE"
	}
	switch {
	case l == layerRaw:
		return "raw image and file system"
	case l == layerRaw|layerHelper:
		return "raw image, " + helper + " and file system"
	case l&layerRaw != 0:
		return "image as a whole"
	}
	var words []string
	for i, word := range []string{helper, "format", "encryption"} {
		if l&(layerHelper<<i) != 0 {
			words = append(words, word)
		}
	}
	text := strings.Join(words, ", ")
	if at := strings.LastIndex(text, ", "); at >= 0 {
		text = text[:at] + " and " + text[at+2:]
	}
	return text
}

// link is one part of the time of a case: what the case c of the link took more
// than that of the link before.
type link struct {
	name   string
	layers layer // that c has and the case before has not; 0 for directories
	c      *result.Case
}

// chainOf is the way from the native folder to a case over the cases that have
// only its lower layers, each as the case has them. A layer that no case isolates is one part with the next one.
func chainOf(c, native *result.Case, find func(*result.Case, func(*result.Case) bool) *result.Case) []link {
	chain := []link{{name: report.NativeFolder, c: native}}
	switch {
	case c == native:
		return chain
	case c.Target.Kind == "directory":
		return append(chain, link{name: partReserved, c: c})
	}
	own, before := layersOf(c), layer(0)
	// A case without the layer, or a layer that no case isolates, adds no link.
	for _, top := range []layer{layerRaw, layerHelper, layerFormat, layerEncryption} {
		below := own & (top | (top - 1))
		if own&top == 0 {
			continue
		}
		d := c
		if below != own {
			d = find(c, func(d *result.Case) bool { return hasOnly(c, d, below) })
		}
		if d != nil {
			chain = append(chain, link{(below &^ before).name(c), below &^ before, d})
			before = below
		}
	}
	return chain
}

// hasOnly reports whether d is c with no more than these of its layers.
//
// Keys that go with a layer that it lacks may differ: an unencrypted case has
// no key size.
func hasOnly(c, d *result.Case, layers layer) bool {
	if d.Target.Kind != "image" || d.Target.Filesystem != c.Target.Filesystem || layersOf(d) != layers {
		return false
	}
	except := []string{"encryption", "served_by"}
	if layers&layerFormat == 0 {
		except = append(except, "format", "band_size")
	} else if d.Target.Format != c.Target.Format {
		return false
	}
	return (layers&layerHelper == 0 || c.Target.ServedBy == d.Target.ServedBy) && agree(c, d, except...)
}

// agree reports whether two cases agree in all keys that both have, with
// exceptions.
func agree(a, b *result.Case, except ...string) bool {
	return a.Target.Place == b.Target.Place && !slices.ContainsFunc(b.Keys, func(kv [2]string) bool {
		return !slices.Contains(except, kv[0]) &&
			slices.ContainsFunc(a.Keys, func(own [2]string) bool { return own[0] == kv[0] && own[1] != kv[1] })
	})
}

// unsplit are the layers that some cases of a picture have in one part, which a
// run with more cases would split: image and file system, helper process, and
// format.
type unsplit struct{ Raw, Helper, Format bool }

func unsplitOf(cases []costCase) (u unsplit) {
	for _, c := range cases {
		for _, p := range c.parts {
			l := p.layers
			u.Raw = u.Raw || l&layerRaw != 0 && l&(layerFormat|layerEncryption) != 0
			u.Helper = u.Helper || l&(layerRaw|layerHelper) == layerHelper && l != layerHelper
			u.Format = u.Format || l&layerRaw == 0 && l&layerFormat != 0 && l&layerEncryption != 0
		}
	}
	return u
}
