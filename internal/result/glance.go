package result

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"sync"
)

// Glance reads of a run folder what a list of many runs shows: a [Result] whose
// cases have their id, status and whether they are the baseline, whose claims have
// their id and verdict, and whose summaries are the first of each case that has a rate
// for its headline, with that estimate; nothing else of these, and all else whole.
//
// Of a result.json as this program writes it what is left out is passed over without
// being decoded, and so without being checked, which makes a thousand runs quick;
// one of another form is read in full. Without a result.json the journal is read,
// and there are neither summaries nor verdicts.
//
// It may be called from several goroutines; each call holds one file in memory.
func Glance(dir string) (*Result, error) {
	return glance(dir, brief, glimpse)
}

// GlanceClaims is [Glance] with the claims whole, and with neither cases nor summaries.
func GlanceClaims(dir string) (*Result, error) {
	return glance(dir, briefClaims, func(r *Result) *Result {
		r.Cases, r.Summaries = []Case{}, []Summary{}
		return r
	})
}

// glance decodes what cut leaves of a result.json; keep does the same to a result that was read in full.
func glance(dir string, cut func([]byte) []byte, keep func(*Result) *Result) (*Result, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, &Error{Doing: "opening run folder", File: dir, Err: err}
	}
	defer d.Close()
	buf := glanced.Get().(*bytes.Buffer)
	defer glanced.Put(buf)
	err = d.readInto(buf, ResultFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		recs, err := d.Journal()
		if err != nil {
			return nil, err
		}
		r, err := Fold(recs)
		if err != nil {
			return nil, err
		}
		return keep(r), nil
	}
	if err != nil {
		return nil, &Error{Doing: "reading result", File: ResultFile, Err: errors.Unwrap(err)}
	}
	b := buf.Bytes()
	r, err := ParseResult(ResultFile, cut(b))
	if err != nil {
		r, err = ParseResult(ResultFile, b) // of another form; and if damaged, the line is that of the file
	}
	if err != nil {
		return nil, err
	}
	return keep(r), nil
}

// glanced are buffers for one file each; what is decoded from them is copied.
var glanced = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// glimpse takes out of a result what [Glance] does not give.
func glimpse(r *Result) *Result {
	for i, c := range r.Cases {
		r.Cases[i] = Case{ID: c.ID, Status: c.Status, Baseline: c.Baseline}
	}
	for i, c := range r.Claims {
		r.Claims[i] = Claim{ID: c.ID, Verdict: c.Verdict}
	}
	first := []Summary{}
	for _, s := range r.Summaries {
		i := slices.IndexFunc(s.Estimates, func(e Estimate) bool { return e.Name == s.Headline })
		if i < 0 || s.Estimates[i].Unit != rateUnit || slices.ContainsFunc(first, func(o Summary) bool { return o.Case == s.Case }) {
			continue
		}
		first = append(first, Summary{Case: s.Case, Phase: s.Phase, Op: s.Op, Cycle: s.Cycle, Headline: s.Headline, Estimates: s.Estimates[i : i+1]})
	}
	r.Summaries = first
	return r
}

const rateUnit = "B/s"

// brief takes out of a result.json what [Glance] does not give. It goes by the
// indentation that [Result.MarshalIndent] writes: JSON has no line break inside a
// string, so that a line's indentation says how deep it is. What has another form
// is left as it is.
func brief(b []byte) []byte {
	b = shorten(b, "cases", keepFields(`"id":`, `"baseline":`, `"status":`))
	b = shorten(b, "summaries", firstRates())
	return shorten(b, "claims", keepFields(`"id":`, `"verdict":`))
}

// briefClaims is brief for [GlanceClaims].
func briefClaims(b []byte) []byte {
	none := func(out, _ []byte) []byte { return out }
	return shorten(shorten(b, "cases", none), "summaries", none)
}

