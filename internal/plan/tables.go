package plan

import (
	"slices"
	"strings"
	"time"

	"dmgbench/internal/units"
)

var onTable = table[On]{name: "on", keys: []key[On]{
	textKey("machine", anyText, func(o *On) *string { return &o.Machine }),
	textKey("os", anyText, func(o *On) *string { return &o.OS }),
	textKey("tool", anyText, func(o *On) *string { return &o.Tool }),
	dateKey("date", func(o *On) *time.Time { return &o.Date }),
}}

func theOnTable() *table[On] { return &onTable }

func (o *On) said() bool { return *o != On{} }

var sourceTable = table[Source]{name: "[source]", keys: []key[Source]{
	textKey("title", lineText, func(s *Source) *string { return &s.Title }).must(),
	textKey("author", anyText, func(s *Source) *string { return &s.Author }),
	textKey("url", anyText, func(s *Source) *string { return &s.URL }),
	dateKey("date", func(s *Source) *time.Time { return &s.Date }),
	tableKey("on", theOnTable, func(s *Source) *On { return &s.On }, func(s *Source) bool { return s.On.said() }),
}}

var manualTable = table[Manual]{name: "[[manual]]", keys: []key[Manual]{
	textKey("name", nameText, func(m *Manual) *string { return &m.Name }).must(),
	listKey("values", looseType, func(m *Manual, v []string) { m.Values = v }, func(m *Manual) []string { return m.Values }).must(),
	textKey("instructions", someText, func(m *Manual) *string { return &m.Instructions }).must(),
	enumKey("check", func(m *Manual) *string { return &m.Check }, "cpus", "memory", "none").or(`"none"`),
}, finish: finishManual}

func finishManual(r *reader, n *node, m *Manual) {
	if v := n.get("values"); v != nil {
		r.distinct(v, "values")
		if len(v.items) == 0 && v.kind == arrayNode {
			r.problem(v.off, "values", "values: the list is empty")
		}
	}
	reserved := append(append(settingNames(), "baseline", "exclude", "do"), "phase", "cycle", "file_size", "set")
	if slices.Contains(reserved, m.Name) {
		r.problem(n.get("name").off, "name", "a manual axis cannot be called %q: that is a key of its own", m.Name)
	}
}

var inputTable = table[Input]{name: "input", keys: []key[Input]{
	textKey("about", someText, func(i *Input) *string { return &i.About }).must(),
	sizeKey("size", sizeType, func(i *Input) *units.Bytes { return &i.Size }),
	flagKey("optional", func(i *Input) *bool { return &i.Optional }),
	sizeKey("published_size", sizeType, func(i *Input) *units.Bytes { return &i.PublishedSize }),
}, finish: func(r *reader, n *node, i *Input) {
	if i.Optional && n.get("size") == nil {
		r.problem(n.key, "size", "input %q is optional and has no size", i.Name).hintf("a generated file of that size stands in for it")
	}
}}

// fileForm is a file set as written: sizes stand in the table itself or in parts.
type fileForm struct {
	FileSet
	one FilePart
}

func partKeys[T any](at func(*T) *FilePart) []key[T] {
	return []key[T]{
		listKey("sizes", sizeType, func(t *T, v []string) { at(t).Sizes = parseSizes(v) }, func(t *T) []string { return sizeTexts(at(t).Sizes) }),
		listKey("range", sizeType, func(t *T, v []string) {
			if s := parseSizes(v); len(s) == 2 {
				at(t).Low, at(t).High = s[0], s[1]
			}
		}, func(t *T) []string {
			if at(t).High == 0 {
				return nil
			}
			return sizeTexts([]units.Bytes{at(t).Low, at(t).High})
		}),
		numberKey("count", 1, 1000000, func(t *T) *int { return &at(t).Count }),
		enumKey("spread", func(t *T) *string { return &at(t).Spread }, "log", "linear"),
		numberKey("sets", 1, 100000, func(t *T) *int { return &at(t).Sets }),
	}
}

func parseSizes(list []string) []units.Bytes {
	out := make([]units.Bytes, len(list))
	for i, s := range list {
		out[i], _ = units.ParseBytes(s)
	}
	return out
}

func sizeTexts(list []units.Bytes) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.String()
	}
	return out
}

var partTable = table[FilePart]{name: "part", keys: partKeys(func(p *FilePart) *FilePart { return p }), finish: finishPart}

