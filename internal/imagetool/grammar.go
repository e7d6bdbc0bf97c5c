package imagetool

import (
	"io"
	"slices"
	"strings"
)

// standing is what an option does here.
type standing int

const (
	works   standing = iota
	ignored          // understood and without effect; why says so
	refused          // Apple's tool knows it, this one does not do it
)

// option is one option of a verb.
type option struct {
	name     string // with its dashes, as messages say it
	also     []string
	arg      string // what its value is called; "" for a flag
	values   string // the accepted values, separated by blanks; "" for any
	optional bool   // the value may be left out: see meant
	help     string // what it does; why it is ignored or refused
	standing standing
}

func (o option) called(word string) bool { return o.name == word || slices.Contains(o.also, word) }

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

// option is the option of a name. Capitals do not matter to hdiutil's: munki, for one, writes -mountRandom.
func (v *verb) option(word string) (option, bool) {
	for _, o := range v.options {
		if o.called(word) || v.tool == "hdiutil" && (strings.EqualFold(o.name, word) || slices.ContainsFunc(o.also, func(a string) bool {
			return strings.EqualFold(a, word)
		})) {
			return o, true
		}
	}
	return option{}, false
}

// find is the verb that the arguments begin with, and the arguments behind it.
// Options of `diskutil image` may stand before its own verb: they stay in front.
func find(tool string, args []string) (*verb, []string) {
	for _, v := range verbs {
		if v.tool != tool {
			continue
		}
		for _, name := range append([]string{v.name}, v.also...) {
			if rest, ok := after(strings.Fields(name), args); ok {
				return v, rest
			}
		}
	}
	return nil, args
}

// after takes the words of a verb off the arguments, in order; flags may stand between them.
func after(name, args []string) ([]string, bool) {
	var flags []string
	for n, a := range args {
		switch {
		case len(name) == 0:
			return append(flags, args[n:]...), true
		case a == name[0]:
			name = name[1:]
		case n > 0 && strings.HasPrefix(a, "-"):
			flags = append(flags, a)
		default:
			return nil, false
		}
	}
	return flags, len(name) == 0
}

// understand fills in verb, options and operands.
func (c *call) understand(args []string) error {
	if len(args) == 0 {
		return misused("no verb given")
	}
	v, rest := find(c.tool, args)
	if v == nil {
		return c.unknownVerb(args)
	}
	c.verb = v
	if slices.ContainsFunc(rest, func(a string) bool { return a == "-help" || a == "--help" || c.tool == "diskutil" && a == "-h" }) {
		c.verb = &verb{tool: v.tool, name: v.name, run: func(c *call) error {
			_, err := io.WriteString(c.out, c.helpText(v))
			return err
		}}
		return nil
	}
	if err := c.scan(rest); err != nil {
		return err
	}
	switch n := len(c.operands); {
	case n < v.min:
		return misused("%s is missing", strings.Fields(v.operands)[n])
	case n > v.max:
		return misused("unexpected argument %q", c.operands[v.max])
	}
	c.voice()
	return nil
}

// scan sorts the arguments into options and operands, which may stand in any order; "--" ends the options.
func (c *call) scan(args []string) error {
	c.opts = map[string][]string{}
	for n := 0; n < len(args); n++ {
		word, value, joined := args[n], "", false
		if word == "--" {
			c.operands = append(c.operands, args[n+1:]...)
			return nil
		}
		if len(word) < 2 || word[0] != '-' {
			c.operands = append(c.operands, word)
			continue
		}
		if c.tool == "diskutil" && strings.HasPrefix(word, "--") {
			word, value, joined = strings.Cut(word, "=")
		}
		o, ok := c.verb.option(word)
		switch {
		case !ok:
			return misused("unrecognized option `%s'", word)
		case o.standing == refused:
			return refuse("option %s: %s", word, o.help)
		case o.arg == "" && joined:
			return misused("option %s takes no value", word)
		case o.arg != "" && o.optional:
			if n+1 < len(args) && o.meant(args[n+1]) {
				n++
				value = args[n]
			}
		case o.arg != "" && !joined:
			if n++; n == len(args) {
				return misused("option %s needs a value: %s", word, o.arg)
			}
			value = args[n]
		}
		if err := o.accepts(word, value); err != nil {
			return err
		}
		c.opts[o.name] = append(c.opts[o.name], value)
	}
	return nil
}

// meant says whether a word is the value of an option that can do without one: it is in the list, or begins like what is, so
// that AES-512 is a value that is refused and no image.
func (o option) meant(word string) bool {
	return slices.ContainsFunc(strings.Fields(o.values), func(v string) bool {
		kind, _, _ := strings.Cut(v, "-")
		return strings.EqualFold(v, word) || len(word) > len(kind) && strings.EqualFold(word[:len(kind)], kind) && strings.Trim(word[len(kind):], "-0123456789") == ""
	})
}

func (o option) accepts(word, value string) error {
	list := strings.Fields(o.values)
	if o.arg == "" || o.optional && value == "" || len(list) == 0 || slices.ContainsFunc(list, func(v string) bool { return strings.EqualFold(v, value) }) {
		return nil
	}
	return misused("option %s: %q is none of %s", word, value, strings.Join(list, ", "))
}

// voice closes what -quiet closes.
func (c *call) voice() {
	if c.has("-debug") {
		c.opts["-verbose"] = []string{""}
	}
	if c.has("-quiet") && !c.has("-verbose") {
		c.out, c.err = io.Discard, io.Discard
	}
}

// elsewhere are verbs that Apple's hdiutil has and this one has not.
var elsewhere = strings.Fields("burn erasekeys flatten fsid hfsanalyze internet-enable makehybrid partition plugins segment udifderez udifrez unflatten")

func (c *call) unknownVerb(args []string) error {
	c.verb = &verb{tool: c.tool}
	switch {
	case slices.Contains([]string{"-help", "--help", "-h"}, args[0]):
		c.verb = &verb{tool: c.tool, name: "help", run: (*call).help}
		return nil
	case c.tool == "hdiutil" && slices.Contains(elsewhere, args[0]):
		c.verb.name = args[0]
		return refuse("the verb %s of Apple's hdiutil is not there yet", args[0])
	case c.tool == "diskutil":
		return misused("did not recognize verb %q", strings.Join(args[:min(2, len(args))], " "))
	}
	return misused("unrecognized verb %q", args[0])
}
