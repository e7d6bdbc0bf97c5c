package plan

import (
	"cmp"
	"slices"
	"time"
)

// takes says whether a published figure is one that the operand names. A figure
// that leaves a key open is said of all its values, except that figures of the
// native folder, of one file size and of one set are only meant where they are
// named. A rate of streaming can be had from its time.
func (o *Operand) takes(f *Published, source *Source) bool {
	derived := o.Quantity == "stream" && f.Quantity == "stream_time"
	if f.Quantity != o.Quantity && !derived || !o.On.within(f.taken(source)) {
		return false
	}
	for _, want := range o.Where {
		i := slices.IndexFunc(f.Where, func(have Choice) bool { return have.Key == want.Key })
		if i >= 0 && !slices.ContainsFunc(f.Where[i].Values, func(h string) bool {
			return slices.ContainsFunc(want.Values, func(w string) bool { return sameValue(want.Key, h, w) })
		}) {
			return false
		}
	}
	for _, key := range []string{"file_size", "set"} {
		if o.Where.names(key) != f.Where.names(key) {
			return false
		}
	}
	return o.Where.native() == f.Where.native()
}

// native says whether a selector means the plain folder.
func (s Selector) native() bool {
	return slices.ContainsFunc(s, func(c Choice) bool {
		return c.Key == "baseline" && slices.Contains(c.Values, "true") || c.Key == "target" && slices.Contains(c.Values, "directory")
	})
}

// taken is what a figure was taken with: its own, else the source's.
func (f *Published) taken(source *Source) On {
	on := f.On
	if source == nil {
		return on
	}
	on.Machine, on.OS, on.Tool = cmp.Or(on.Machine, source.On.Machine), cmp.Or(on.OS, source.On.OS), cmp.Or(on.Tool, source.On.Tool)
	for _, d := range []time.Time{source.On.Date, source.Date} {
		if on.Date.IsZero() {
			on.Date = d
		}
	}
	return on
}

// within says whether everything that o names is the same in other.
func (o On) within(other On) bool {
	return (o.Machine == "" || o.Machine == other.Machine) && (o.OS == "" || o.OS == other.OS) &&
		(o.Tool == "" || o.Tool == other.Tool) && (o.Date.IsZero() || o.Date.Equal(other.Date))
}
