package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dmgbench/internal/units"
)

// init fills the registries with rows that refer to other registries, in the
// order of these references.
func init() {
	stepKinds = stepRows()
	registerQuantities()
	operandTable = operandRows()
	tests = testRows()
	assertTable.keys = assertKeys()
	claimTable.keys = claimKeys()
	fitTable.keys = fitKeys()
	relationTable.keys = relationKeys()
	outcomeTable.keys = outcomeKeys()
	lineTable.keys, lineTable.finish = lineKeys(), finishLine
	tableTable.keys = tableKeys()
	rootTable.keys = rootKeys()
}

// Parse reads the text of a plan. name is its file, for messages, and names the
// plan. All findings come back at once; the plan is nil if any is an error, and
// problems is nil if there are no findings.
func Parse(name string, text []byte) (*Plan, *Problems) {
	r := newReader(name, text)
	if !r.checkEncoding() {
		return nil, r.problems()
	}
	root := r.parseTree()
	r.manual = manualNames(root)
	p := &Plan{Name: nameOf(name)}
	rootTable.read(r, root, p)
	if !r.broken {
		r.check(root, p)
	}
	problems := r.problems()
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return p, problems
}

// checkEncoding refuses text that is not UTF-8 and skips a byte order mark.
func (r *reader) checkEncoding() bool {
	refuse := func(at int, hint, format string, args ...any) bool {
		r.problem(at, "", format, args...).Hint = hint
		return false
	}
	switch size := int64(len(r.text)); {
	case size > MaxSize:
		r.text, r.lines = nil, []int{0}
		return refuse(0, "", "%s", tooLarge(size).Error())
	case bytes.HasPrefix(r.text, []byte("\xff\xfe")) || bytes.HasPrefix(r.text, []byte("\xfe\xff")):
		r.text, r.lines = nil, []int{0}
		return refuse(0, "save the plan as UTF-8", "the text is UTF-16")
	case bytes.HasPrefix(r.text, []byte("\ufeff")):
		r.bom = len("\ufeff")
	}
	if i := bytes.IndexByte(r.text, 0); i >= 0 {
		return refuse(i, "a plan is a TOML file; this looks like something else", "the text contains a zero byte")
	}
	for i := 0; i < len(r.text); {
		c, n := utf8.DecodeRune(r.text[i:])
		if c == utf8.RuneError && n <= 1 {
			return refuse(i, "save the plan as UTF-8", "the text is not UTF-8: byte 0x%02x", r.text[i])
		}
		i += n
	}
	return true
}

// manualNames are the names of the manual axes, which selectors anywhere may
// name.
func manualNames(root *node) []string {
	var out []string
	for _, it := range root.at("manual").items {
		if n := it.get("name"); n != nil && n.kind == stringNode {
			out = append(out, n.text)
		}
	}
	return out
}

// rootTable is the plan as a whole, in the order of the canonical form.
var rootTable = table[Plan]{name: "plan", finish: func(_ *reader, _ *node, p *Plan) {
	if p.Defaults.Files == "" && len(p.Files) == 1 {
		p.Defaults.Files = p.Files[0].Name
	}
}}

