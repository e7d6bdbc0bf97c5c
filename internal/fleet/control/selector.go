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
type term struct{ key, op, value string }

// signs are the results of a comparison that an operator accepts, where != is
// none of =.
var signs = map[string][]int{"=": {0}, "!=": {0}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

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
// any characters, ? for one, and | for or.
func ParseSelector(text string) (s Selector, err error) {
	var names []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		m := termSyntax.FindStringSubmatch(part)
		switch {
		case text == "":
		case m != nil:
			s = append(s, term{m[1], m[2], m[3]})
		case part == "" || strings.ContainsAny(part, "=<>!"):
			err = fmt.Errorf("%q is neither the name of a machine nor KEY=VALUE", part)
		default:
			names = append(names, part)
		}
	}
	if names != nil {
		s = append(Selector{{"name", "=", strings.Join(names, "|")}}, s...)
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
	switch {
	case !slices.Contains(keys, t.key):
		near := cmp.Or(plan.Nearest(t.key, keys), strings.Join(keys, ", "))
		err = fmt.Errorf("unknown key %q (try %s)", t.key, near)
	case t.key == "memory":
		_, err = units.ParseBytes(t.value)
	case t.key == "os_version" && !isVersion:
		err = fmt.Errorf("%q is not a version (want numbers with dots, such as 26.4)", t.value)
	case t.key != "os_version" && t.op != "=" && t.op != "!=":
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
	compare := compareText
	switch t.key {
	case "memory":
		compare = compareBytes
	case "os_version":
		compare = compareVersions
	}
	isMet := func(v string) bool {
		n, known := compare(v, t.value)
		return known && slices.Contains(signs[t.op], n)
	}
	return slices.ContainsFunc(have, isMet) != (t.op == "!=")
}

// compareText is 0 if have matches one of the patterns, whatever the case.
func compareText(have, want string) (n int, known bool) {
	for pattern := range strings.SplitSeq(strings.ToLower(want), "|") {
		if ok, _ := path.Match(pattern, strings.ToLower(have)); ok {
			return 0, have != ""
		}
	}
	return 1, have != ""
}

// compareBytes compares sizes with units.
func compareBytes(have, want string) (n int, known bool) {
	a, err := units.ParseBytes(have)
	b, _ := units.ParseBytes(want) // check has read it
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
