package report

import (
	"math"
	"strconv"
	"strings"
)

// flushNote says how many flushes the end of a written file took, as counted while files were timed: latency is mostly theirs.
func (v *View) flushNote() string {
	var each []string // numbers of calls, in the order of cases
	names := map[string][]string{}
	for i := range v.Result.Cases {
		c := &v.Result.Cases[i]
		var files, flushes int64
		for j := range c.Steps {
			if s := &c.Steps[j]; s.Op == "write" && s.Flushes > 0 && !IsCanary(s) && IsShown(c, s) {
				files, flushes = files+int64(len(s.Samples)), flushes+s.Flushes
			}
		}
		if files == 0 {
			continue
		}
		calls := strconv.FormatFloat(math.Round(10*float64(flushes)/float64(files))/10, 'f', -1, 64)
		if len(names[calls]) == 0 {
			each = append(each, calls)
		}
		names[calls] = append(names[calls], v.CaseName(c.ID))
	}
	if len(each) == 0 {
		return ""
	}
	var list []string
	for _, calls := range each {
		list = append(list, calls+" ("+strings.Join(names[calls], "; ")+")")
	}
	return "Flush calls for each file written, counted: " + strings.Join(list, ", ") +
		". They are the program’s own; what the system does below an image that it has mounted is not counted."
}
