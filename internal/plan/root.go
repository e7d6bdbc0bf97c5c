package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// codecs are those that tags name, codecsOfTypes those of Go types without such
// a name.
var (
	codecs        map[string]func() codec
	codecsOfTypes map[reflect.Type]func() codec
)

// rootTable is the plan as a whole, in the order of the canonical form.
var rootTable *table

// init fills the registries, in the order of the references between them.
func init() {
	readStepKinds()
	readQuantities()
	quantities := namesOf(Quantities, func(q *QuantityInfo) string { return string(q.Name) })
	maps.Copy(kinds, map[string]*kind{"do": enum(stepNames(nil)...), "quantities": enum(quantities...)})
	codecs = map[string]func() codec{
		"matrix": matrixCodec, "cases": caseCodec, "published": publishedCodec,
		"inputs": func() codec { return namedCodec[Input]("inputs") },
		"files":  func() codec { return namedCodec[FileSet]("files") },
		"figure": figureCodec, "coefficients": coefficientsCodec, "require": requireCodec, "exact": exactFilesystem,
		"bound": boundCodec, "values": oneOrManyCodec, "outcome": outcomeCodec, "line-where": lineWhereCodec,
		"cases-selector": func() codec { return selectorCodec(selectorKeys) },
	}
	codecsOfTypes = map[reflect.Type]func() codec{
		reflect.TypeFor[Selector](): func() codec { return selectorCodec(sampleKeys) },
		reflect.TypeFor[Step]():     stepCodec,
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
	addTable("[run]", finishRun).form = runForm
	figures := addTable[Published]("[[published]]", nil)
	figures.keys = append(figures.keys, quantityKeys("figure", decodeFigure, encodeFigure)...)
	operands := addTable("operand", finishOperand)
	operands.keys = append(quantityKeys("selector", decodeSelection, encodeSelection), operands.keys...)
	addTests()
	addTable("[[claim]]", finishClaim)
	addTable("[[fit]]", finishFit)
	addTable[Relation]("[[relation]]", nil)
	addLines()
	addTable[Table]("[[table]]", nil)
	addTable[Change]("[[change]]", nil)
	rootTable = addTable("plan", func(_ *reader, _ *node, p *Plan) {
		if p.Defaults.Files == "" && len(p.Files) == 1 {
			p.Defaults.Files = p.Files[0].Name
		}
	})
}

// Parse reads the text of a plan. name is its file, for messages, and names the
// plan. All findings come back at once; the plan is nil if any is an error, and
// problems is nil if there are no findings.
func Parse(name string, text []byte) (*Plan, *Problems) {
	if len(text) > MaxSize {
		r := newReader(name, nil)
		r.problem(0, "", "%s", tooLarge(int64(len(text))))
		return nil, r.problems()
	}
	r, p := newReader(name, text), &Plan{Name: strings.TrimSuffix(filepath.Base(name), ".toml")}
	if root := r.parseTree(); !r.broken {
		for _, it := range root.at("manual").items { // selectors anywhere may name them
			if n := it.get("name"); n != nil && n.kind == stringNode {
				r.manual = append(r.manual, n.text)
			}
		}
		rootTable.read(r, root, reflect.ValueOf(p).Elem())
		r.check(root, p)
	}
	problems := r.problems()
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return p, problems
}

// MaxSize is the largest plan that is read, in bytes.
const MaxSize = 1 << 20

// Load reads the plan in a file. Whatever is wrong with its text comes back as
// *Problems; a file that cannot be read as another error. Only regular
// files are read, and none larger than MaxSize.
func Load(path string) (*Plan, error) {
	p, _, err := LoadAll(path)
	return p, err
}

// LoadAll is Load that also gives the warnings of a plan that can be run.
func LoadAll(path string) (*Plan, []Problem, error) {
	var text []byte
	info, err := os.Stat(path) // before opening: a FIFO would wait for a writer
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("it is a directory, want a TOML file")
	case !info.Mode().IsRegular():
		err = fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())
	case info.Size() > MaxSize:
		err = tooLarge(info.Size())
	default:
		text, err = os.ReadFile(path)
	}
	if err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err // the path is named once
		}
		return nil, nil, fmt.Errorf("reading plan %q: %w", path, err)
	}
	p, problems := Parse(path, text)
	if len(problems.Errors()) > 0 {
		return nil, nil, problems
	}
	return p, problems.Warnings(), nil
}

// tooLarge is the error for a text of n bytes.
func tooLarge(n int64) error {
	return fmt.Errorf("it holds %d bytes, plans are at most %d", n, MaxSize)
}

// namedCodec is a list of structs from tables [key.NAME].
func namedCodec[U any](key string) codec {
	t := tableCodec(tableOf[U]())
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
	exclude := listCodec(selectorCodec(selectorKeys), 0, 0)
	return codec{typ: "table", whole: true,
		decode: func(r *reader, n *node, v reflect.Value) {
			axes := *n
			if cells := n.get("exclude"); cells != nil {
				exclude.decode(r, cells, v.FieldByName("Exclude"))
				axes.pairs = slices.DeleteFunc(slices.Clone(n.pairs), func(p *node) bool { return p == cells })
			}
			v.FieldByName("Axes").Set(reflect.ValueOf([]Axis(r.choices(&axes, axisKeys))))
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
			return settingsSchema(oneOrMany, map[string]any{"exclude": exclude.json()}, false)
		}}
}

// caseCodec is a list of [[case]] tables: one value for each key.
func caseCodec() codec {
	return listCodec(codec{plural: "tables",
		decode: func(r *reader, n *node, v reflect.Value) { v.Set(reflect.ValueOf(r.choices(n, caseKeys))) },
		json: func() map[string]any {
			return settingsSchema(func(value map[string]any) map[string]any { return value }, nil, looseKind.json)
		},
		sections: func(_ string, v reflect.Value) []section {
			return []section{{"[[case]]", v.Interface().(Selector).lines()}}
		}}, 0, 0)
}

// finishManual refuses names that are keys of selectors already.
func finishManual(r *reader, n *node, m *Manual) {
	if findKey(m.Name, sampleKeys, nil) != nil || m.Name == "exclude" || m.Name == "do" {
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
		at := reflect.Indirect(k.in(v))
		if !at.IsValid() { // no [source]
			continue
		}
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
func hexSum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

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
