package imagetool

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
)

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

// usageText is the message about arguments that were not understood.
func (c *call) usageText(problem string) string {
	if c.verb == nil || c.verb.Name == "" {
		names, _ := c.listVerbs()
		return fmt.Sprintf("%s: %s\nUsage: %s <verb> <options>\n<verb> is one of: %s\nSee \"%s help\".\n",
			c.tool, problem, c.tool, strings.Join(names, ", "), c.tool)
	}
	help := map[string]string{"hdiutil": "-help", "diskutil": "--help"}[c.tool]
	return fmt.Sprintf("%s: %s: %s\nUsage: %s\nSee \"%s %s %s\".\n",
		c.tool, c.verb.Name, problem, c.verb.Usage(), c.tool, c.verb.Name, help)
}

// listVerbs returns the names of the tool's verbs, and a line about each.
func (c *call) listVerbs() (names []string, lines string) {
	for _, v := range verbs {
		if v.tool == c.tool {
			names = append(names, v.Name)
			lines += fmt.Sprintf("    %-14s %s\n", v.Name, v.Short)
		}
	}
	return names, lines
}

// Of returns the options of one kind.
func (v *verb) Of(kind support) []option {
	return slices.DeleteFunc(slices.Clone(v.Options), func(o option) bool { return o.Support != kind })
}

// Own returns the options without those of every verb of the tool.
func (v *verb) Own() []option { return v.Options[:len(v.Options)-len(groups[v.tool])] }

//go:embed help.tmpl manual.roff
var helpFiles embed.FS

// helpTemplates are the help of a verb and the manual page, made from verbs.txt.
var helpTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"roff":  Roff,
	"join":  func(words []string) string { return strings.Join(words, ", ") },
	"title": func(text string) string { return strings.ToUpper(text[:1]) + text[1:] },
	"group": func(name string) []option { return groups[name] },
	"verbs": func(tool string) []*verb {
		return slices.DeleteFunc(slices.Clone(verbs), func(v *verb) bool { return tool != "" && v.tool != tool })
	},
}).ParseFS(helpFiles, "*"))

// formatHelp executes a template; an error in it is a mistake in the program.
func formatHelp(name string, data any) string {
	var b strings.Builder
	if err := helpTemplates.ExecuteTemplate(&b, name, data); err != nil {
		panic(err)
	}
	return b.String()
}

// helpText is the help of one verb. It names only what is possible on this
// machine: programs search it for what they can request.
func (c *call) helpText(v *verb) string { return c.fillIn(formatHelp("verb", v)) }

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

// manual prints the manual page.
func (c *call) manual() error {
	_, err := io.WriteString(c.out, manualPage())
	return err
}

// manualPage is manual.roff with the verbs and options filled in.
func manualPage() string { return generalize.Replace(formatHelp("manual.roff", nil)) }

// Roff escapes a text for a manual page, so that no line of it is taken for a
// request, and dashes of options can be copied.
func Roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
