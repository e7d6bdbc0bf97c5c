package report

import (
	"slices"
	"strings"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

func FirstOf(options ...string) string {
	for _, s := range options {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

func NonEmpty(in []string) []string {
	return slices.DeleteFunc(in, func(s string) bool { return s == "" })
}

func drop(in []Pair) []Pair {
	return slices.DeleteFunc(in, func(p Pair) bool { return p.Value == "" })
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "“" + s + "”"
}

func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(int64(n)) + " " + noun + "s"
}

func goVersion(t result.Tool) string {
	parts := NonEmpty([]string{Plain(t.Go, 30), strings.Trim(Plain(t.OS, 20)+"/"+Plain(t.Arch, 20), "/")})
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func digestText(digest string) string {
	if digest == "" {
		return ""
	}
	return ", SHA-256 " + Shorten(digest, 13)
}

// status says in words how the run ended; a run that is done needs none.
func status(r *result.Result) string {
	switch r.Status {
	case result.Done, "":
		return ""
	case result.Unfinished:
		return "unfinished: figures may change when it is resumed"
	case result.Failed:
		return "ended with failed or discarded cases"
	case result.Skipped:
		return "nothing was measured"
	}
	return Plain(r.Status, 60)
}

// formatNames is the legend of Apple's four-letter names.
var formatNames = []Pair{
	{"UDRW", "read/write image of fixed size (RAW); allocated in full when made, sparse after a trim"},
	{"UDSB", "sparse bundle: a folder of band files that come and go with the contents"},
	{"UDSP", "sparse image: one file that grows"},
	{"ASIF", "Apple Sparse Image Format, since macOS 26: one sparse file"},
	{"UDRO", "read-only image"},
	{"UDCO", "read-only, compressed with ADC"},
	{"UDZO", "read-only, compressed with zlib"},
	{"UDBZ", "read-only, compressed with bzip2"},
	{"ULFO", "read-only, compressed with LZFSE"},
	{"ULMO", "read-only, compressed with LZMA"},
	{"UDTO", "master of an optical disc"},
	{"UFBI", "entire device with its partition map"},
}

// formatLegend explains the names that occur in the result.
func formatLegend(r *result.Result) []Pair {
	used := map[string]bool{}
	for _, c := range r.Cases {
		used[c.Target.Format] = true
		for _, kv := range c.Keys {
			used[kv[1]] = true
		}
	}
	var out []Pair
	for _, f := range formatNames {
		if used[f.Name] || f.Name == "UDRW" && used["RAW"] {
			out = append(out, f)
		}
	}
	return out
}

// canonical is the plan's own text with foreign names made safe, line by line.
func canonical(p *plan.Plan) string {
	var lines []string
	for line := range strings.Lines(string(p.Canonical())) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		lines = append(lines, indent+Clean(line))
	}
	return strings.Join(lines, "\n")
}