// rootKeys are the keys of the top level. Tables that have headers of their own
// are sections of the canonical form.
func rootKeys() []key[Plan] {
	schema := field("schema", schemaKind, func(*Plan) *int { version := Schema; return &version }).must()
	return []key[Plan]{
		schema,
		field("title", lineText, func(p *Plan) *string { return &p.Title }).must(),
		field("summary", anyText, func(p *Plan) *string { return &p.Summary }),
		listField("choices", anyText, 0, func(p *Plan) *[]string { return &p.Choices }),
		tableSection("source", &sourceTable, func(p *Plan) *Source { return p.Source }, func(p *Plan) *Source {
			p.Source = cmpOrNew(p.Source)
			return p.Source
		}),
		settingSection("target"), settingSection("image"), settingSection("io"), settingSection("stream"),
		{name: "matrix", typ: "table", decode: readMatrix, encode: hidden, json: matrixSchema,
			sections: matrixSections},
		{name: "case", typ: "list of tables", decode: readExtra, encode: hidden, json: caseSchema,
			sections: extraSections},
		tablesSection("manual", &manualTable, func(p *Plan) *[]Manual { return &p.Manual }).recordErrors("manual"),
		namedTables("inputs", &inputTable, func(p *Plan, name string, in *Input) {
			in.Name = name
			p.Inputs = append(p.Inputs, *in)
		}, func(p *Plan) (out []section) {
			for i := range p.Inputs {
				out = append(out, section{"[inputs." + tomlKey(p.Inputs[i].Name) + "]", inputTable.lines(&p.Inputs[i])})
			}
			return out
		}),
		namedTables("files", &fileTable, func(p *Plan, name string, f *fileForm) {
			f.Name = name
			p.Files = append(p.Files, f.FileSet)
		}, func(p *Plan) (out []section) {
			for _, f := range p.Files {
				out = append(out, section{"[files." + tomlKey(f.Name) + "]", f.lines()})
			}
			return out
		}).recordErrors("files"),
		tablesSection("protocol", &blockTable, func(p *Plan) *[]Block { return &p.Protocol }).must().
			recordErrors("protocol"),
		tableSection("run", &runTable, func(p *Plan) *RunOptions { return &p.Run },
			func(p *Plan) *RunOptions { return &p.Run }).or("{}"),
		publishedField(),
		tablesSection("claim", &claimTable, func(p *Plan) *[]Claim { return &p.Claims }),
		tablesSection("fit", &fitTable, func(p *Plan) *[]Fit { return &p.Fits }),
		tablesSection("relation", &relationTable, func(p *Plan) *[]Relation { return &p.Relations }),
		tablesSection("table", &tableTable, func(p *Plan) *[]Table { return &p.Tables }).recordErrors("table"),
		tablesSection("change", &changeTable, func(p *Plan) *[]Change { return &p.Changes }),
	}
}

// cmpOrNew is v, or a new value where v is nil.
func cmpOrNew[V any](v *V) *V {
	if v == nil {
		v = new(V)
	}
	return v
}

// schemaKind accepts the versions of the language that this program reads.
var schemaKind = newKind(scalar{name: "number", node: intNode, json: map[string]any{"const": Schema}},
	func(n *node) (int, *invalid) {
		if n.kind != intNode {
			return 0, wrongType(n, "a whole number", "")
		}
		if n.text != fmt.Sprint(Schema) {
			return 0, &invalid{fmt.Sprintf("version %s of the plan language is not known", n.text),
				fmt.Sprintf("this program reads version %d", Schema)}
		}
		return Schema, nil
	}, func(v int) string { return fmt.Sprint(v) })

// hidden is the encode of keys that the canonical form writes as sections.
func hidden(*Plan) (string, bool) { return "", false }

// tableSection is one table [name]; get is nil where the plan does not have it.
func tableSection[U any](name string, t *table[U], get, set func(*Plan) *U) key[Plan] {
	k := tableField(name, t, set, func(*Plan) bool { return false })
	k.encode = hidden
	k.sections = func(p *Plan) []section {
		if get(p) == nil {
			return nil
		}
		return []section{{"[" + name + "]", t.lines(get(p))}}
	}
	return k
}

// settingSection is one of the tables of settings. Without the table its keys
// have their defaults.
func settingSection(group string) key[Plan] {
	defaults := func(p *Plan) *Settings { return &p.Defaults }
	return tableSection(group, settingTables[group], defaults, defaults).or("{}").recordErrors("settings")
}

// tablesSection is a list of tables [[name]].
func tablesSection[U any](name string, t *table[U], at func(*Plan) *[]U) key[Plan] {
	k := tables(name, "tables", t, at).key()
	k.sections = func(p *Plan) []section {
		var out []section
		for i := range *at(p) {
			out = append(out, section{"[[" + name + "]]", t.lines(&(*at(p))[i])})
		}
		return out
	}
	return k
}

