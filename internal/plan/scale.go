package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/units"
)

const (
	// minFile is the smallest file that scaling makes: below it, system calls are all that is measured.
	minFile = units.Bytes(64) << 10
	// fileStep keeps scaled sizes apart that were apart.
	fileStep = units.Bytes(4) << 10
	mib      = units.Bytes(1) << 20
)

// sizeMap turns published sizes into scaled ones.
type sizeMap map[units.Bytes]units.Bytes

// applyScale multiplies file and image sizes. Sizes that were different stay
// different; images stay large enough for their file system and their files.
func (p *Plan) applyScale(o Overrides) error {
	if o.Scale == 0 || o.Scale == 1 {
		return nil
	}
	if !(o.Scale > 0 && o.Scale <= 1000) {
		return &OverrideError{"scale", strconv.FormatFloat(o.Scale, 'g', -1, 64), "want more than 0 and at most 1000"}
	}
	files := scaleSizes(p.fileSizes(), o.Scale, minFile, fileStep)
	for i := range p.Files {
		for j := range p.Files[i].Parts {
			part := &p.Files[i].Parts[j]
			part.Low, part.High = files.of(part.Low), files.of(part.High)
			for k := range part.Sizes {
				part.Sizes[k] = files.of(part.Sizes[k])
			}
		}
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if to := files.of(in.Size); to != in.Size {
			in.PublishedSize, in.Size = cmp.Or(in.PublishedSize, in.Size), to
		}
	}
	p.reselect("file_size", files.texts)
	images := p.imageSizes(o.Scale)
	p.resize(images)
	p.reselect("size", images.texts)
	p.changed("scale", "file and image sizes times %s%s", strconv.FormatFloat(o.Scale, 'g', -1, 64), files.raised(o.Scale))
	return nil
}

// raised reports how many sizes of files would have become too small to be timed and were not made so small, "" if none.
func (m sizeMap) raised(factor float64) string {
	n := 0
	for from, to := range m {
		if float64(to) > math.Round(float64(from)*factor) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %s stop at %s)", n, plural(len(m), "file size"), minFile)
}

func (m sizeMap) of(n units.Bytes) units.Bytes {
	if to, ok := m[n]; ok {
		return to
	}
	return n
}

// fileSizes lists every size that files have.
func (p *Plan) fileSizes() []units.Bytes {
	var out []units.Bytes
	for _, f := range p.Files {
		for _, part := range f.Parts {
			out = append(out, part.Sizes...)
			if part.High > 0 {
				out = append(out, part.Low, part.High)
			}
		}
	}
	for _, in := range p.Inputs {
		if in.Size > 0 {
			out = append(out, in.Size)
		}
	}
	return out
}

// scaleSizes maps sizes in rising order, each at least apart from the one below it.
func scaleSizes(sizes []units.Bytes, factor float64, least, apart units.Bytes) sizeMap {
	sizes = slices.Compact(slices.Sorted(slices.Values(sizes)))
	out := sizeMap{}
	next := least
	for _, n := range sizes {
		to := max(units.Bytes(math.Round(min(float64(n)*factor, 1<<60))), next)
		out[n], next = to, to+apart
	}
	return out
}

// imageSizes maps nominal sizes of images: scaled, but with room for the file
// system and for the most live bytes of any case plus a tenth.
func (p *Plan) imageSizes(factor float64) sizeMap {
	need := map[units.Bytes]units.Bytes{p.Defaults.Size: 0}
	for _, c := range p.Cases() {
		s := &c.Settings
		if s.Target == "directory" {
			continue
		}
		live := float64(Estimate(p, c).LivePeak) * 1.1 / min(float64(p.Run.FitsIn), 1)
		least := max(units.Bytes(live), smallestUseful(c))
		need[s.Size] = max(need[s.Size], least)
		walk(c.Steps, func(st *Step) {
			if st.Do == "resize" {
				need[st.Size] = max(need[st.Size], least)
			}
		})
	}
	out := sizeMap{}
	next := units.Bytes(0)
	for _, n := range slices.Sorted(maps.Keys(need)) {
		if n == 0 {
			continue
		}
		to := max(units.Bytes(math.Round(min(float64(n)*factor, 1<<60))), need[n], next)
		out[n] = roundUp(to, mib)
		next = out[n] + mib
	}
	return out
}

