package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// completeOnly completes the keys of the plans' cases, and behind "key=" their values.
func completeOnly(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	pair := typed[len(before):]
	key, value, valued := strings.Cut(pair, "=")
	if i := strings.LastIndex(value, "|"); i >= 0 {
		before, value = before+key+"="+value[:i+1], value[i+1:]
	} else if valued {
		before += key + "="
	}
	var out []string
	for _, name := range args {
		p, _, err := load(name)
		if err != nil {
			continue
		}
		for _, c := range p.CaseValues() {
			words := []string{c.Key + "="}
			if valued {
				words = c.Values
			}
			for _, word := range words {
				if valued && c.Key == key && strings.HasPrefix(word, value) || !valued && strings.HasPrefix(word, key) {
					out = append(out, before+word)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
