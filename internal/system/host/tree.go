package host

import (
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// tree reads facts below a root folder: "/" of the machine, or a made-up tree.
type tree string

// fileLimit bounds what is read of one file; /proc/cpuinfo of hundreds of
// processors is below it.
const fileLimit = 1 << 20

func (t tree) path(name string) string { return filepath.Join(string(t), filepath.FromSlash(name)) }

// read is the content of a file as it is, "" if it cannot be had.
func (t tree) read(name string) string {
	f, err := os.Open(t.path(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	p, _ := io.ReadAll(io.LimitReader(f, fileLimit))
	return string(p)
}

// text is the content of a file made fit for a result.
func (t tree) text(name string) string { return clean(t.read(name)) }

func (t tree) exists(name string) bool {
	_, err := os.Stat(t.path(name))
	return err == nil
}

// list is the names in a folder, sorted, with the folder before them.
func (t tree) list(dir string) []string {
	entries, _ := os.ReadDir(t.path(dir))
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, path.Join(dir, e.Name()))
	}
	return out
}

// number is a whole number that a file consists of.
func (t tree) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(t.read(name)), 10, 64)
	return n, err == nil
}

// fields finds the values of "key<sep>value" lines; the first of a key counts.
func fields(content, sep string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(content) {
		k, v, ok := strings.Cut(line, sep)
		if k = strings.TrimSpace(k); ok && out[k] == "" {
			out[k] = strings.TrimSpace(v)
		}
	}
	return out
}

// maxCPUs bounds processor numbers that are believed.
const maxCPUs = 1 << 16

// cpuList counts the processors of a list like "0-3,8,10-11"; 0 if it is none.
func cpuList(s string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		from, to, span := strings.Cut(part, "-")
		if !span {
			to = from
		}
		a, err1 := strconv.ParseUint(from, 10, 32)
		b, err2 := strconv.ParseUint(to, 10, 32)
		if err1 != nil || err2 != nil || a > b || b >= maxCPUs || n > maxCPUs {
			return 0
		}
		n += int(b-a) + 1
	}
	return n
}

// size is a count of units as bytes; 0 if it is not a positive number that
// fits.
func size(s string, unit int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0
	}
	return n * unit
}
