package imagetool

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"dmgbench/internal/image/exfat"
	"dmgbench/internal/system/manpage"
)

// support is what an option does here, as verbs.txt names it.
type support string

// The kinds of support.
const (
	works   support = "option"
	ignored support = "ignored" // accepted without effect; help has the reason
	refused support = "refused" // an option of Apple's tool that this one does not support; help has the reason
)

// option is one option of a verb: one entry of a line of verbs.txt.
type option struct {
	// names start with the dashes of the tool, as messages print them. The
	// first one is the key.
	names []string
	// arg is the name of the value in the help; "" for a flag.
	arg string
	// values are those that are accepted, in any case of letters; nil for any.
	values []string
	// optional means that the value may be left out: see cipherName.
	optional bool
	// Help is what the option does, or why it is ignored or refused.
	Help    string
	Support support
}

// key is the name of an option in this program: its first name in small letters
// and without dashes, so that --noMount of diskutil and -nomount of hdiutil are
// one.
func (o option) key() string { return keyOf(o.names[0]) }

// keyOf is the key of an option's name.
func keyOf(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "")) }

// verb is one verb of one tool: one block of verbs.txt.
type verb struct {
	tool string
	// Name may have several words, such as "image create blank"; it is the first
	// of the names of the verb.
	Name  string
	names []string
	// Short is what the verb does, in a line of the list of verbs.
	Short string
	// operands are shown in the usage; min and max of them are accepted.
	operands string
	min, max int
	Options  []option
	// needs is what has to be given, with the options that give it: "size:
	// -size or -sectors".
	needs []string
	// excludes are options that exclude each other, separated by blanks.
	excludes []string
	// Notes follow the options in the help and on the manual page.
	Notes string
	// Extension means that Apple's tool does not have the verb.
	Extension bool
	run       func(*call) error
}

// handlers are the functions of the verbs in verbs.txt: of a verb alone, or with
// the image, its encryption header, its ExFAT volume, or the attachment that it
// names first.
var handlers = map[string]func(*call) error{
	"hdiutil create": (*call).create, "hdiutil attach": (*call).attach, "hdiutil info": (*call).info,
	"hdiutil resize": (*call).resize, "hdiutil verify": (*call).verify,
	"hdiutil man": (*call).manual, "hdiutil help": (*call).help,
	"diskutil image create blank": (*call).create,
	"diskutil image attach":       (*call).attach, "diskutil image resize": (*call).resize,
	"diskutil help": (*call).help,

	"hdiutil isencrypted":   onHeader((*call).isencrypted),
	"hdiutil chpass":        onHeader((*call).chpass),
	"diskutil image chpass": onHeader((*call).chpass),

	"hdiutil imageinfo":          onImage(peek, (*call).imageinfo),
	"hdiutil pmap":               onImage(peek, (*call).pmap),
	"hdiutil checksum":           onImage(read, (*call).checksum),
	"hdiutil compact":            onImage(change, (*call).compact),
	"hdiutil convert":            onImage(read, (*call).convert),
	"diskutil image create from": onImage(read, (*call).convert),
	"diskutil image info":        onImage(peek, (*call).infoImage),
	"hdiutil ls":                 onVolume((*call).list),
	"hdiutil cat":                onVolume((*call).cat),
	"hdiutil extract":            onVolume((*call).extract),
	"hdiutil detach":             onAttachment((*call).detach),
	"hdiutil unmount":            onAttachment((*call).unmount),
	"hdiutil mountvol":           onAttachment((*call).mountvol),
	"hdiutil trim":               onAttachment((*call).trim),
	"diskutil eject":             onAttachment((*call).detach),
}

// onImage opens the image that is named first.
func onImage(how access, verb func(*call, *imageFile) error) func(*call) error {
	return func(c *call) error {
		return c.withImage(c.operands[0], how, func(i *imageFile) error { return verb(c, i) })
	}
}

// onVolume mounts the last ExFAT volume of the image that is named first, in
// this process and without writing: no privileges are needed for that, and
// neither a loop device nor FUSE.
func onVolume(verb func(*call, *imageFile, *exfat.Volume) error) func(*call) error {
	return onImage(read, func(c *call, i *imageFile) error {
		v, err := i.mountExFAT()
		if err != nil {
			return err
		}
		return errors.Join(verb(c, i, v), v.Unmount())
	})
}

