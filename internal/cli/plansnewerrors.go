package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/plan"
)

// answerLines are the keys whose lines of a new plan hold what the flags say.
var answerLines = map[string]string{"title": "title", "size": "size", "filesystem_preference": "filesystem", "format": "format",
	"encryption": "encryption", "sizes": "files", "sets": "sets", "rounds": "rounds"}

// wrongAnswers says of which flags the values make no plan. The lines of the plan are no help: there is no such file.
// What is wrong elsewhere is said only where no flag by itself is wrong, as it follows from one that is.
func wrongAnswers(text string, problems []plan.Problem) error {
	lines := strings.Split(text, "\n")
	var told, other, hints []string
	add := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for _, p := range problems {
		key := ""
		if p.Line >= 1 && p.Line <= len(lines) {
			key, _, _ = strings.Cut(lines[p.Line-1], "=")
			key = strings.TrimSpace(key)
		}
		flag, ok := answerLines[key]
		if !ok {
			add(&other, p.Message)
			continue
		}
		add(&told, fmt.Sprintf("reading --%s: %s", flag, strings.TrimPrefix(strings.TrimPrefix(p.Message, key+": "), key+" ")))
		if p.Hint != "" {
			add(&hints, "--"+flag+": "+p.Hint)
		}
	}
	if len(told) == 1 && len(hints) == 1 {
		_, hints[0], _ = strings.Cut(hints[0], ": ")
	}
	if len(told) > 0 {
		return &usageError{err: errors.New(strings.Join(told, "; ")), hint: strings.Join(hints, "; ")}
	}
	for _, p := range problems {
		add(&hints, p.Hint)
	}
	return &usageError{err: fmt.Errorf("making the plan: what the flags say together cannot be run: %s", strings.Join(other, "; ")), hint: strings.Join(hints, "; ")}
}
