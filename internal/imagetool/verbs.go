package imagetool

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// support is what an option does here.
type support int

// The kinds of support.
const (
	works   support = iota
	ignored         // accepted without effect; help has the reason
	refused         // an option of Apple's tool that this one does not support; help has the reason
)

// option is one option of a verb.
type option struct {
	name     string // with its dashes, as messages print it
	also     []string
	arg      string // the name of its value; "" for a flag
	values   string // the accepted values, separated by blanks; "" for any
	optional bool   // the value may be left out: see isValue
	help     string // what it does; why it is ignored or refused
	support  support
}

// verb is one verb of one tool.
type verb struct {
	tool      string
	name      string
	also      []string
	short     string // what it does, in a line
	operands  string // as usage shows them
	min, max  int    // how many operands
	options   []option
	notes     string // of help and manual page
	extension bool   // not one of Apple's
	run       func(*call) error
}

// handlers are the functions of the verbs in verbs.txt.
var handlers = map[string]func(*call) error{
	"hdiutil create": (*call).create, "hdiutil attach": (*call).attach, "hdiutil detach": (*call).detach,
	"hdiutil info": (*call).info, "hdiutil imageinfo": (*call).imageinfo, "hdiutil compact": (*call).compact,
	"hdiutil resize": (*call).resize, "hdiutil convert": (*call).convert, "hdiutil verify": (*call).verify,
	"hdiutil checksum": (*call).checksum, "hdiutil isencrypted": (*call).isencrypted, "hdiutil chpass": (*call).chpass,
	"hdiutil unmount": (*call).unmount, "hdiutil mountvol": (*call).mountvol, "hdiutil pmap": (*call).pmap,
	"hdiutil ls": (*call).list, "hdiutil cat": (*call).cat, "hdiutil extract": (*call).extract,
	"hdiutil trim": (*call).trim, "hdiutil man": (*call).manual, "hdiutil help": (*call).help,

	"diskutil image create blank": (*call).createBlank, "diskutil image create from": (*call).createFrom,
	"diskutil image attach": (*call).attachImage, "diskutil image info": (*call).infoImage,
	"diskutil image resize": (*call).resizeImage, "diskutil image chpass": (*call).chpass,
	"diskutil eject": (*call).eject, "diskutil help": (*call).help,
}

//go:embed verbs.txt
var verbsText string

// verbs and groups are the content of verbs.txt. init fills them in, since the verb help reads them.
var (
	verbs  []*verb
	groups = map[string][]option{}
)

// init reads verbs.txt; an error in it is a mistake in the program.
func init() {
	for block := range strings.SplitSeq(strings.ReplaceAll(verbsText, "\n\t", " "), "\n\n") {
		parseBlock(strings.Split(strings.TrimSpace(block), "\n"))
	}
	for _, v := range verbs {
		v.options = append(v.options, groups[v.tool]...)
	}
}

// parseBlock reads a verb or a group of options; verbs.txt describes the lines.
func parseBlock(lines []string) {
	var v verb
	group := ""
	for _, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "verb":
			names, operands, _ := strings.Cut(rest, ":")
			v.tool, names, _ = strings.Cut(names, " ")
			list := strings.Split(names, ", ")
			v.name, v.also, v.operands = list[0], list[1:], strings.TrimSpace(operands)
			v.run = handlers[v.tool+" "+v.name]
			v.min, v.max = countOperands(v.operands)
		case "group":
			group = rest
		case "short":
			v.short = rest
		case "notes":
			v.notes = rest
		case "extension":
			v.extension = true
		case "use":
			for name := range strings.FieldsSeq(rest) {
				v.options = append(v.options, groups[name]...)
			}
		case "option", "ignored", "refused":
			v.options = append(v.options, parseOptionLine(word, rest)...)
		default:
			if !strings.HasPrefix(word, "#") {
				panic(fmt.Sprintf("verbs.txt: unknown line %q", line))
			}
		}
	}
	if v.name != "" {
		verbs = append(verbs, &v)
	} else {
		groups[group] = v.options
	}
}

// countOperands returns how many operands a verb takes: those in brackets may be left out, dots allow any number.
func countOperands(operands string) (low, high int) {
	for word := range strings.FieldsSeq(operands) {
		high++
		if !strings.HasPrefix(word, "[") {
			low++
		}
	}
	if strings.Contains(operands, "...") {
		high = 1 << 20
	}
	return low, high
}

// parseOptionLine reads the options of one line, which share their help.
func parseOptionLine(kind, line string) (list []option) {
	kinds := map[string]support{"option": works, "ignored": ignored, "refused": refused}
	names, help, _ := strings.Cut(line, ": ")
	for text := range strings.SplitSeq(names, "; ") {
		o := option{help: help, support: kinds[kind]}
		for word := range strings.FieldsSeq(text) {
			switch name := strings.TrimSuffix(word, ","); {
			case o.name == "":
				o.name = name
			case strings.HasPrefix(name, "-"):
				o.also = append(o.also, name)
			default:
				arg, values, _ := strings.Cut(strings.Trim(name, "[]"), "=")
				o.optional = strings.HasPrefix(name, "[")
				if o.arg = arg; values == "VALUE" { // KEY=VALUE is the name of an argument, not a list
					o.arg = name
				} else {
					o.values = strings.ReplaceAll(values, "|", " ")
				}
			}
		}
		list = append(list, o)
	}
	return list
}

// option returns the option of a name. hdiutil ignores case: munki, for one, writes -mountRandom.
func (v *verb) option(word string) (option, bool) {
	equal := strings.EqualFold
	if v.tool == "diskutil" {
		equal = func(a, b string) bool { return a == b }
	}
	i := slices.IndexFunc(v.options, func(o option) bool {
		return equal(o.name, word) || slices.ContainsFunc(o.also, func(a string) bool { return equal(a, word) })
	})
	if i < 0 {
		return option{}, false
	}
	return v.options[i], true
}
