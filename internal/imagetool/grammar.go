package imagetool

import (
	"io"
	"slices"
	"strings"
)

// findVerb returns the verb that the arguments start with, and the rest of them. Options of `diskutil image` may come
// between the words of the verb: they stay in front.
func findVerb(tool string, args []string) (*verb, []string) {
	for _, v := range verbs {
		for _, name := range append([]string{v.name}, v.also...) {
			if rest, ok := cutWords(strings.Fields(name), args); ok && v.tool == tool {
				return v, rest
			}
		}
	}
	return nil, args
}

// cutWords takes the words of a verb off the arguments, in order; flags may come between them.
func cutWords(name, args []string) ([]string, bool) {
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

// parse fills in verb, options and operands.
func (c *call) parse(args []string) error {
	if len(args) == 0 {
		return misused("no verb given")
	}
	v, rest := findVerb(c.tool, args)
	if v == nil {
		return c.unknownVerb(args)
	}
	c.verb = v
	if slices.ContainsFunc(rest, func(a string) bool {
		return a == "-help" || a == "--help" || c.tool == "diskutil" && a == "-h"
	}) {
		c.verb = &verb{tool: v.tool, name: v.name, run: func(c *call) error {
			_, err := io.WriteString(c.out, c.helpText(v))
			return err
		}}
		return nil
	}
	if err := c.parseOptions(rest); err != nil {
		return err
	}
	switch n := len(c.operands); {
	case n < v.min:
		return misused("%s is missing", strings.Fields(v.operands)[n])
	case n > v.max:
		return misused("unexpected argument %q", c.operands[v.max])
	}
	c.applyQuiet()
	return nil
}

// parseOptions sorts the arguments into options and operands, which come in any order; "--" ends the options.
func (c *call) parseOptions(args []string) error {
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
		case o.support == refused:
			return refuse("option %s: %s", word, o.help)
		case o.arg == "" && joined:
			return misused("option %s takes no value", word)
		case o.arg != "" && o.optional:
			if n+1 < len(args) && o.isValue(args[n+1]) {
				n++
				value = args[n]
			}
		case o.arg != "" && !joined:
			if n++; n == len(args) {
				return misused("option %s needs a value: %s", word, o.arg)
			}
			value = args[n]
		}
		list := strings.Fields(o.values)
		if len(list) > 0 && !(o.optional && value == "") &&
			!slices.ContainsFunc(list, func(v string) bool { return strings.EqualFold(v, value) }) {
			return misused("option %s: %q is none of %s", word, value, strings.Join(list, ", "))
		}
		c.opts[o.name] = append(c.opts[o.name], value)
	}
	return nil
}

// isValue reports whether a word is the value of an option that may have none: it is in the list, or starts like an
// entry of it, so that AES-512 is a value that is refused and not the name of an image.
func (o option) isValue(word string) bool {
	return slices.ContainsFunc(strings.Fields(o.values), func(v string) bool {
		kind, _, _ := strings.Cut(v, "-")
		return strings.EqualFold(v, word) || len(word) > len(kind) && strings.EqualFold(word[:len(kind)], kind) &&
			strings.Trim(word[len(kind):], "-0123456789") == ""
	})
}

// applyQuiet closes the outputs that -quiet closes.
func (c *call) applyQuiet() {
	if c.has("-debug") {
		c.opts["-verbose"] = []string{""}
	}
	if c.has("-quiet") && !c.has("-verbose") {
		c.out, c.err = io.Discard, io.Discard
	}
}

// unsupportedVerbs are verbs of Apple's hdiutil that this one does not have.
var unsupportedVerbs = strings.Fields("burn erasekeys flatten fsid hfsanalyze internet-enable makehybrid partition " +
	"plugins segment udifderez udifrez unflatten")

// unknownVerb is the error of a verb that is not in the table, with the reason if Apple's tool has it.
func (c *call) unknownVerb(args []string) error {
	c.verb = &verb{tool: c.tool}
	switch {
	case slices.Contains([]string{"-help", "--help", "-h"}, args[0]):
		c.verb = &verb{tool: c.tool, name: "help", run: (*call).help}
		return nil
	case c.tool == "hdiutil" && slices.Contains(unsupportedVerbs, args[0]):
		c.verb.name = args[0]
		return refuse("the verb %s of Apple's hdiutil is not supported", args[0])
	case c.tool == "diskutil":
		return misused("did not recognize verb %q", strings.Join(args[:min(2, len(args))], " "))
	}
	return misused("unrecognized verb %q", args[0])
}