// shorten gives b with the elements of a list of the result replaced by what short makes of each.
func shorten(b []byte, list string, short func(out, element []byte) []byte) []byte {
	from := bytes.Index(b, []byte("\n  \""+list+"\": [\n"))
	if from < 0 {
		return b
	}
	from += len("\n  \"\": [") + len(list)
	const opening, closing = "\n    {\n", "\n    }"
	out := append(make([]byte, 0, from+1<<14), b[:from]...)
	rest := b[from:] // walked through once, as most of a large result lies here
	for bytes.HasPrefix(rest, []byte(opening)) {
		rest = rest[len(opening)-1:]
		end := bytes.Index(rest, []byte(closing))
		if end < 0 {
			return b
		}
		before := len(out)
		if out = short(out, rest[:end+1]); len(out) > before {
			out = append(out, ',')
		}
		rest = bytes.TrimPrefix(rest[end+len(closing):], []byte(","))
	}
	if !bytes.HasPrefix(rest, []byte("\n  ]")) {
		return b
	}
	if len(out) > from { // the comma behind the last
		out = out[:len(out)-1]
	}
	return append(out, rest...)
}

// fields calls each with the lines of an element that begin its own fields, without
// their indentation and the comma, and with what follows the line, until it says that this is all.
func fields(b []byte, each func(line, rest []byte) (all bool)) {
	const key = "\n      \""
	for {
		at := bytes.Index(b, []byte(key))
		if at < 0 {
			return
		}
		b = b[at+len(key)-1:]
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return
		}
		if each(bytes.TrimSuffix(b[:end], []byte(",")), b[end:]) {
			return
		}
		b = b[end:]
	}
}

// keepFields keeps of an element the fields that begin so: those that stand in one line, and objects.
func keepFields(keys ...string) func(out, element []byte) []byte {
	return func(out, element []byte) []byte {
		mark, found := byte('{'), 0
		fields(element, func(line, rest []byte) bool {
			if slices.ContainsFunc(keys, func(k string) bool { return bytes.HasPrefix(line, []byte(k)) }) {
				out = append(append(out, mark), line...)
				if bytes.HasSuffix(line, []byte(": {")) {
					end, _, _ := bytes.Cut(rest, []byte("\n      }"))
					out = append(append(out, end...), '}')
				}
				mark = ','
				found++
			}
			return found == len(keys)
		})
		if mark == '{' {
			out = append(out, mark)
		}
		return append(out, '}')
	}
}

// firstRates keeps of the first summary of each case that has a rate for its
// headline the names and that estimate. Equal names are equal bytes, as one encoder wrote them.
func firstRates() func(out, element []byte) []byte {
	names := keepFields(`"case":`, `"phase":`, `"op":`, `"cycle":`, `"headline":`)
	var seen [][]byte
	return func(out, element []byte) []byte {
		var of, headline, estimate []byte
		fields(element, func(line, rest []byte) bool {
			if v, ok := bytes.CutPrefix(line, []byte(`"case": `)); ok {
				of = v
			}
			if v, ok := bytes.CutPrefix(line, []byte(`"headline": `)); ok {
				headline = v
			}
			if bytes.Equal(line, []byte(`"estimates": [`)) && !slices.ContainsFunc(seen, func(c []byte) bool { return bytes.Equal(c, of) }) {
				estimate = named(rest, headline)
			}
			return estimate != nil
		})
		if !bytes.Contains(estimate, []byte("\n          \"unit\": \""+rateUnit+"\"")) {
			return out
		}
		seen = append(seen, of)
		out = names(out, element)
		out = append(out[:len(out)-1], `,"estimates":[`...)
		return append(append(out, estimate...), "]}"...)
	}
}

// named is the estimate of a name in what follows the beginning of their list, with nothing around it.
func named(b, name []byte) []byte {
	const opening, closing = "\n        {\n          \"name\": ", "\n        }"
	if end := bytes.Index(b, []byte("\n      ]")); end >= 0 {
		b = b[:end]
	}
	for len(name) > 0 {
		at := bytes.Index(b, []byte(opening))
		if at < 0 {
			break
		}
		value := b[at+len(opening):]
		end := bytes.Index(value, []byte(closing))
		if end < 0 {
			break
		}
		if rest, ok := bytes.CutPrefix(value, name); ok && (rest[0] == ',' || rest[0] == '\n') {
			return b[at : at+len(opening)+end+len(closing)]
		}
		b = value[end:]
	}
	return nil
}
