package plan

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"dmgbench/internal/units"
)

// Parse reads the text of a plan. name is its file, for messages, and names the
// plan. All findings come back at once; the plan is nil if any is an error, and
// problems is nil if there are no findings.
func Parse(name string, text []byte) (*Plan, *Problems) {
	r := newReader(name, text)
	if !r.encoded() {
		return nil, r.problems()
	}
	root := r.parseTree()
	r.manual = manualNames(root)
	p := &Plan{Name: nameOf(name)}
	rootTable.read(r, root, p)
	r.groups(root, p)
	if !r.broken {
		r.check(root, p)
	}
	problems := r.problems()
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return p, problems
}

// encoded refuses text that is not UTF-8 and skips a byte order mark.
func (r *reader) encoded() bool {
	switch {
	case len(r.text) > MaxSize:
		size := int64(len(r.text))
		r.text, r.lines = nil, []int{0}
		r.problem(0, "", "%s", tooLarge(size).Error())
		return false
	case bytes.HasPrefix(r.text, []byte("\xff\xfe")) || bytes.HasPrefix(r.text, []byte("\xfe\xff")):
		r.text, r.lines = nil, []int{0}
		r.problem(0, "", "the text is UTF-16").hintf("save the plan as UTF-8")
		return false
	case bytes.HasPrefix(r.text, []byte("\ufeff")):
		r.bom = len("\ufeff")
	}
	if i := bytes.IndexByte(r.text, 0); i >= 0 {
		r.problem(i, "", "the text holds a zero byte").hintf("a plan is a TOML file; this looks like something else")
		return false
	}
	for i := 0; i < len(r.text); {
		c, n := utf8.DecodeRune(r.text[i:])
		if c == utf8.RuneError && n <= 1 {
			r.problem(i, "", "the text is not UTF-8: byte 0x%02x", r.text[i]).hintf("save the plan as UTF-8")
			return false
		}
		i += n
	}
	return true
}

// manualNames looks ahead: selectors anywhere may name manual axes.
func manualNames(root *node) []string {
	var out []string
	if list := root.get("manual"); list != nil {
		for _, it := range list.items {
			if n := it.get("name"); n != nil && n.kind == stringNode {
				out = append(out, n.text)
			}
		}
	}
	return out
}

// rootTable is the plan as a whole, in the order of the canonical form.
var rootTable = table[Plan]{name: "plan", keys: []key[Plan]{
	scalarKey("schema", schemaType, func(*Plan, string) {},
		func(*Plan) (string, bool) { return itoa(Schema), true }).must(),
	textKey("title", lineText, func(p *Plan) *string { return &p.Title }).must(),
	textKey("summary", anyText, func(p *Plan) *string { return &p.Summary }),
	listKey("choices", anyText, func(p *Plan, v []string) { p.Choices = v }, func(p *Plan) []string { return p.Choices }),
	sectionKey("source", &sourceTable, func(p *Plan) *Source {
		if p.Source == nil {
			p.Source = &Source{}
		}
		return p.Source
	}),
	groupKey("target"), groupKey("image"), groupKey("io"), groupKey("stream"),
	key[Plan]{name: "matrix", typ: "table", decode: readMatrix, encode: hidden, json: matrixJSON}.recordErrors(),
	key[Plan]{name: "case", typ: "list of tables", decode: readExtra, encode: hidden, json: extraJSON}.recordErrors(),
	tablesKey("manual", func() *table[Manual] { return &manualTable },
		func(p *Plan) *[]Manual { return &p.Manual }).recordErrors(),
	namedKey("inputs", func() *table[Input] { return &inputTable }, func(p *Plan, name string, i *Input) {
		i.Name = name
		p.Inputs = append(p.Inputs, *i)
	}),
	namedKey("files", func() *table[fileForm] { return &fileTable }, func(p *Plan, name string, f *fileForm) {
		f.Name = name
		p.Files = append(p.Files, f.FileSet)
	}).recordErrors(),
	tablesKey("protocol", func() *table[Block] { return &blockTable },
		func(p *Plan) *[]Block { return &p.Protocol }).must().recordErrors(),
	sectionKey("run", &runTable, func(p *Plan) *RunOptions { return &p.Run }).or("{}"),
	{name: "published", typ: "list of tables", decode: readPublishedList, encode: hidden, json: func() map[string]any {
		return map[string]any{"type": "array", "items": publishedFormTable.schema()}
	}},
	tablesKey("claim", func() *table[Claim] { return &claimTable }, func(p *Plan) *[]Claim { return &p.Claims }),
	tablesKey("fit", func() *table[Fit] { return &fitTable }, func(p *Plan) *[]Fit { return &p.Fits }),
	tablesKey("relation", func() *table[Relation] { return &relationTable },
		func(p *Plan) *[]Relation { return &p.Relations }),
	tablesKey("table", func() *table[Table] { return &tableTable },
		func(p *Plan) *[]Table { return &p.Tables }).recordErrors(),
	tablesKey("change", func() *table[Change] { return &changeTable }, func(p *Plan) *[]Change { return &p.Changes }),
}}

