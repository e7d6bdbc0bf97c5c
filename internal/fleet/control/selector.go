package control

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/fleet"
	"dmgbench/internal/plan"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
)

// Selector selects machines by their facts. The zero value selects all.
type Selector struct {
	names []string // patterns, one of which the name matches; none: any name
	terms []term   // which all hold
}

// term compares a fact with a value.
type term struct {
	key, op, value string
	compare        comparison
}

// comparison orders two values. known is false if one of them is not known.
type comparison func(have, want string) (n int, known bool)

var termSyntax = regexp.MustCompile(`^([a-z_]+)\s*(>=|<=|!=|=|>|<)\s*([^=].*)$`)

// factsOf are the values of the keys that a selector may have. A machine has
// several tags, or none.
func factsOf(name string, s *fleet.Status) map[string][]string {
	h, virtual := s.Host, "no"
	if host.Virtual(h) {
		virtual = "yes"
	}
	return map[string][]string{
		"name": {name}, "tag": s.Tags, "os": {strings.Replace(h.OS, "darwin", "macos", 1)}, "os_version": {h.OSVersion},
		"arch": {h.Arch}, "model": {h.Model}, "cpu": {h.CPU}, "virtual": {virtual},
		"memory": {units.Bytes(h.Memory).String()},
	}
}

// ParseSelector reads terms with commas between them, which all have to hold:
// os>=26, arch=arm64, memory>=16GB, tag=lab, virtual=no. Of the terms that are
// only a name, one has to be that of the machine. In names and texts * stands for
// any characters and ? for one.
func ParseSelector(text string) (s Selector, err error) {
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		m := termSyntax.FindStringSubmatch(part)
		switch {
		case m != nil:
			var t term
			t, err = newTerm(m[1], m[2], m[3])
			s.terms = append(s.terms, t)
		case part == "" || strings.ContainsAny(part, "=<>!"):
			err = fmt.Errorf("%q is neither the name of a machine nor KEY=VALUE", part)
		default:
			_, err = path.Match(part, "")
			s.names = append(s.names, part)
		}
		if err != nil {
			return Selector{}, fmt.Errorf("reading selector %q: %w", text, err)
		}
	}
	return s, nil
}

func newTerm(key, op, value string) (t term, err error) {
	keys := slices.Sorted(maps.Keys(factsOf("", &fleet.Status{})))
	if !slices.Contains(keys, key) {
		near := cmp.Or(plan.Nearest(key, keys), strings.Join(keys, ", "))
		return t, fmt.Errorf("unknown key %q (try %s)", key, near)
	}
	if key == "os" && versionSyntax.FindString(value) == value { // os>=26: no system is called by a number
		key = "os_version"
	}
	t = term{key, op, value, compareText}
	switch {
	case key == "memory":
		t.compare = compareBytes
		_, err = units.ParseBytes(value)
	case key == "os_version":
		t.compare = compareVersions
		if versionSyntax.FindString(value) != value {
			err = fmt.Errorf("%q is not a version (want numbers with dots, such as 26.4)", value)
		}
	case op != "=" && op != "!=":
		err = fmt.Errorf("%s%s%s: %s has no order (use = or !=)", key, op, value, key)
	default:
		_, err = path.Match(value, "")
	}
	return t, err
}

// reject is why a machine is not selected, "" if it is.
func (s Selector) reject(m Machine) string {
	isNamed := func(pattern string) bool { n, _ := compareText(m.Name, pattern); return n == 0 }
	if len(s.names) > 0 && !slices.ContainsFunc(s.names, isNamed) {
		return "name is " + m.Name + ", want " + strings.Join(s.names, " or ")
	}
	if m.Status == nil {
		return "it has not sent a status yet"
	}
	facts := factsOf(m.Name, m.Status)
	for _, t := range s.terms {
		if have := facts[t.key]; !t.holds(have) {
			want := strings.TrimPrefix(t.op+" "+t.value, "= ")
			return t.key + " is " + cmp.Or(strings.Join(have, ", "), "not known") + ", want " + want
		}
	}
	return ""
}

// holds reports whether one of the values meets the term, or for != none has the
// other value.
func (t term) holds(have []string) bool {
	isMet := func(v string) bool {
		n, known := t.compare(v, t.value)
		switch t.op {
		case "=", "!=":
			return known && n == 0
		case ">":
			return known && n > 0
		case "<":
			return known && n < 0
		case ">=":
			return known && n >= 0
		}
		return known && n <= 0
	}
	return slices.ContainsFunc(have, isMet) != (t.op == "!=")
}

// compareText is 0 if have matches a pattern, whatever the case of letters.
func compareText(have, want string) (n int, known bool) {
	if ok, _ := path.Match(strings.ToLower(want), strings.ToLower(have)); !ok {
		n = 1
	}
	return n, have != ""
}

// compareBytes compares sizes with units.
func compareBytes(have, want string) (n int, known bool) {
	a, err := units.ParseBytes(have)
	b, _ := units.ParseBytes(want) // newTerm has checked it
	return cmp.Compare(a, b), err == nil && a > 0
}

// versionSyntax finds the version in a text such as "Debian GNU/Linux 13".
var versionSyntax = regexp.MustCompile(`\d+(\.\d+)*`)

// compareVersions compares the numbers that want has: 26.4 equals 26.
func compareVersions(have, want string) (n int, known bool) {
	have, want = versionSyntax.FindString(have), versionSyntax.FindString(want)
	numbers := strings.Split(have, ".")
	for i, part := range strings.Split(want, ".") {
		a, _ := strconv.Atoi(append(numbers, make([]string, i+1)...)[i])
		b, _ := strconv.Atoi(part)
		if n = cmp.Compare(a, b); n != 0 {
			break
		}
	}
	return n, have != "" && want != ""
}
