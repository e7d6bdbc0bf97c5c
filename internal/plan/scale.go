package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/image"
	"dmgbench/internal/system/units"
)

const (
	// minFile is the smallest file that scaling makes: the time of a smaller
	// one is mostly that of system calls.
	minFile = units.Bytes(64) << 10
	// fileStep is the smallest difference between scaled sizes of files that
	// were different.
	fileStep = units.Bytes(4) << 10
	mib      = units.Bytes(1) << 20
)

// sizeMap maps published sizes to scaled ones.
type sizeMap map[units.Bytes]units.Bytes

// applyScale multiplies file and image sizes. Sizes that were different stay
// different; images stay large enough for their file system and their files.
func (p *Plan) applyScale(o Overrides) error {
	if o.Scale == 0 || o.Scale == 1 {
		return nil
	}
	factor := strconv.FormatFloat(o.Scale, 'g', -1, 64)
	if !(o.Scale > 0 && o.Scale <= 1000) {
		return &OverrideError{"scale", factor, "want more than 0 and at most 1000"}
	}
	var sizes []units.Bytes
	p.eachFileSize(func(n *units.Bytes) { sizes = append(sizes, *n) })
	files := scaleSizes(sizes, o.Scale, 1, fileStep, func(units.Bytes) units.Bytes { return minFile })
	for i := range p.Inputs {
		if in := &p.Inputs[i]; files.of(in.Size) != in.Size {
			in.PublishedSize = cmp.Or(in.PublishedSize, in.Size)
		}
	}
	p.eachFileSize(func(n *units.Bytes) { *n = files.of(*n) })
	p.replaceValues("file_size", files.text)
	images := p.scaleImages(o.Scale)
	p.Defaults.Size = images.of(p.Defaults.Size)
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) { s.Size = images.of(s.Size) })
	}
	p.replaceValues("size", images.text)
	limited, note := 0, ""
	for from, to := range files {
		if float64(to) > math.Round(float64(from)*o.Scale) {
			limited++
			note = fmt.Sprintf(" (%d of %s stop at %s)", limited, units.Count(len(files), "file size"), minFile)
		}
	}
	p.addChange("scale", "file and image sizes times %s%s", factor, note)
	return nil
}

// of is the scaled size; a size that is not scaled stays.
func (m sizeMap) of(n units.Bytes) units.Bytes {
	if to, ok := m[n]; ok {
		return to
	}
	return n
}

// text is of for sizes written as text; other texts stay.
func (m sizeMap) text(value string) string {
	if n, err := units.ParseBytes(value); err == nil {
		return m.of(n).String()
	}
	return value
}

// eachFileSize visits every size that files have.
func (p *Plan) eachFileSize(visit func(*units.Bytes)) {
	for i := range p.Files {
		for j := range p.Files[i].Parts {
			part := &p.Files[i].Parts[j]
			for k := range part.Sizes {
				visit(&part.Sizes[k])
			}
			for k := range part.Range {
				visit(&part.Range[k])
			}
		}
	}
	for i := range p.Inputs {
		visit(&p.Inputs[i].Size)
	}
}

// scaleSizes maps sizes in rising order to multiples of unit: each is at least
// least(size), and apart from the one below it.
func scaleSizes(sizes []units.Bytes, factor float64, unit, apart units.Bytes,
	least func(units.Bytes) units.Bytes) sizeMap {
	out, next := sizeMap{}, units.Bytes(0)
	for _, n := range slices.Compact(slices.Sorted(slices.Values(sizes))) {
		if n > 0 {
			to := units.Bytes(math.Round(min(float64(n)*factor, 1<<60)))
			out[n] = units.RoundUp(max(to, least(n), next), unit)
			next = out[n] + apart
		}
	}
	return out
}

// scaleImages maps nominal sizes of images: scaled, in whole MiB, with room for
// the file system (to be useful, and where the case damages it to be repaired)
// and for the most live bytes of any case plus a tenth.
func (p *Plan) scaleImages(factor float64) sizeMap {
	need := map[units.Bytes]units.Bytes{p.Defaults.Size: 0}
	for _, c := range p.Cases() {
		if c.Settings.Target == "directory" {
			continue
		}
		damaged := false
		walk(c.Steps, func(s *Step) { damaged = damaged || s.Do == "damage" && s.Kind == "volume" })
		least := units.Bytes(float64(Estimate(p, c).LivePeak) * 1.1 / min(float64(p.Run.FitsIn), 1))
		for _, name := range c.Settings.Filesystems {
			f := image.FilesystemNamed(name)
			least = max(least, units.Bytes(f.UsefulSize))
			if damaged {
				least = max(least, units.Bytes(f.RepairableSize))
			}
		}
		need[c.Settings.Size] = max(need[c.Settings.Size], least)
		walk(c.Steps, func(s *Step) {
			if s.Size > 0 { // of a resize
				need[s.Size] = max(need[s.Size], least)
			}
		})
	}
	return scaleSizes(slices.Collect(maps.Keys(need)), factor, mib, mib,
		func(n units.Bytes) units.Bytes { return need[n] })
}

// replaceValues changes the values of a key wherever axes, selectors, fits,
// claims and tables of the plan name them.
func (p *Plan) replaceValues(key string, change func(string) string) {
	all := func(values []string) {
		for i := range values {
			values[i] = change(values[i])
		}
	}
	fits := map[string]bool{} // along the key
	for _, f := range p.Fits {
		fits[f.Name] = f.Along == key
	}
	visit(reflect.ValueOf(p).Elem(), func(part any) bool {
		switch x := part.(type) {
		case *Choice:
			if x.Key == key {
				all(x.Values)
			}
		case *Fit:
			if x.Along == key {
				all(x.Points)
				all(x.Predict)
			}
		case *Assert:
			if x.Along == key || fits[x.Fit] {
				all(x.At)
			}
		case *TableLine:
			if c := x.Where.Find(key); c != nil {
				before := slices.Clone(c.Values)
				all(c.Values)
				x.retitle(*c, before)
			}
			return false
		}
		return true
	})
}

// visit calls f with pointers to all structs inside v; it does not descend into
// those for which f returns false.
func visit(v reflect.Value, f func(part any) bool) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), f)
		}
	case reflect.Struct:
		if !v.CanSet() || !f(v.Addr().Interface()) {
			return
		}
		for i := range v.NumField() {
			visit(v.Field(i), f)
		}
	}
}

var sizeInTitle = regexp.MustCompile(`\d ?[kKMGT]i?B\b`)

// retitle adds to a title the size or place that is run, where the plan as
// written has another. A line without a title has its selection.
func (l *TableLine) retitle(now Choice, before []string) {
	switch what := map[string]string{"file_size": "files", "size": "images"}[now.Key]; {
	case l.Title == "" || slices.Equal(now.Values, before):
	case now.Key == "place":
		l.Title += " (here, not " + strings.Join(before, " or ") + ")"
	case sizeInTitle.MatchString(l.Title):
		l.Title += " (here " + what + " of " + strings.Join(now.Values, " or ") + ")"
	}
}