// recordErrors notes in which parts of the plan errors are found, so that checks that lean on this part
// of the plan do not report what follows from them.
func (k key[T]) recordErrors() key[T] {
	decode := k.decode
	k.decode = func(r *reader, n *node, dst *T) {
		before := len(r.found)
		decode(r, n, dst)
		if len(r.found) > before {
			r.invalid[k.name] = true
		}
	}
	return k
}

// schemaType accepts the versions of the language that this program reads.
var schemaType = &scalar{name: "number", bare: true, json: map[string]any{"const": Schema},
	parse: func(n *node) (string, *fault) {
		if n.kind != intNode {
			return "", wrongType(n, "a whole number")
		}
		if n.text != itoa(Schema) {
			return "", &fault{fmt.Sprintf("version %s of the plan language is not known", n.text),
				fmt.Sprintf("this program reads version %d", Schema)}
		}
		return n.text, nil
	}}

// hidden marks tables that the canonical form writes with headers of their own.
func hidden(*Plan) (string, bool) { return "", false }

func sectionKey[U any](name string, t *table[U], at func(*Plan) *U) key[Plan] {
	return tableKey(name, func() *table[U] { return t }, at, func(*Plan) bool { return true })
}

// groupKey is one of the settings tables; Parse reads them apart, for their defaults.
func groupKey(group string) key[Plan] {
	return key[Plan]{name: group, typ: "table", decode: func(*reader, *node, *Plan) {}, encode: hidden,
		json: func() map[string]any { return groupTable(group).schema() }}
}

var groupNames = []string{"target", "image", "io", "stream"}

// groups reads [target], [image], [io] and [stream]; a table that is not there has its defaults.
func (r *reader) groups(root *node, p *Plan) {
	for _, group := range groupNames {
		n := root.get(group)
		if n == nil {
			n = &node{kind: tableNode, name: group}
		}
		before := len(r.found)
		groupTable(group).read(r, n, &p.Defaults)
		if len(r.found) > before {
			r.invalid["settings"] = true
		}
	}
	if p.Defaults.Files == "" && len(p.Files) == 1 {
		p.Defaults.Files = p.Files[0].Name
	}
}

// namedKey is a table of tables: [inputs.NAME], [files.NAME].
func namedKey[U any](name string, inner func() *table[U], add func(*Plan, string, *U)) key[Plan] {
	return key[Plan]{name: name, typ: "tables by name", encode: hidden,
		decode: func(r *reader, n *node, p *Plan) {
			if n.kind != tableNode {
				r.problem(n.off, name, "%s: want tables [%s.NAME], this is %s", name, name, n.kind)
				return
			}
			for _, it := range n.pairs {
				if !nameRule.MatchString(it.name) {
					r.problem(it.key, name, "%s: %q is no name", name, it.name).hintf("want letters, digits and . _ + -, at most 64")
				}
				u := new(U)
				setName(u, it.name)
				inner().read(r, it, u)
				add(p, it.name, u)
			}
		},
		json: func() map[string]any {
			return map[string]any{"type": "object", "additionalProperties": inner().schema()}
		}}
}

// setName lets messages name the set or input while it is being read.
func setName(v any, name string) {
	switch t := v.(type) {
	case *fileForm:
		t.Name = name
	case *Input:
		t.Name = name
	}
}

func readPublishedList(r *reader, n *node, p *Plan) {
	if n.kind != arrayNode {
		r.problem(n.off, "published", "published: want tables [[published]], this is %s", n.kind)
		return
	}
	for _, it := range n.items {
		var f publishedForm
		publishedFormTable.read(r, it, &f)
		r.publishedAt = append(r.publishedAt, publishedPlaces(it, f.values)...)
		p.Published = append(p.Published, f.values...)
	}
}

// publishedPlaces remembers the table of each figure, for the checks.
func publishedPlaces(n *node, values []Published) []*node {
	out := make([]*node, len(values))
	for i := range values {
		out[i] = n
	}
	return out
}

// readMatrix reads the axes and what is left out of their product.
func readMatrix(r *reader, n *node, p *Plan) {
	if n.kind != tableNode {
		r.problem(n.off, "matrix", "matrix: want a table of axes, this is %s", n.kind)
		return
	}
	for _, it := range n.pairs {
		switch s := findSetting(it.name); {
		case it.name == "exclude":
			readExclude(r, it, p)
		case s != nil:
			if a, ok := r.axis(it, s); ok {
				p.Axes = append(p.Axes, a)
			}
		default:
			r.unknownAxis(it)
		}
	}
}

func readExclude(r *reader, n *node, p *Plan) {
	if n.kind != arrayNode {
		r.problem(n.off, "exclude", "exclude: want a list of selectors, this is %s", n.kind).
			hintf("write it as [ { … }, { … } ]")
		return
	}
	for _, it := range n.items {
		s := r.selector(it, "exclude", false)
		if len(s) == 0 && it.kind == tableNode && len(it.pairs) == 0 {
			r.problem(it.off, "exclude", "exclude: an empty selector leaves out every case")
		}
		p.Exclude = append(p.Exclude, s)
	}
}

