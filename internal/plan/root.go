package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// codecs are those that tags name, codecsOfTypes those of Go types without such
// a name. referenced are the struct types that the JSON Schema defines once.
var (
	codecs        map[string]func() codec
	codecsOfTypes map[reflect.Type]func() codec
	referenced    = map[reflect.Type]string{reflect.TypeFor[Operand](): "operand", reflect.TypeFor[Assert](): "test",
		reflect.TypeFor[TableLine](): "line"}
)

// rootTable is the plan as a whole, in the order of the canonical form.
var rootTable *table

// init fills the registries, in the order of the references between them.
func init() {
	stepKinds = stepRows()
	readQuantities()
	maps.Copy(kinds, map[string]*kind{"do": enum(stepNames(nil)...), "quantities": enum(quantityNames()...)})
	codecs = map[string]func() codec{
		"matrix": matrixCodec, "cases": extraCodec, "published": publishedCodec, "quantity": quantityCodec,
		"inputs": func() codec { return namedCodec[Input]("inputs") },
		"files":  func() codec { return namedCodec[FileSet]("files") },
		"figure": figureCodec, "coefficients": coefficientsCodec, "range": rangeCodec, "rounds": roundsCodec,
		"require": requireCodec, "exact": exactFilesystem, "bound": boundCodec, "values": oneOrManyCodec,
		"cases-selector": func() codec { return selectorCodec(false) },
	}
	codecsOfTypes = map[reflect.Type]func() codec{
		reflect.TypeFor[Selector](): func() codec { return selectorCodec(true) }, reflect.TypeFor[Step](): stepCodec,
	}
	addStepTables()
	addSettings()
	addTable[On]("on", nil)
	addTable[Source]("[source]", nil)
	addTable("[[manual]]", finishManual)
	addTable("input", finishInput)
	addTable("part", finishPart)
	addTable("file set", finishFiles).form = fileForm
	addTable[Block]("[[protocol]]", nil)
	addTable("[run]", finishRun)
	addTable[Published]("[[published]]", nil)
	forms := addTable("[[published]]", finishPublished)
	forms.keys = append(forms.keys, publishedFigures())
	addTable("operand", finishOperand)
	addTests()
	addClaims()
	addTable("[[fit]]", finishFit)
	addTable[Relation]("[[relation]]", nil)
	addTableLines()
	addTable[Table]("[[table]]", nil)
	addTable[Change]("[[change]]", nil)
	rootTable = addTable("plan", func(_ *reader, _ *node, p *Plan) {
		if p.Defaults.Files == "" && len(p.Files) == 1 {
			p.Defaults.Files = p.Files[0].Name
		}
	})
	schema := key{name: "schema", index: fieldIndex("Title"), required: true, codec: schemaCodec()}
	at := slices.IndexFunc(rootTable.keys, func(k key) bool { return k.name == "source" }) + 1
	for i, group := range groups {
		rootTable.keys = slices.Insert(rootTable.keys, at+i, settingSection(group))
	}
	rootTable.keys = slices.Insert(rootTable.keys, 0, schema)
}

// fieldIndex is the index of a field of Plan.
func fieldIndex(name string) []int {
	f, _ := reflect.TypeFor[Plan]().FieldByName(name)
	return f.Index
}

// Parse reads the text of a plan. name is its file, for messages, and names the
// plan. All findings come back at once; the plan is nil if any is an error, and
// problems is nil if there are no findings.
func Parse(name string, text []byte) (*Plan, *Problems) {
	r := newReader(name, text)
	if !r.checkEncoding() {
		return nil, r.problems()
	}
	root, p := r.parseTree(), &Plan{Name: nameOf(name)}
	if !r.broken {
		r.manual = manualNames(root)
		rootTable.read(r, root, reflect.ValueOf(p).Elem())
		r.check(root, p)
	}
	problems := r.problems()
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return p, problems
}

