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
type Selector []term

// term compares a fact with a value.
type term struct {
	key, op, value string
	compare        func(have, want string) int // as cmp.Compare; unknown if it cannot be said
}

const unknown = 2

// operators have the results of comparisons that they accept, where != is none
// of =.
var operators = map[string][]int{"=": {0}, "!=": {0}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

var termSyntax = regexp.MustCompile(`^\s*(?:([a-z_]+)\s*(>=|<=|!=|=|>|<))?\s*([^=<>!]*[^=<>!\s])\s*$`)

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
// any characters, ? for one, and | for or.
func ParseSelector(text string) (s Selector, err error) {
	var names []string
	for part := range strings.SplitSeq(text, ",") {
		m := termSyntax.FindStringSubmatch(part)
		switch {
		case text == "":
		case m == nil:
			err = fmt.Errorf("%q is neither the name of a machine nor KEY=VALUE", part)
		case m[1] == "":
			names = append(names, m[3])
		default:
			s = append(s, term{key: m[1], op: m[2], value: m[3]})
		}
	}
	if names != nil {
		s = append(Selector{{key: "name", op: "=", value: strings.Join(names, "|")}}, s...)
	}
	for i := range s {
		err = cmp.Or(err, s[i].check())
	}
	if err != nil {
		return nil, fmt.Errorf("reading selector %q: %w", text, err)
	}
	return s, nil
}

// check checks a term, and turns a comparison of os with a number into one of its
// version: no system is called by a number.
func (t *term) check() (err error) {
	keys := slices.Sorted(maps.Keys(factsOf("", &fleet.Status{})))
	isVersion := versionSyntax.FindString(t.value) == t.value
	if t.key == "os" && isVersion {
		t.key = "os_version"
	}
	t.compare = compareText
	switch {
	case !slices.Contains(keys, t.key):
		near := cmp.Or(plan.Nearest(t.key, keys), strings.Join(keys, ", "))
		err = fmt.Errorf("unknown key %q (try %s)", t.key, near)
	case t.key == "memory":
		t.compare = compareBytes
		_, err = units.ParseBytes(t.value)
	case t.key == "os_version" && isVersion:
		t.compare = compareVersions
	case t.key == "os_version":
		err = fmt.Errorf("%q is not a version (want numbers with dots, such as 26.4)", t.value)
	case t.op != "=" && t.op != "!=":
		err = fmt.Errorf("%s%s%s: %s has no order (use = or !=)", t.key, t.op, t.value, t.key)
	default:
		_, err = path.Match(t.value, "")
	}
	return err
}

// reject is why a machine is not selected, "" if it is.
func (s Selector) reject(m Machine) string {
	if m.Status == nil {
		return "it has not sent a status yet"
	}
	facts := factsOf(m.Name, m.Status)
	for _, t := range s {
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
	isMet := func(v string) bool { return slices.Contains(operators[t.op], t.compare(v, t.value)) }
	return slices.ContainsFunc(have, isMet) != (t.op == "!=")
}

// compareText is 0 if have matches one of the patterns, whatever the case.
func compareText(have, want string) int {
	for pattern := range strings.SplitSeq(strings.ToLower(want), "|") {
		if ok, _ := path.Match(pattern, strings.ToLower(have)); ok && have != "" {
			return 0
		}
	}
	return unknown
}

// compareBytes compares sizes with units, where have is 0 if it is not known.
func compareBytes(have, want string) int {
	a, err := units.ParseBytes(have)
	b, _ := units.ParseBytes(want) // check has read it
	if err != nil || a == 0 {
		return unknown
	}
	return cmp.Compare(a, b)
}

// versionSyntax finds the version in a text such as "Debian GNU/Linux 13".
var versionSyntax = regexp.MustCompile(`\d+(\.\d+)*`)

// compareVersions compares the numbers that want has: 26.4 equals 26.
func compareVersions(have, want string) (n int) {
	numbers := strings.Split(versionSyntax.FindString(have), ".")
	if numbers[0] == "" {
		return unknown
	}
	for i, part := range strings.Split(want, ".") {
		a, _ := strconv.Atoi(append(numbers, make([]string, i+1)...)[i])
		b, _ := strconv.Atoi(part)
		n = cmp.Or(n, cmp.Compare(a, b))
	}
	return n
}
