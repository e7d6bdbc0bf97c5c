package imagetool

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

// usage is the line of the synopsis.
func (v *verb) usage() string {
	line := v.tool + " " + v.name
	if slices.ContainsFunc(v.options, func(o option) bool { return o.support == works }) {
		line += " [options]"
	}
	return strings.TrimSpace(line + " " + v.operands)
}

// usage is the option with its names and its value.
func (o option) usage() string {
	arg := o.arg
	if o.values != nil {
		arg = strings.Join(o.values, "|")
	}
	if o.optional {
		arg = "[" + arg + "]"
	}
	return strings.TrimSpace(strings.Join(o.names, ", ") + " " + arg)
}

// usageText is the message about arguments that were not understood.
func (c *call) usageText(problem string) string {
	if c.verb == nil || c.verb.name == "" {
		names, _ := c.listVerbs()
		return fmt.Sprintf("%s: %s\nUsage: %s <verb> <options>\n<verb> is one of: %s\nSee \"%s help\".\n",
			c.tool, problem, c.tool, strings.Join(names, ", "), c.tool)
	}
	help := map[string]string{"hdiutil": "-help", "diskutil": "--help"}[c.tool]
	return fmt.Sprintf("%s: %s: %s\nUsage: %s\nSee \"%s %s %s\".\n",
		c.tool, c.verb.name, problem, c.verb.usage(), c.tool, c.verb.name, help)
}

// listVerbs returns the names of the tool's verbs, and a line about each.
func (c *call) listVerbs() (names []string, lines string) {
	for _, v := range verbs {
		if v.tool == c.tool {
			names = append(names, v.name)
			lines += fmt.Sprintf("    %-14s %s\n", v.name, v.short)
		}
	}
	return names, lines
}

// extensionText is about verbs of this program alone.
const extensionText = "an extension: Apple's tool does not have it."

// helpText is the help of one verb. It names only what is possible on this
// machine: programs search it for what they can request.
func (c *call) helpText(v *verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\nUsage: %s\n", v.name, v.short, v.usage())
	if v.extension {
		b.WriteString("This verb is " + extensionText + "\n")
	}
	if len(v.also) > 0 {
		fmt.Fprintf(&b, "Also: %s\n", strings.Join(v.also, ", "))
	}
	idle := ""
	b.WriteString("Options:\n") // every verb has -help
	for _, o := range v.options {
		switch o.support {
		case works:
			fmt.Fprintf(&b, "\t%s\n\t\t%s\n", o.usage(), c.fillIn(o.help))
		case ignored:
			idle += "\t" + o.usage() + "\n"
		}
	}
	if idle != "" {
		b.WriteString("Understood and without effect here:\n" + idle)
	}
	if v.notes != "" {
		b.WriteString(c.fillIn(v.notes) + "\n")
	}
	return b.String()
}

// fillIn puts what this machine supports into a text of verbs.txt. The driver
// of the hdiutil engine searches the help for the names of formats, file
// systems and ciphers to find out what it can use.
func (c *call) fillIn(text string) string {
	return strings.NewReplacer(
		"{filesystems}", strings.Join(c.makeable(), ", "), "{default}", c.defaultFilesystem(),
		"{types}", formatWords(byType), "{conversions}", formatWords(byConversion),
		"{images}", formatWords(byImage), "{froms}", formatWords(byFrom)).Replace(text)
}

// generalize replaces what depends on the machine, for the manual page.
var generalize = strings.NewReplacer(
	"here one of: {filesystems}", "ExFAT and what the machine can make (see the help of the verb)",
	", here one of: {types}", " (see the help of the verb)",
	", here one of: {conversions}", " (see the help of the verb)",
	"here one of: {images}", "RAW, UDSB or another one (see the help of the verb)",
	"here one of: {froms}", "RAW, UDSB, UDZO or another one (see the help of the verb)",
	"{default}", "as described under File systems")

// help prints the help of a verb, or the list of verbs.
func (c *call) help() error {
	var b strings.Builder
	if len(c.operands) > 0 {
		v, rest := findVerb(c.tool, c.operands)
		if v == nil || len(rest) > 0 {
			return misused("unknown verb %q", strings.Join(c.operands, " "))
		}
		b.WriteString(c.helpText(v))
	} else {
		_, lines := c.listVerbs()
		fmt.Fprintf(&b, "Usage: %s <verb> <options>\n<verb> is one of:\n%s%q explains a verb. This is not Apple's %s: "+
			"the manual page lists the differences.\n", c.tool, lines, c.tool+" help <verb>", c.tool)
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

//go:embed manual.roff
var manualText string

// manual prints the manual page.
func (c *call) manual() error {
	_, err := io.WriteString(c.out, manualPage())
	return err
}

// manualPage is manual.roff with the verbs and options filled in.
func manualPage() string {
	synopsis, pages := "", map[string]string{}
	for _, v := range verbs {
		synopsis += ".B " + Roff(v.usage()) + "\n.br\n"
		pages[v.tool] += v.roff()
	}
	return strings.NewReplacer("{synopsis}", synopsis, "{hdiutil}", pages["hdiutil"], "{diskutil}", pages["diskutil"],
		"{hdiutil options}", roffOptions(groups["hdiutil"]), "{diskutil options}", roffOptions(groups["diskutil"]),
	).Replace(manualText)
}

// roff is the section of one verb.
func (v *verb) roff() string {
	text := strings.ToUpper(v.short[:1]) + v.short[1:] + "."
	if v.extension {
		text += " This is " + extensionText
	}
	if len(v.also) > 0 {
		text += " Also: " + strings.Join(v.also, ", ") + "."
	}
	if v.notes != "" {
		text += " " + generalize.Replace(v.notes)
	}
	own := len(v.options) - len(groups[v.tool])
	return fmt.Sprintf(".SS \"%s\"\n%s\n%s", Roff(v.usage()), Roff(text), roffOptions(v.options[:own]))
}

// roffOptions are the options of a verb or group.
func roffOptions(options []option) string {
	var b strings.Builder
	prefix := map[support]string{ignored: "Understood and without effect: ", refused: "Refused: "}
	for _, o := range options {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s.\n", Roff(o.usage()), Roff(prefix[o.support]+generalize.Replace(o.help)))
	}
	return b.String()
}

// Roff escapes a text for a manual page, so that no line of it is taken for a
// request, and dashes of options can be copied.
func Roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
