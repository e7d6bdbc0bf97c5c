package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
)

// withoutIdentity copies a record without host name, user and paths. It does
// not change the original.
func withoutIdentity(rec Record) Record {
	if rec.Session != nil {
		s := *rec.Session
		s.Host.Name, s.Host.User = "", ""
		s.Host.Disks = slices.Clone(s.Host.Disks)
		for i := range s.Host.Disks {
			s.Host.Disks[i].Path = ""
		}
		rec.Session = &s
	}
	if rec.Run != nil {
		r := *rec.Run
		r.Places = slices.Clone(r.Places)
		for i := range r.Places {
			r.Places[i].Path = ""
		}
		rec.Run = &r
	}
	return rec
}

// hiddenPath is a path and its replacement, both as JSON writes them.
type hiddenPath struct{ path, instead []byte }

// addHidden adds a path to the list, which has the longest path first, so that
// a folder inside another one gets its own replacement. It omits relative
// paths: they identify no machine, and for a run folder called "done" every
// record would lose that word. It also omits "/", which is in every path.
func addHidden(list []hiddenPath, path, instead string) []hiddenPath {
	if len(path) < 2 || !filepath.IsAbs(path) {
		return list
	}
	list = append(slices.Clone(list), hiddenPath{inJSON(path), inJSON(instead)})
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

// hidePaths replaces paths in an encoded record, but not the start of a longer
// name: it does not replace /a/b in /a/bc.
func hidePaths(line []byte, list []hiddenPath) []byte {
	for _, h := range list {
		parts := bytes.Split(line, h.path)
		if len(parts) == 1 {
			continue
		}
		line = slices.Clone(parts[0])
		for _, rest := range parts[1:] {
			instead := h.instead
			if len(rest) > 0 && isNameByte(rest[0]) {
				instead = h.path
			}
			line = append(append(line, instead...), rest...)
		}
	}
	return line
}

// isNameByte reports whether c, after a path, continues the name of its last
// element.
func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 0x80
}
