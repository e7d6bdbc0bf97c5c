package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
)

// withoutIdentity copies a record without host name, user and paths. What it
// shares with the original is left as it was.
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

// hidden is a path and what replaces it, both as JSON writes them.
type hidden struct{ path, instead []byte }

// addHidden keeps the longest path first, so that a folder inside another one gets
// its own name. A relative path is left out: it identifies no machine, and a run
// folder called "done" would take that word out of every record.
func addHidden(list []hidden, path, instead string) []hidden {
	if len(path) < 2 || !filepath.IsAbs(path) { // "/" would hide every separator
		return list
	}
	list = append(slices.Clone(list), hidden{inJSON(path), inJSON(instead)})
	slices.SortStableFunc(list, func(a, b hidden) int { return cmp.Compare(len(b.path), len(a.path)) })
	return list
}

// inJSON is s as written inside a JSON string.
func inJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return b[1 : len(b)-1]
}

// hideAll replaces paths in an encoded record, but never a part of a longer
// name: /a/b is not hidden inside /a/bc.
func hideAll(line []byte, list []hidden) []byte {
	for _, h := range list {
		line = hideOne(line, h)
	}
	return line
}

func hideOne(line []byte, h hidden) []byte {
	var out []byte
	rest := line
	for {
		i := bytes.Index(rest, h.path)
		if i < 0 {
			break
		}
		end := i + len(h.path)
		out = append(out, rest[:i]...)
		if end < len(rest) && nameByte(rest[end]) {
			out = append(out, rest[i:end]...)
		} else {
			out = append(out, h.instead...)
		}
		rest = rest[end:]
	}
	if out == nil {
		return line
	}
	return append(out, rest...)
}

// nameByte reports whether c, after a path, continues the name of its last element.
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= 0x80
}