func finishPart(r *reader, n *node, p *FilePart) {
	sizes, span, count := n.get("sizes"), n.get("range"), n.get("count")
	switch {
	case r.broken:
	case sizes == nil && span == nil:
		r.problem(n.key, "sizes", "no file sizes").hintf("give sizes = [ … ], or range = [ … ] and count")
	case sizes != nil && span != nil:
		r.problem(span.key, "range", "sizes and range contradict each other").hintf("use parts = [ { sizes = … }, { range = … } ] for a mixture")
	case sizes != nil && len(sizes.items) == 0 && sizes.kind == arrayNode:
		r.problem(sizes.off, "sizes", "sizes: the list is empty")
	case span != nil && span.kind == arrayNode && len(span.items) != 2:
		r.problem(span.off, "range", "range: want two sizes, these are %d", len(span.items))
	case span != nil && p.Low > p.High:
		r.problem(span.off, "range", "range: %s is more than %s", p.Low, p.High)
	case span != nil && count == nil:
		r.problem(n.key, "count", "range needs count, the number of draws")
	}
	for _, name := range []string{"count", "spread"} {
		if k := n.get(name); k != nil && span == nil {
			r.problem(k.key, name, "%s has no meaning without range", name)
		}
	}
	p.Sets = max(p.Sets, 1)
	if span != nil && p.Spread == "" {
		p.Spread = "log"
	}
}

var fileTable = table[fileForm]{name: "file set", keys: append(partKeys(func(f *fileForm) *FilePart { return &f.one }),
	tablesKey("parts", func() *table[FilePart] { return &partTable }, func(f *fileForm) *[]FilePart { return &f.Parts }),
	enumKey("order", func(f *fileForm) *string { return &f.Order }, "shuffled", "as-listed", "shuffled-all").or(`"shuffled"`),
	enumKey("data", func(f *fileForm) *string { return &f.Data }, "random", "zero", "mixed", "text").or(`"random"`),
	shareKey("compressible", func(f *fileForm) *units.Share { return &f.Compressible }),
), finish: finishFiles}

// maxFiles bounds one file set: a plan is no place for a denial of service.
const maxFiles = 1_000_000

func finishFiles(r *reader, n *node, f *fileForm) {
	if parts := n.get("parts"); parts == nil {
		finishPart(r, n, &f.one)
		f.Parts = []FilePart{f.one}
	} else {
		for _, name := range []string{"sizes", "range", "count", "spread", "sets"} {
			if k := n.get(name); k != nil {
				r.problem(k.key, name, "%s and parts contradict each other", name).hintf("move %s into a part", name)
			}
		}
		if len(parts.items) == 0 && parts.kind == arrayNode {
			r.problem(parts.off, "parts", "parts: the list is empty")
		}
	}
	total := 0
	for _, p := range f.Parts {
		total += min((len(p.Sizes)+p.Count)*p.Sets, 1<<40)
	}
	if bytes := f.bytes(); bytes > float64(maxSize) {
		r.problem(n.key, f.Name, "file set %q holds up to %.3g EB, more than %s", f.Name, bytes/1e18, maxSize)
	}
	if total > maxFiles {
		r.problem(n.key, f.Name, "file set %q holds %d files, more than %d", f.Name, total, maxFiles)
	}
	share := n.get("compressible")
	switch {
	case f.Data == "mixed" && f.Compressible == 0:
		r.problem(n.key, "compressible", "data = \"mixed\" needs compressible, the share of zeros")
	case f.Data != "mixed" && share != nil && f.Compressible != 0:
		r.problem(share.key, "compressible", "compressible has no meaning with data = %q", f.Data).hintf("set data = \"mixed\"")
	case f.Compressible > 1:
		r.problem(share.off, "compressible", "compressible: %s is more than all", f.Compressible)
	}
}

// bytes is the most that one write of the set can put on a volume. It is no
// integer because the sum of a careless plan need not be one.
func (f *fileForm) bytes() float64 {
	total := 0.0
	for _, p := range f.Parts {
		one := float64(p.High) * float64(p.Count)
		for _, s := range p.Sizes {
			one += float64(s)
		}
		total += one * float64(p.Sets)
	}
	return total
}

// form is the file set as it is written.
func (fs FileSet) form() fileForm {
	f := fileForm{FileSet: fs}
	if len(fs.Parts) == 1 {
		f.one, f.Parts = fs.Parts[0], nil
	}
	return f
}

var blockTable = table[Block]{name: "[[protocol]]", keys: []key[Block]{
	selectorKeyOf("when", false, func(b *Block) *Selector { return &b.When }),
	{name: "steps", typ: "list of steps", required: true,
		decode: func(r *reader, n *node, b *Block) { b.Steps = r.steps(n) },
		encode: func(b *Block) (string, bool) { return stepsTOML(b.Steps), true },
		json:   stepsKey().json},
}}

