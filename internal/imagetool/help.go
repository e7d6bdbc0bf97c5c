package imagetool

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// usage is the line of synopsis.
func (v *verb) usage() string {
	line := v.tool + " " + v.name
	if slices.ContainsFunc(v.options, func(o option) bool { return o.standing == works }) {
		line += " [options]"
	}
	if v.operands != "" {
		line += " " + v.operands
	}
	return line
}

// usageText is what is said about arguments that were not understood.
func (c *call) usageText(problem string) string {
	if c.verb == nil || c.verb.name == "" {
		return fmt.Sprintf("%s: %s\nUsage: %s <verb> <options>\n<verb> is one of: %s\nSee \"%s help\".\n",
			c.tool, problem, c.tool, strings.Join(names(c.tool), ", "), c.tool)
	}
	again := c.tool + " " + c.verb.name + " -help"
	if c.tool == "diskutil" {
		again = c.tool + " " + c.verb.name + " --help"
	}
	return fmt.Sprintf("%s: %s: %s\nUsage: %s\nSee \"%s\".\n", c.tool, c.verb.name, problem, c.verb.usage(), again)
}

// names are the verbs of a tool.
func names(tool string) []string {
	var list []string
	for _, v := range verbs {
		if v.tool == tool {
			list = append(list, v.name)
		}
	}
	return list
}

// helpText is the help of one verb. It names what is possible here and nothing
// else: programs look in it for what they can ask for.
func (c *call) helpText(v *verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\nUsage: %s\n", v.name, v.short, v.usage())
	if v.extension {
		b.WriteString("This verb is an extension: Apple's tool does not have it.\n")
	}
	if len(v.also) > 0 {
		fmt.Fprintf(&b, "Also: %s\n", strings.Join(v.also, ", "))
	}
	var idle []string
	for n, o := range v.options {
		if n == 0 {
			b.WriteString("Options:\n")
		}
		switch o.standing {
		case works:
			fmt.Fprintf(&b, "\t%s\n\t\t%s\n", o.usage(), c.here(o.help))
		case ignored:
			idle = append(idle, o.usage())
		}
	}
	if len(idle) > 0 {
		fmt.Fprintf(&b, "Understood and without effect here:\n\t%s\n", strings.Join(idle, "\n\t"))
	}
	if v.notes != "" {
		fmt.Fprintf(&b, "%s\n", c.here(v.notes))
	}
	return b.String()
}

func (o option) usage() string {
	text := strings.Join(append([]string{o.name}, o.also...), ", ")
	switch {
	case o.arg == "":
	case o.values != "" && o.optional:
		text += " [" + strings.ReplaceAll(o.values, " ", "|") + "]"
	case o.values != "":
		text += " " + strings.ReplaceAll(o.values, " ", "|")
	default:
		text += " " + o.arg
	}
	return text
}

// here puts what this machine can do into a text.
func (c *call) here(text string) string {
	return strings.NewReplacer("{filesystems}", strings.Join(c.makeable(), ", "), "{default}", c.defaultFilesystem(),
		"{types}", formatWords(byType), "{conversions}", formatWords(byConversion), "{images}", formatWords(byImage), "{froms}", formatWords(byFrom)).Replace(text)
}

func (c *call) help() error {
	if len(c.operands) > 0 {
		v, rest := find(c.tool, c.operands)
		if v == nil || len(rest) > 0 {
			return misused("there is no verb %q", strings.Join(c.operands, " "))
		}
		_, err := io.WriteString(c.out, c.helpText(v))
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s <verb> <options>\n<verb> is one of:\n", c.tool)
	for _, v := range verbs {
		if v.tool == c.tool {
			fmt.Fprintf(&b, "    %-14s %s\n", v.name, v.short)
		}
	}
	fmt.Fprintf(&b, "%q explains a verb. This is not Apple's %s: the manual page says what differs.\n", c.tool+" help <verb>", c.tool)
	_, err := io.WriteString(c.out, b.String())
	return err
}
