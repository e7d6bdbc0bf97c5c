package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxTrims is how many messages of one attachment are kept.
const maxTrims = 32

var container = regexp.MustCompile(`^/dev/(disk[0-9]+)(s[0-9]+)*$`)

// Trims reads `log show --style ndjson`: the messages of APFS that name the
// container of the volume on the device ("/dev/disk9s1" is in disk9), in the order
// of the log, without their time. Other containers come and go at the same time,
// and so theirs are left out. A log that has none is an empty list; what is no log is [ErrNoResult].
func Trims(out []byte, device string) ([]string, error) {
	m := container.FindStringSubmatch(device)
	if m == nil {
		return nil, fmt.Errorf("%w: %q is in no container", ErrNoResult, device)
	}
	ours := func(word string) bool {
		rest, ok := strings.CutPrefix(word, m[1])
		return ok && (rest == "" || rest[0] == 's')
	}
	var list []string
	lines := 0
	for line := range bytes.Lines(out) {
		var entry struct {
			Message string `json:"eventMessage"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // headings
		}
		lines++
		if slices.ContainsFunc(strings.Fields(entry.Message), ours) && len(list) < maxTrims {
			list = append(list, clean(entry.Message))
		}
	}
	if lines == 0 {
		return nil, fmt.Errorf("%w: no line of the log", ErrNoResult)
	}
	return list, nil
}