// selectorKeyOf is a key that holds a selector.
func selectorKeyOf[T any](name string, samples bool, f func(*T) *Selector) key[T] {
	return key[T]{name: name, typ: "selector",
		decode: func(r *reader, n *node, dst *T) { *f(dst) = r.selector(n, name, samples) },
		encode: func(src *T) (string, bool) { return f(src).toml(), len(*f(src)) > 0 },
		json:   func() map[string]any { return map[string]any{"$ref": "#/$defs/selector"} }}
}

// requirements are the host facts that a plan may ask for.
var requirements = []struct {
	name  string
	value *scalar
}{
	{"power", enumType(nil, "ac", "battery")}, {"low_power", enumType(nil, "off", "on")}, {"thermal", enumType(nil, "nominal")},
	{"os", enumType(nil, "macos", "linux")}, {"memory_pressure", enumType(nil, "normal")},
	{"virtual", enumType(nil, "no", "yes")}, {"translated", enumType(nil, "no", "yes")}, {"busy", enumType(nil, "no")},
	{"medium", enumType(nil, "ssd", "hdd", "memory")}, {"location", enumType(nil, "internal", "external")},
	{"cpus", numberType(1, 4096)}, {"memory", sizeType},
}

var requireTable = table[RunOptions]{name: "require", other: readRequirement, otherNames: func(*reader) []string {
	var out []string
	for _, q := range requirements {
		out = append(out, q.name)
	}
	return out
}, otherJSON: func() (map[string]any, any) {
	out := map[string]any{}
	for _, q := range requirements {
		out[q.name] = q.value.json
	}
	return out, false
}}

func readRequirement(r *reader, n *node, o *RunOptions) bool {
	for _, q := range requirements {
		if q.name == n.name {
			if text, ok := r.scalar(n, n.name, q.value); ok {
				o.Require = append(o.Require, KeyValue{n.name, text})
			}
			return true
		}
	}
	return false
}

func requireTOML(o *RunOptions) (string, bool) {
	var lines []string
	for _, kv := range o.Require {
		for _, q := range requirements {
			if q.name == kv.Key {
				lines = append(lines, kv.Key+" = "+q.value.toml(kv.Value))
			}
		}
	}
	return "{ " + strings.Join(lines, ", ") + " }", len(lines) > 0
}

var estimators = []string{"aggregate", "mean", "median", "trimmed", "theil-sen", "least-squares", "weighted"}

var runTable = table[RunOptions]{name: "[run]", keys: append([]key[RunOptions]{
	roundsKey(),
	numberKey("max_rounds", 1, mostRounds, func(o *RunOptions) *int { return &o.MaxRounds }),
	spanKey("max_time", func(o *RunOptions) *units.Duration { return &o.MaxTime }),
	sizeKey("max_written", sizeType, func(o *RunOptions) *units.Bytes { return &o.MaxWritten }),
	flagKey("baseline", func(o *RunOptions) *bool { return &o.Baseline }).or("true").always(),
	flagKey("canary", func(o *RunOptions) *bool { return &o.Canary }).or("true").always(),
	scalarKey("seed", numberType(0, 1<<63-1), func(o *RunOptions, s string) { o.Seed = parseUint(s) },
		func(o *RunOptions) (string, bool) { return uintText(o.Seed), true }).or("1"),
	{name: "require", typ: "table",
		decode: func(r *reader, n *node, o *RunOptions) { requireTable.read(r, n, o) },
		encode: requireTOML,
		json:   func() map[string]any { return requireTable.schema() }},
	enumKey("estimator", func(o *RunOptions) *string { return &o.Estimator }, estimators...).or(`"aggregate"`),
	shareKey("fits_in", func(o *RunOptions) *units.Share { return &o.FitsIn }).or(`"98%"`),
	shareKey("precision", func(o *RunOptions) *units.Share { return &o.Precision }),
}, steadyKeys()...), finish: func(r *reader, n *node, o *RunOptions) {
	finishRounds(r, n, o)
	finishSteady(r, n, o)
	switch at := n.get("fits_in"); {
	case at != nil && o.FitsIn > 1:
		r.problem(at.off, "fits_in", "fits_in: %s is more than the volume", o.FitsIn)
	case at != nil && o.FitsIn == 0 && at.kind == stringNode && strings.Trim(at.text, "0.% ") == "":
		r.problem(at.off, "fits_in", "fits_in: %s leaves no room for files", o.FitsIn)
	}
}}