//go:embed verbs.txt
var verbsText string

// verbs and groups are the content of verbs.txt. init fills them in, since the
// verb help reads them.
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
		v.Options = append(v.Options, groups[v.tool]...)
	}
}

// parseBlock reads a verb, or a group of options, which has no tool; verbs.txt
// describes the lines.
func parseBlock(lines []string) {
	v := &verb{}
	texts := map[string]*string{"group": &v.Name, "short": &v.Short, "notes": &v.Notes}
	lists := map[string]*[]string{"needs": &v.needs, "excludes": &v.excludes}
	for _, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		text, list := texts[word], lists[word]
		switch {
		case text != nil:
			*text = rest
		case list != nil:
			*list = append(*list, rest)
		case word == "verb": // operands in brackets may be left out, dots allow any number
			names, operands, _ := strings.Cut(rest, ":")
			v.tool, names, _ = strings.Cut(names, " ")
			v.names, v.operands = strings.Split(names, ", "), strings.TrimSpace(operands)
			v.Name = v.names[0]
			v.run = handlers[v.tool+" "+v.Name]
			v.max = len(strings.Fields(operands))
			v.min = v.max - strings.Count(operands, "[")
			if strings.Contains(operands, "...") {
				v.max = 1 << 20
			}
		case word == "extension":
			v.Extension = true
		case word == "use":
			for name := range strings.FieldsSeq(rest) {
				v.Options = append(v.Options, groups[name]...)
			}
		case support(word) == works, support(word) == ignored, support(word) == refused:
			v.parseOptions(support(word), rest)
		case !strings.HasPrefix(word, "#"):
			panic(fmt.Sprintf("verbs.txt: unknown line %q", line))
		}
	}
	if v.tool != "" {
		verbs = append(verbs, v)
	} else {
		groups[v.Name] = v.Options
	}
}

// parseOptions reads the options of one line, which share their help.
func (v *verb) parseOptions(kind support, line string) {
	names, help, _ := strings.Cut(line, ": ")
	for text := range strings.SplitSeq(names, "; ") {
		o := option{Help: help, Support: kind}
		for word := range strings.FieldsSeq(text) {
			if strings.HasPrefix(word, "-") {
				o.names = append(o.names, strings.TrimSuffix(word, ","))
				continue
			}
			arg, values, _ := strings.Cut(strings.Trim(word, "[]"), "=")
			o.optional = strings.HasPrefix(word, "[")
			if o.arg = arg; values == "VALUE" { // KEY=VALUE is the name of an argument, not a list
				o.arg = word
			} else if values != "" {
				o.values = strings.Split(values, "|")
			}
		}
		v.Options = append(v.Options, o)
	}
}

// option returns the option of a name. hdiutil ignores case: munki, for one,
// writes -mountRandom.
func (v *verb) option(word string) (option, bool) {
	for _, o := range v.Options {
		for _, name := range o.names {
			if name == word || v.tool == "hdiutil" && strings.EqualFold(name, word) {
				return o, true
			}
		}
	}
	return option{}, false
}

// optionName is the name of an option in this tool, by its key; "" if the verb
// does not have it.
func (v *verb) optionName(key string) string {
	for _, o := range v.Options {
		if o.key() == key {
			return o.names[0]
		}
	}
	return ""
}

// findVerb returns the verb that the arguments start with, and the rest of
// them. Options of `diskutil image` may come between the words of the verb:
// they stay in front.
func findVerb(tool string, args []string) (*verb, []string) {
	for _, v := range verbs {
		for _, name := range v.names {
			rest, found := slices.Clone(args), v.tool == tool
			for word := range strings.FieldsSeq(name) {
				i := slices.IndexFunc(rest, func(a string) bool { return !strings.HasPrefix(a, "-") })
				if found = found && i >= 0 && rest[i] == word; found {
					rest = slices.Delete(rest, i, i+1)
				}
			}
			if found {
				return v, rest
			}
		}
	}
	return nil, args
}

// Also are the other names of the verb.
func (v *verb) Also() []string { return v.names[1:] }