// resize gives images their new sizes.
func (p *Plan) resize(m sizeMap) {
	p.Defaults.Size = m.of(p.Defaults.Size)
	p.replaceInCases("size", m.texts)
	for _, b := range p.Protocol {
		walk(b.Steps, func(s *Step) {
			if s.Do == "resize" {
				s.Size = m.of(s.Size)
			}
		})
	}
}

// replaceInCases changes the values of a key where cases and the blocks of the protocol name them.
func (p *Plan) replaceInCases(key string, values func([]string) []string) {
	for i, a := range p.Axes {
		if a.Key == key {
			p.Axes[i].Values = values(a.Values)
		}
	}
	for _, s := range slices.Concat(p.Extra, p.Exclude) {
		s.replace(key, values)
	}
	for _, b := range p.Protocol {
		b.When.replace(key, values)
	}
}

// texts maps sizes written as text; other texts stay.
func (m sizeMap) texts(values []string) []string {
	out := slices.Clone(values)
	for i, v := range values {
		if n, err := units.ParseBytes(v); err == nil {
			out[i] = m.of(n).String()
		}
	}
	return out
}

// replace changes the values of a key.
func (s Selector) replace(key string, values func([]string) []string) {
	for i := range s {
		if s[i].Key == key {
			s[i].Values = values(s[i].Values)
		}
	}
}

// reselect makes figures, claims, fits, relations and tables name the values that a key
// has now, so that they still find what they are about.
func (p *Plan) reselect(key string, values func([]string) []string) {
	for i := range p.Published {
		p.Published[i].Where.replace(key, values)
	}
	for i := range p.Claims {
		p.Claims[i].Assert.reselect(key, values, p)
	}
	for i := range p.Fits {
		f := &p.Fits[i]
		f.Where.replace(key, values)
		if f.Along == key {
			f.Points, f.Predict = values(f.Points), values(f.Predict)
		}
	}
	for i := range p.Relations {
		l := &p.Relations[i]
		l.X.Where.replace(key, values)
		l.Y.Where.replace(key, values)
		for _, s := range l.Over {
			s.replace(key, values)
		}
	}
	for i := range p.Tables {
		for _, lines := range [][]TableLine{p.Tables[i].Columns, p.Tables[i].Rows} {
			for j := range lines {
				before := lines[j].Where.clone()
				lines[j].Where.replace(key, values)
				lines[j].retitle(before, key)
			}
		}
	}
}

var sizeInTitle = regexp.MustCompile(`\d ?[kKMGT]i?B\b`)

// retitle adds to a title the size or place that is run, where the plan as written has another.
func (l *TableLine) retitle(before Selector, key string) {
	for i, c := range l.Where {
		switch {
		case c.Key != key || slices.Equal(c.Values, before[i].Values):
		case key == "place":
			l.Title += " (here, not " + strings.Join(before[i].Values, " or ") + ")"
		case sizeInTitle.MatchString(l.Title):
			l.Title += " (here " + map[string]string{"file_size": "files",
				"size": "images"}[key] + " of " + strings.Join(c.Values, " or ") + ")"
		}
	}
}

func (a *Assert) reselect(key string, values func([]string) []string, p *Plan) {
	a.Left.Where.replace(key, values)
	a.Right.Where.replace(key, values)
	a.Where.replace(key, values)
	for i := range a.Of {
		a.Of[i].Where.replace(key, values)
	}
	if a.Along == key || slices.ContainsFunc(p.Fits, func(f Fit) bool { return f.Name == a.Fit && f.Along == key }) {
		a.At = values(a.At)
	}
	for i := range a.Parts {
		a.Parts[i].reselect(key, values, p)
	}
}