// checkEncoding refuses text that is too large or not UTF-8, and skips a byte
// order mark.
func (r *reader) checkEncoding() bool {
	if size := int64(len(r.text)); size > MaxSize {
		r.text, r.lines = nil, []int{0}
		r.problem(0, "", "%s", tooLarge(size))
		return false
	}
	if bytes.HasPrefix(r.text, []byte("\ufeff")) {
		r.bom = len("\ufeff")
	}
	for i := 0; i < len(r.text); {
		c, n := utf8.DecodeRune(r.text[i:])
		if c == utf8.RuneError && n <= 1 || c == 0 {
			r.problem(i, "", "the file is not text in UTF-8: byte 0x%02x", r.text[i]).hintf("save the plan as UTF-8")
			return false
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

// schemaCodec accepts the version of the language that this program reads. No
// field has it.
func schemaCodec() codec {
	return codec{typ: "number", json: func() map[string]any { return map[string]any{"const": Schema} },
		encode: func(reflect.Value) (string, bool) { return fmt.Sprint(Schema), true },
		decode: func(r *reader, n *node, _ reflect.Value) {
			if n.kind != intNode || n.text != fmt.Sprint(Schema) {
				r.bad(n, "schema: version %s of the plan language is not known", n.text).
					hintf("this program reads version %d", Schema)
			}
		}}
}

// namedCodec is a list of structs from tables [key.NAME].
func namedCodec[U any](key string) codec {
	t := tableCodec(reflect.TypeFor[U]())
	return codec{typ: "tables by name",
		decode: func(r *reader, n *node, v reflect.Value) {
			if n.kind != tableNode {
				r.bad(n, "%s: want tables [%s.NAME], this is %s", key, key, n.kind)
			}
			for _, it := range n.pairs {
				if !nameRule.MatchString(it.name) {
					r.badKey(it, "%s: %q is not a name", key, it.name).hintf("want %s", nameWords)
				}
				one := reflect.New(v.Type().Elem()).Elem()
				t.decode(r, it, one)
				one.FieldByName("Name").SetString(it.name)
				v.Set(reflect.Append(v, one))
			}
		},
		sections: func(_ string, v reflect.Value) (out []section) {
			for i := range v.Len() {
				name := tomlKey(v.Index(i).FieldByName("Name").String())
				out = append(out, t.sections(key+"."+name, v.Index(i))...)
			}
			return out
		},
		json: func() map[string]any { return map[string]any{"type": "object", "additionalProperties": t.json()} }}
}

// matrixCodec is the axes and the cells that are excluded from their product.
func matrixCodec() codec {
	exclude := listCodec(selectorCodec(false), 0, 0)
	return codec{typ: "table", whole: true,
		decode: func(r *reader, n *node, v reflect.Value) {
			if n.kind != tableNode {
				r.bad(n, "matrix: want a table of axes, this is %s", n.kind)
			}
			p := v.Addr().Interface().(*Plan)
			for _, it := range n.pairs {
				if s := findSetting(it.name); s != nil {
					if a := r.axis(it, s); len(a.Values) > 0 {
						p.Axes = append(p.Axes, a)
					}
				} else if it.name == "exclude" {
					exclude.decode(r, it, v.FieldByName("Exclude"))
				} else {
					r.badKey(it, "[matrix]: %q is not an axis", it.name).
						suggest(it.name, "an axis that the user sets is a [[manual]]; axes: ",
							func() []string { return append(settingNames(), "exclude") })
				}
			}
		},
		sections: func(_ string, v reflect.Value) []section {
			var lines []string
			for _, a := range v.Interface().(Plan).Axes {
				lines = append(lines, a.Key+" = ["+a.valuesTOML()+"]")
			}
			if cells := v.Interface().(Plan).Exclude; len(cells) > 0 {
				out := "exclude = [\n"
				for _, s := range cells {
					out += "  " + s.toml() + ",\n"
				}
				lines = append(lines, out+"]")
			}
			if len(lines) == 0 {
				return nil
			}
			return []section{{"[matrix]", lines}}
		},
		json: func() map[string]any {
			return settingsSchema(func(s *setting) map[string]any {
				return map[string]any{"type": "array", "minItems": 1, "uniqueItems": true, "items": s.value.json}
			}, map[string]any{"exclude": exclude.json()}, false)
		}}
}

// axis reads the values of one axis.
func (r *reader) axis(n *node, s *setting) Axis {
	a := Axis{Key: s.name}
	if n.kind != arrayNode {
		r.bad(n, "%s: an axis is a list of values, this is %s", n.name, n.kind).
			hintf("write [ … ], or set %s once in [%s]", n.name, s.group)
		return a
	}
	for _, it := range r.list(n, "values", 1, 0) {
		text, bad := s.value.read(it)
		if bad != nil {
			r.invalidValue(it, bad)
		}
		a.Values = append(a.Values, text)
	}
	return a
}

// extraCodec is a list of [[case]] tables: one value for each key.
func extraCodec() codec {
	one := codec{plural: "tables",
		decode: func(r *reader, n *node, v reflect.Value) {
			if n.kind != tableNode {
				r.bad(n, "case: want a table, this is %s", n.kind)
			}
			var s Selector
			for _, c := range n.pairs {
				k, value := findSetting(c.name), looseKind
				if k != nil {
					value = k.value
				} else if !slices.Contains(r.manual, c.name) {
					r.badKey(c, "[[case]]: %q is not a settings key", c.name).
						suggest(c.name, "keys here: ", func() []string { return append(settingNames(), r.manual...) })
					continue
				}
				text, bad := value.read(c)
				if bad != nil {
					r.invalidValue(c, bad)
				}
				s = append(s, Choice{c.name, []string{text}})
			}
			v.Set(reflect.ValueOf(s))
		},
		json: func() map[string]any {
			return settingsSchema(func(s *setting) map[string]any { return s.value.json }, nil, looseKind.json)
		},
		sections: func(_ string, v reflect.Value) []section {
			var lines []string
			for _, c := range v.Interface().(Selector) {
				lines = append(lines, tomlKey(c.Key)+" = "+c.valuesTOML())
			}
			return []section{{"[[case]]", lines}}
		}}
	return listCodec(one, 0, 0)
}

// finishManual refuses names that are keys of selectors already.
func finishManual(r *reader, n *node, m *Manual) {
	if _, taken := findSelectorKey(m.Name, nil); taken || m.Name == "exclude" || m.Name == "do" {
		r.bad(n.get("name"), "a manual axis cannot be called %q, which is another key", m.Name)
	}
}

// finishInput refuses inputs that could not be made in place of a missing one.
func finishInput(r *reader, n *node, i *Input) {
	if i.Optional && n.get("size") == nil {
		r.badKey(n, "input %q is optional and has no size", n.name).hintf("a generated file of that size replaces it")
	}
}

// Canonical writes the plan with every default filled in and in one fixed
// order: two plans with the same meaning have the same canonical form, and
// reading it gives the plan back (but for the places of steps).
func (p *Plan) Canonical() []byte {
	var b bytes.Buffer
	v := reflect.ValueOf(p).Elem()
	for _, k := range rootTable.keys {
		at := k.in(v)
		if k.sections == nil {
			if text, has := k.encode(at); has || k.required {
				fmt.Fprintf(&b, "%s = %s\n", k.name, text)
			}
			continue
		}
		for _, s := range k.sections(k.name, at) {
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

// tomlString writes a basic string of one line, in which JSON and TOML agree.
func tomlString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("writing text: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlKey quotes a key that needs quotes.
func tomlKey(s string) string {
	if bareKey.MatchString(s) {
		return s
	}
	return tomlString(s)
}