func (r *reader) unknownAxis(n *node) {
	q := r.problem(n.key, n.name, "[matrix]: %q is no axis", n.name)
	names := append(settingNames(), "exclude")
	switch near := Nearest(n.name, names); {
	case n.name == "filesystem_preference":
		q.hintf("use the axis \"filesystem\"")
	case n.name == "allow_many_bands":
		q.hintf("it stands in [image] and cannot be an axis")
	case near != "":
		q.hintf("did you mean %q?", near)
	default:
		q.hintf("an axis the user turns is a [[manual]]; axes: %s", joinNames(names))
	}
}

func (r *reader) axis(n *node, s *setting) (Axis, bool) {
	a := Axis{Key: s.name}
	if n.kind != arrayNode {
		r.problem(n.off, n.name, "%s: an axis is a list of values, this is %s", n.name, n.kind).
			hintf("write [ … ], or set %s once in [%s]", n.name, s.group)
		return a, false
	}
	if len(n.items) == 0 {
		r.problem(n.off, n.name, "%s: the axis has no values", n.name)
		return a, false
	}
	seen := map[string]bool{}
	for _, it := range n.items {
		text, ok := r.scalar(it, n.name, s.value)
		switch {
		case !ok:
		case seen[text]:
			r.problem(it.off, n.name, "%s: the axis has %s twice", n.name, text)
		default:
			seen[text] = true
			a.Values = append(a.Values, text)
		}
	}
	return a, len(a.Values) > 0
}

// readExtra reads [[case]] tables: one value a key.
func readExtra(r *reader, n *node, p *Plan) {
	if n.kind != arrayNode {
		r.problem(n.off, "case", "case: want tables [[case]], this is %s", n.kind)
		return
	}
	for _, it := range n.items {
		if it.kind != tableNode {
			r.problem(it.off, "case", "case: want a table, this is %s", it.kind)
			continue
		}
		var s Selector
		for _, c := range it.pairs {
			if v, ok := r.extraValue(c); ok {
				s = append(s, Choice{Key: c.name, Values: []string{v}})
			}
		}
		p.Extra = append(p.Extra, s)
	}
}

func (r *reader) extraValue(n *node) (string, bool) {
	k, ok := r.findSelectorKey(n.name)
	if !ok || k.samples || n.name == "baseline" {
		if ok {
			r.problem(n.key, n.name, "[[case]]: %q is no settings key", n.name)
			return "", false
		}
		q := r.problem(n.key, n.name, "[[case]]: %q is no settings key", n.name)
		names := append(settingNames(), r.manual...)
		if near := Nearest(n.name, names); near != "" {
			q.hintf("did you mean %q?", near)
		} else {
			q.hintf("keys here: %s", joinNames(names))
		}
		return "", false
	}
	if s := findSetting(n.name); s != nil {
		k.value = s.value
	}
	return r.scalar(n, n.name, k.value)
}

var onTable = table[On]{name: "on", keys: []key[On]{
	textKey("machine", anyText, func(o *On) *string { return &o.Machine }),
	textKey("os", anyText, func(o *On) *string { return &o.OS }),
	textKey("tool", anyText, func(o *On) *string { return &o.Tool }),
	dateKey("date", func(o *On) *time.Time { return &o.Date }),
}}

func theOnTable() *table[On] { return &onTable }

func (o *On) isSet() bool { return *o != On{} }

var sourceTable = table[Source]{name: "[source]", keys: []key[Source]{
	textKey("title", lineText, func(s *Source) *string { return &s.Title }).must(),
	textKey("author", anyText, func(s *Source) *string { return &s.Author }),
	textKey("url", anyText, func(s *Source) *string { return &s.URL }),
	dateKey("date", func(s *Source) *time.Time { return &s.Date }),
	tableKey("on", theOnTable, func(s *Source) *On { return &s.On }, func(s *Source) bool { return s.On.isSet() }),
}}

var manualTable = table[Manual]{name: "[[manual]]", keys: []key[Manual]{
	textKey("name", nameText, func(m *Manual) *string { return &m.Name }).must(),
	listKey("values", looseType, func(m *Manual, v []string) { m.Values = v },
		func(m *Manual) []string { return m.Values }).must(),
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
		r.problem(n.key, "size", "input %q is optional and has no size", i.Name).
			hintf("a generated file of that size stands in for it")
	}
}}

var blockTable = table[Block]{name: "[[protocol]]", keys: []key[Block]{
	selectorKeyOf("when", false, func(b *Block) *Selector { return &b.When }),
	{name: "steps", typ: "list of steps", required: true,
		decode: func(r *reader, n *node, b *Block) { b.Steps = r.steps(n) },
		encode: func(b *Block) (string, bool) { return stepsTOML(b.Steps), true },
		json:   stepsKey().json},
}}