// namedTables are tables [name.NAME].
func namedTables[U any](name string, t *table[U], add func(*Plan, string, *U),
	sections func(*Plan) []section) key[Plan] {
	return key[Plan]{name: name, typ: "tables by name", encode: hidden, sections: sections,
		decode: func(r *reader, n *node, p *Plan) {
			if n.kind != tableNode {
				r.bad(n, "%s: want tables [%s.NAME], this is %s", name, name, n.kind)
			}
			for _, it := range n.pairs {
				if !nameRule.MatchString(it.name) {
					r.problem(it.key, name, "%s: %q is not a name", name, it.name).hintf("want %s", nameWords)
				}
				var u U
				t.read(r, it, &u)
				add(p, it.name, &u)
			}
		},
		json: func() map[string]any { return map[string]any{"type": "object", "additionalProperties": t.schema()} }}
}

// readMatrix reads the axes and the cells that are excluded from their product.
func readMatrix(r *reader, n *node, p *Plan) {
	before := len(r.found)
	if n.kind != tableNode {
		r.bad(n, "matrix: want a table of axes, this is %s", n.kind)
	}
	for _, it := range n.pairs {
		if s := findSetting(it.name); s != nil {
			if a := r.axis(it, s); len(a.Values) > 0 {
				p.Axes = append(p.Axes, a)
			}
		} else if it.name == "exclude" {
			excludeList.key().decode(r, it, p)
			for _, s := range it.items {
				if s.kind == tableNode && len(s.pairs) == 0 {
					r.problem(s.off, "exclude", "exclude: an empty selector leaves out every case")
				}
			}
		} else {
			q := r.badKey(it, "[matrix]: %q is not an axis", it.name)
			switch it.name {
			case "filesystem_preference":
				q.hintf("use the axis \"filesystem\"")
			case "allow_many_bands":
				q.hintf("it is a key of [image] and cannot be an axis")
			default:
				q.suggest(it.name, "an axis that the user sets is a [[manual]]; axes: ",
					append(settingNames(), "exclude"))
			}
		}
	}
	r.invalid["matrix"] = r.invalid["matrix"] || len(r.found) > before
}

var excludeList = selectorList("exclude", 0, false, func(p *Plan) *[]Selector { return &p.Exclude })

// axis reads the values of one axis, each once.
func (r *reader) axis(n *node, s *setting) Axis {
	a := Axis{Key: s.name}
	if n.kind != arrayNode {
		r.bad(n, "%s: an axis is a list of values, this is %s", n.name, n.kind).
			hintf("write [ … ], or set %s once in [%s]", n.name, s.group)
		return a
	}
	for _, it := range r.list(n, n.name, "values", 1, 0) {
		text, ok := r.scalar(it, n.name, s.value)
		if ok && slices.Contains(a.Values, text) {
			r.problem(it.off, n.name, "%s: the axis has %s twice", n.name, text)
		} else if ok {
			a.Values = append(a.Values, text)
		}
	}
	return a
}

// matrixSections writes the axes and exclusions, if there are any.
func matrixSections(p *Plan) []section {
	var lines []string
	for _, a := range p.Axes {
		lines = append(lines, a.Key+" = ["+Choice(a).valuesTOML()+"]")
	}
	if len(p.Exclude) > 0 {
		list := excludeList
		list.lines = true
		lines = append(lines, "exclude = "+list.toml(p.Exclude))
	}
	if len(lines) == 0 {
		return nil
	}
	return []section{{"[matrix]", lines}}
}

// readExtra reads [[case]] tables: one value for each key.
func readExtra(r *reader, n *node, p *Plan) {
	before := len(r.found)
	for _, it := range r.list(n, "case", "tables", 0, 0) {
		if it.kind != tableNode {
			r.problem(it.off, "case", "case: want a table, this is %s", it.kind)
			continue
		}
		var s Selector
		for _, c := range it.pairs {
			k, ok := findSelectorKey(c.name, r.manual)
			if !ok || k.samples || c.name == "baseline" {
				r.badKey(c, "[[case]]: %q is not a settings key", c.name).
					suggest(c.name, "keys here: ", append(settingNames(), r.manual...))
				continue
			}
			if own := findSetting(c.name); own != nil {
				k.value = own.value
			}
			if v, ok := r.scalar(c, c.name, k.value); ok {
				s = append(s, Choice{c.name, []string{v}})
			}
		}
		p.Extra = append(p.Extra, s)
	}
	r.invalid["case"] = r.invalid["case"] || len(r.found) > before
}