// isHelp reports whether a word asks for help.
func (c *call) isHelp(word string) bool {
	return word == "-help" || word == "--help" || word == "-h" && (c.tool == "diskutil" || c.verb == nil)
}

// parse fills in verb, options and operands. It does not check which options
// belong together, see checkRules, so that each can be parsed alone. A request
// for help wins over everything else on the command line, as with Apple's
// tools: programs append -help to a verb to find out what it supports.
func (c *call) parse(args []string) error {
	if len(args) == 0 {
		return usageErrorf("no verb given")
	}
	v, rest := findVerb(c.tool, args)
	if v == nil {
		help := c.isHelp(args[0])
		c.verb = &verb{tool: c.tool}
		switch {
		case help:
			c.verb = &verb{tool: c.tool, Name: "help", run: (*call).help}
			return nil
		case c.tool == "hdiutil" && slices.Contains(unsupportedVerbs, args[0]):
			c.verb.Name = args[0]
			return refuse("the verb %s of Apple's hdiutil is not supported", args[0])
		case c.tool == "diskutil":
			return usageErrorf("did not recognize verb %q", strings.Join(args[:min(2, len(args))], " "))
		}
		return usageErrorf("unrecognized verb %q", args[0])
	}
	if c.verb = v; slices.ContainsFunc(rest, c.isHelp) {
		c.verb = &verb{tool: v.tool, Name: v.Name, run: func(c *call) error { return c.printf("%s", c.helpText(v)) }}
		return nil
	}
	if err := c.parseOptions(rest); err != nil {
		return err
	}
	switch n := len(c.operands); {
	case n < v.min:
		return usageErrorf("%s is missing", strings.Fields(v.operands)[n])
	case n > v.max:
		return usageErrorf("unexpected argument %q", c.operands[v.max])
	case c.has("debug"):
		c.opts["verbose"] = []string{""}
	}
	if c.has("quiet") && !c.has("verbose") {
		c.out, c.err = bufio.NewWriter(io.Discard), io.Discard
	}
	return nil
}

// parseOptions sorts the arguments into options and operands, which come in any
// order; "--" ends the options. A word of one dash alone is an operand.
// diskutil also takes --name=value. An option that is given twice has both
// values: verbs use the last one, or all where several make sense, such as
// -srcfolder.
func (c *call) parseOptions(args []string) error {
	c.opts = map[string][]string{}
	for len(args) > 0 {
		word := args[0]
		if args = args[1:]; word == "--" {
			c.operands = append(c.operands, args...)
			return nil
		}
		if len(word) < 2 || word[0] != '-' {
			c.operands = append(c.operands, word)
			continue
		}
		value, joined := "", false
		if c.tool == "diskutil" && strings.HasPrefix(word, "--") {
			word, value, joined = strings.Cut(word, "=")
		}
		o, ok := c.verb.option(word)
		switch {
		case !ok:
			return usageErrorf("unrecognized option `%s'", word)
		case o.Support == refused:
			return refuse("option %s: %s", word, o.Help)
		case o.arg == "" && joined:
			return usageErrorf("option %s takes no value", word)
		case o.arg == "" || joined: // no value follows
		case o.optional && (len(args) == 0 || !cipherName.MatchString(args[0])):
		case len(args) == 0:
			return usageErrorf("option %s needs a value: %s", word, o.arg)
		default:
			value, args = args[0], args[1:]
		}
		isValue := func(v string) bool { return strings.EqualFold(v, value) }
		if o.values != nil && !(o.optional && value == "") && !slices.ContainsFunc(o.values, isValue) {
			return usageErrorf("option %s: %q is none of %s", word, value, strings.Join(o.values, ", "))
		}
		c.opts[o.key()] = append(c.opts[o.key()], value)
	}
	return nil
}

// cipherName is how the value of -encryption looks, the only one that may be
// left out: so AES-512 is refused, and not taken for the name of an image.
var cipherName = regexp.MustCompile("(?i)^aes-?[0-9]+$")

