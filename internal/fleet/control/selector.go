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

	"dmgbench/internal/system/host"
)

// Selector selects machines by their facts. The zero value selects all.
type Selector []term

// term compares a fact with a value.
type term struct{ key, op, value string }

// unknown is the result of a comparison with a fact that is not known.
const unknown = 2

// operators have the results of comparisons that they accept, where != is none
// of =.
var operators = map[string][]int{"=": {0}, "!=": {0}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

// The characters that path.Match gives a meaning to, other than * and ?, are in no
// value, so that every pattern is valid.
var termSyntax = regexp.MustCompile(`^\s*(?:([a-z_]+)\s*(>=|<=|!=|=|>|<))?\s*([^=<>![\\]*[^=<>![\\\s])\s*$`)

// number finds the version in a text such as "Debian GNU/Linux 13".
var number = regexp.MustCompile(`\d+(\.\d+)*`)

// factsOf are the values of the keys that a selector may have. A machine has
// several tags, or none, and its system a name and a version.
func factsOf(m Machine) map[string][]string {
	h, gib := m.Host, int64(1<<30)
	return map[string][]string{
		"name": {m.Machine}, "tag": m.Tags, "arch": {h.Arch}, "model": {h.Model}, "cpu": {h.CPU},
		"os": {strings.Replace(h.OS, "darwin", "macos", 1), h.OSVersion}, "os_version": {h.OSVersion},
		"memory":  {strings.TrimPrefix(fmt.Sprint((h.Memory+gib/2)/gib), "0")}, // 0 is not known
		"virtual": {map[bool]string{false: "no", true: "yes"}[host.Virtual(h)]},
	}
}

// ParseSelector reads terms with commas between them, which all have to hold:
// os>=26, arch=arm64, memory>=16 (GiB), tag=lab, virtual=no. Of the terms that are
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
			t := term{m[1], m[2], m[3]}
			err = cmp.Or(err, t.check())
			s = append(s, t)
		}
	}
	s = slices.Insert(s, 0, term{"name", "=", cmp.Or(strings.Join(names, "|"), "*")})
	if err != nil {
		return nil, fmt.Errorf("reading selector %q: %w", text, err)
	}
	return s, nil
}

// check returns an error if no fact can be compared with the term.
func (t term) check() error {
	keys := slices.Sorted(maps.Keys(factsOf(Machine{})))
	switch {
	case !slices.Contains(keys, t.key):
		return fmt.Errorf("unknown key %q (try %s)", t.key, strings.Join(keys, ", "))
	case !t.isNumber() && t.op != "=" && t.op != "!=":
		return fmt.Errorf("%s%s%s: want =, !=, or a number such as 26.4 for os or memory", t.key, t.op, t.value)
	}
	return nil
}

// isNumber reports whether the term compares numbers or versions.
func (t term) isNumber() bool {
	return slices.Contains([]string{"os", "os_version", "memory"}, t.key) && number.FindString(t.value) == t.value
}

// reject is why a machine is not selected, "" if it is.
func (s Selector) reject(m Machine) string {
	if m.Heard.IsZero() {
		return "it has not sent a status yet"
	}
	facts := factsOf(m)
	for _, t := range s {
		if have := facts[t.key]; !t.holds(have) {
			want := strings.TrimPrefix(t.op+" "+t.value, "= ")
			if t.key == "tag" {
				return map[bool]string{true: "has no tag ", false: "has tag "}[t.op == "="] + "“" + t.value + "”"
			}
			return t.key + " is " + cmp.Or(strings.Join(have, ", "), "not known") + ", want " + want
		}
	}
	return ""
}

// holds reports whether one of the values meets the term, or for != none has the
// other value.
func (t term) holds(have []string) bool {
	isMet := func(v string) bool { return slices.Contains(operators[t.op], t.compare(v)) }
	return slices.ContainsFunc(have, isMet) != (t.op == "!=")
}

// compare compares a fact as cmp.Compare does. Of a version it compares the numbers
// that the term has: 26.4 equals 26. A text equals one of the patterns, whatever
// the case, or is unknown.
func (t term) compare(have string) (n int) {
	if !t.isNumber() {
		for pattern := range strings.SplitSeq(strings.ToLower(t.value), "|") {
			if ok, _ := path.Match(pattern, strings.ToLower(have)); ok && have != "" {
				return 0
			}
		}
		return unknown
	}
	numbers := strings.Split(number.FindString(have), ".")
	if numbers[0] == "" {
		return unknown
	}
	for i, part := range strings.Split(t.value, ".") {
		a, _ := strconv.Atoi(append(numbers, make([]string, i+1)...)[i])
		b, _ := strconv.Atoi(part)
		n = cmp.Or(n, cmp.Compare(a, b))
	}
	return n
}
