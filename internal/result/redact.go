package result

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
)

// hiddenPath is a path as JSON writes it, and its replacement. found matches the
// path with the next character, unless that continues the name of its last
// element: /a/b is not replaced in /a/bc.
type hiddenPath struct {
	path, instead []byte
	found         *regexp.Regexp
}

// addHidden adds a path to the list, which has the longest path first, so that
// a folder inside another one gets its own replacement. It omits relative
// paths: they identify no machine, and for a run folder called "done" every
// record would lose that word. It also omits "/", which is in every path.
func addHidden(list []hiddenPath, path, instead string) []hiddenPath {
	if len(path) < 2 || !filepath.IsAbs(path) {
		return list
	}
	h := hiddenPath{path: inJSON(path), instead: inJSON(instead)}
	h.found = regexp.MustCompile(regexp.QuoteMeta(string(h.path)) + `(?:$|[^\w\x{80}-\x{10FFFF}-])`)
	list = append(slices.Clone(list), h)
	slices.SortStableFunc(list, func(a, b hiddenPath) int { return cmp.Compare(len(b.path), len(a.path)) })
	return list
}

// inJSON is s as written inside a JSON string.
func inJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // marshalling a string cannot fail
		panic(err)
	}
	return b[1 : len(b)-1]
}

// hidePaths replaces paths in an encoded record.
func hidePaths(line []byte, list []hiddenPath) []byte {
	for _, h := range list {
		line = h.found.ReplaceAllFunc(line, func(found []byte) []byte {
			return append(slices.Clone(h.instead), found[len(h.path):]...)
		})
	}
	return line
}