// checkRules checks which options must be given and which exclude each other.
func (c *call) checkRules() error {
	for _, names := range c.verb.excludes {
		given := slices.DeleteFunc(strings.Fields(names), func(name string) bool { return !c.has(keyOf(name)) })
		if len(given) > 1 {
			return usageErrorf("both %s and %s", given[0], given[1])
		}
	}
	for _, line := range c.verb.needs {
		what, names, _ := strings.Cut(line, ": ")
		if !slices.ContainsFunc(strings.Fields(names), func(name string) bool {
			return c.has(keyOf(strings.TrimSuffix(name, ",")))
		}) {
			return usageErrorf("no %s: want %s", what, names)
		}
	}
	return nil
}

// unsupportedVerbs are verbs of Apple's hdiutil that this one does not have.
var unsupportedVerbs = strings.Fields("burn erasekeys flatten fsid hfsanalyze internet-enable makehybrid partition " +
	"plugins segment udifderez udifrez unflatten")

// Usage is the line of the synopsis.
func (v *verb) Usage() string {
	line := v.tool + " " + v.Name
	if slices.ContainsFunc(v.Options, func(o option) bool { return o.Support == works }) {
		line += " [options]"
	}
	return strings.TrimSpace(line + " " + v.operands)
}

// Usage is the option with its names and its value.
func (o option) Usage() string {
	arg := o.arg
	if o.values != nil {
		arg = strings.Join(o.values, "|")
	}
	if o.optional {
		arg = "[" + arg + "]"
	}
	return strings.TrimSpace(strings.Join(o.names, ", ") + " " + arg)
}

// Of returns the options of one kind.
func (v *verb) Of(kind support) []option {
	return slices.DeleteFunc(slices.Clone(v.Options), func(o option) bool { return o.Support != kind })
}

// Own returns the options without those of every verb of the tool.
func (v *verb) Own() []option { return v.Options[:len(v.Options)-len(groups[v.tool])] }

//go:embed help.tmpl manual.roff
var templateFiles embed.FS

// templates are the help of a verb and the manual page, made from verbs.txt, and
// other texts of several lines.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"roff":      manpage.Escape,
	"printable": printable,
	"size":      func(sectors int64) string { return appleSize(sectors * sector) },
	"upper":     func(v bool) string { return strings.ToUpper(strconv.FormatBool(v)) },
	"join":      func(words []string) string { return strings.Join(words, ", ") },
	"title":     func(text string) string { return strings.ToUpper(text[:1]) + text[1:] },
	"group":     func(name string) []option { return groups[name] },
	"verbs": func(tool string) []*verb {
		return slices.DeleteFunc(slices.Clone(verbs), func(v *verb) bool { return tool != "" && v.tool != tool })
	},
}).ParseFS(templateFiles, "*"))

// formatText executes a template; an error in it is a mistake in the program.
func formatText(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic(err)
	}
	return b.String()
}

// helpText is the help of one verb. It names only what is possible on this
// machine: the driver of the hdiutil engine, and other programs, search it for
// the names of formats, file systems and ciphers that they can request.
func (c *call) helpText(v *verb) string {
	return fillIn(formatText("verb", v), strings.Join(c.makeable(), ", "), c.defaultFilesystem())
}

// fillIn replaces what depends on the machine and on the registry of formats.
func fillIn(help, filesystems, standard string) string {
	return strings.NewReplacer("{filesystems}", filesystems, "{default}", standard,
		"{types}", formatWords(byType), "{conversions}", formatWords(byConversion),
		"{images}", formatWords(byImage), "{froms}", formatWords(byFrom)).Replace(help)
}

// help prints the help of a verb, or the list of verbs.
func (c *call) help() error {
	if len(c.operands) == 0 {
		return c.printf("%s", formatText("verbs", c.tool))
	}
	v, rest := findVerb(c.tool, c.operands)
	if v == nil || len(rest) > 0 {
		return usageErrorf("unknown verb %q", strings.Join(c.operands, " "))
	}
	return c.printf("%s", c.helpText(v))
}

// manual prints the manual page.
func (c *call) manual() error { return c.printf("%s", manualPage()) }

// manualPage is manual.roff with the verbs and options filled in.
func manualPage() string {
	return fillIn(formatText("manual.roff", nil), "ExFAT, or what the machine can make (see the help of the verb)",
		"as described under File systems")
}