// extraSections writes the [[case]] tables.
func extraSections(p *Plan) []section {
	var out []section
	for _, s := range p.Extra {
		var lines []string
		for _, c := range s {
			lines = append(lines, tomlKey(c.Key)+" = "+c.valuesTOML())
		}
		out = append(out, section{"[[case]]", lines})
	}
	return out
}

var sourceTable = table[Source]{name: "[source]", keys: []key[Source]{
	field("title", lineText, func(s *Source) *string { return &s.Title }).must(),
	field("author", anyText, func(s *Source) *string { return &s.Author }),
	field("url", anyText, func(s *Source) *string { return &s.URL }),
	field("date", dateKind, func(s *Source) *time.Time { return &s.Date }),
	onField(func(s *Source) *On { return &s.On }),
}}

var manualTable = table[Manual]{name: "[[manual]]", keys: []key[Manual]{
	field("name", nameText, func(m *Manual) *string { return &m.Name }).must(),
	listField("values", looseKind, 1, func(m *Manual) *[]string { return &m.Values }).must(),
	field("instructions", someText, func(m *Manual) *string { return &m.Instructions }).must(),
	field("check", enum("cpus", "memory", "none"), func(m *Manual) *string { return &m.Check }).or(`"none"`),
}, finish: func(r *reader, n *node, m *Manual) {
	r.checkDistinct(n.get("values"), "values")
	if _, taken := findSelectorKey(m.Name, nil); taken || m.Name == "exclude" || m.Name == "do" {
		r.bad(n.get("name"), "a manual axis cannot be called %q, which is another key", m.Name)
	}
}}

var inputTable = table[Input]{name: "input", keys: []key[Input]{
	field("about", someText, func(i *Input) *string { return &i.About }).must(),
	field("size", sizeKind, func(i *Input) *units.Bytes { return &i.Size }),
	field("optional", flagKind, func(i *Input) *bool { return &i.Optional }),
	field("published_size", sizeKind, func(i *Input) *units.Bytes { return &i.PublishedSize }),
}, finish: func(r *reader, n *node, i *Input) {
	if i.Optional && n.get("size") == nil {
		r.problem(n.key, "size", "input %q is optional and has no size", n.name).
			hintf("a generated file of that size replaces it")
	}
}}

var blockTable = table[Block]{name: "[[protocol]]", keys: []key[Block]{
	selectorField("when", false, func(b *Block) *Selector { return &b.When }),
	stepsField(func(b *Block) *[]Step { return &b.Steps }),
}}

// Canonical writes the plan with every default filled in and in one fixed
// order: two plans with the same meaning have the same canonical form, and
// reading it gives the plan back (but for the places of steps).
func (p *Plan) Canonical() []byte {
	var b bytes.Buffer
	for _, k := range rootTable.keys {
		if k.sections == nil {
			if text, ok := k.encode(p); ok {
				fmt.Fprintf(&b, "%s = %s\n", k.name, text)
			}
			continue
		}
		for _, s := range k.sections(p) {
			fmt.Fprintf(&b, "\n%s\n", s.header)
			for _, line := range s.lines {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.Bytes()
}

// Digest is the SHA-256 of the canonical form in hexadecimal.
func (p *Plan) Digest() string { return hexSum(p.Canonical()) }

// Is reports whether text, from which p was read, is the plan with this digest:
// by its meaning, or byte for byte. The latter are plans that an earlier
// version wrote into run folders, when the canonical form had fewer keys:
// changes of the plan language are additive.
func (p *Plan) Is(digest string, text []byte) bool {
	return p.Digest() == digest || hexSum(text) == digest
}

// hexSum is the SHA-256 of a text in hexadecimal.
func hexSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// tomlString writes a basic string of one line.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + `"`
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlKey quotes a key that needs quotes.
func tomlKey(s string) string {
	if bareKey.MatchString(s) {
		return s
	}
	return tomlString(s)
}
