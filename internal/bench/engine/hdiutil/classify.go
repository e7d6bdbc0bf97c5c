package hdiutil

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// wordsOf are the texts that name a class, as alternatives of parts.
type wordsOf struct {
	class Class
	words [][]string // all parts of one are in a line, in this order
}

// vocabulary is searched in its order: specific words come first. It is made
// when the first tool fails.
var vocabulary = sync.OnceValue(func() []wordsOf {
	// What is wrong with the command line is printed in English everywhere.
	list := []wordsOf{{Invalid, split("unknown option|unrecognized option|invalid option|illegal option|option*not recognized|" +
		"option requires|unexpected argument|missing expected|missing value|usage:")}}
	for _, c := range []Class{Locked, Auth, NoSpace, Quota, OpenFiles, TooLarge, ReadOnly, InputOutput, NoMemory, Busy,
		TimedOut, Exists, Permission, NotPermitted, NoFileSystem, DamagedVolume, Damaged, NotImage, NotFound, Unsupported,
		NoDevice, NoHelper, Battery, Invalid, Canceled} {
		w := wordsOf{c, split(c.words)}
		for entry := range strings.SplitSeq(localized[c], ";") {
			_, words, _ := strings.Cut(strings.TrimSpace(entry), " ")
			w.words = append(w.words, split(words)...)
		}
		list = append(list, w)
	}
	// Without a known reason.
	return append(list, wordsOf{Busy, split("could not be unmounted|couldn't unmount|failed to unmount|unmount*failed|" +
		"couldn't eject")})
})

// split are the parts of alternatives.
func split(words string) (list [][]string) {
	for w := range strings.SplitSeq(words, "|") {
		if w = fold(strings.TrimSpace(w)); w != "" {
			list = append(list, strings.Split(w, "*"))
		}
	}
	return list
}

// find is the last line that has one of the words.
func (w wordsOf) find(lines []string) int {
	for i, line := range slices.Backward(lines) {
		if slices.ContainsFunc(w.words, func(parts []string) bool { return hasParts(line, parts) }) {
			return i
		}
	}
	return -1
}

func hasParts(line string, parts []string) bool {
	for _, p := range parts {
		_, rest, ok := strings.Cut(line, p)
		if !ok {
			return false
		}
		line = rest
	}
	return true
}

// marks write letters that look alike in one way, and leave out those that only
// give the direction of the text.
var marks = strings.NewReplacer("’", "'", "‘", "'", "ʼ", "'", "ı", "i", "\u0307", "", "ς", "σ",
	"\u200e", "", "\u200f", "", "\u202a", "", "\u202b", "", "\u202c", "", "\u2068", "", "\u2069", "")

// fold is a text in lower case, composed, and with usual instead of full-width
// characters.
func fold(text string) string { return marks.Replace(norm.NFKC.String(strings.ToLower(text))) }

var (
	quotedReason = regexp.MustCompile(`(code=-?\d+) "([^"]*)"`)
	// names are what may be the name of a file, a volume or a device.
	names = regexp.MustCompile(`"[^"]*"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|「[^」]*」|(?:^|[\s(])(?:'[^']*'|/\S+)|` +
		`\S+\.(?:dmg|cdr|asif|iso|sparse\w+)\b`)
	// reason is what hdiutil prints after its own words and the name of a file.
	reason     = regexp.MustCompile(`^(?:hdiutil|diskutil)\b.* - (.+)$`)
	exitStatus = regexp.MustCompile(`exit (?:code|status)(?: is)? (\d+)`)
)

// withoutNames takes the names of files out of a line, and those that are
// arguments.
func withoutNames(line string, c command.Command) string {
	line = names.ReplaceAllString(quotedReason.ReplaceAllString(fold(line), "$1 $2"), " ")
	for _, a := range c.Args {
		if base := filepath.Base(a); strings.ContainsAny(a, "/.") && len(base) > 4 {
			line = strings.ReplaceAll(strings.ReplaceAll(line, fold(a), " "), fold(base), " ")
		}
	}
	return line
}

// anError is the word error in the languages of macOS.
const anError = `(?:error|errno|erreur|erro|eroare|fehler|fout|fel|feil|fejl|virhe|błąd|błędu|chyb|hiba|grešk|σφάλμα|hata|` +
	`ошибк|помилк|エラー|错误|錯誤|오류|ข้อผิดพลาด|lỗi|kesalahan|ralat|שגיא|خطأ|एरर|osstatus|code)`

// numberForms are how numbers of errors are printed: after the word, in
// parentheses or after a dash at the end, or as what a function returned. A count, as in
// "error reading 16 bytes", is none.
var numberForms = []*regexp.Regexp{
	regexp.MustCompile(anError + `\pL{0,8}\s?\pL{0,9}(?: is)?[\s:=(]{0,3}(-?\d+|0x[0-9a-f]+)\s*` +
		`(?:\.?$|[):,;'"]|\.\s|\.\)|- |[^\x00-\x7f])`),
	regexp.MustCompile(anError + `[ =](-?\d{1,6})(?:[^\w%.]|$)`),
	regexp.MustCompile(`\([^()]*domain[^()\d]*(-?\d+)[^()\d]*\)`),
	regexp.MustCompile(anError + ` (-?\d+)[^()\d]*domain`),
	regexp.MustCompile(`\((-?\d{1,10}|0x[0-9a-f]+)\)(?:\W*$|:)`),
	regexp.MustCompile(`(?: - |failed:? )(-?\d{1,10}|0x[0-9a-f]+)\W*$`),
	regexp.MustCompile(`(?:\(\) returned |(?:returned|status|result)\D{0,6}(?:\b|-))(-?\d{2,}|0x[0-9a-f]+)\b`),
	regexp.MustCompile(`\b(0x(?:c0[0-9a-f]{2}|e0[0-9a-f]{6}|f8da[0-9a-f]{4}))\b`),
}

// numbersIn are the numbers of errors in a line.
func numbersIn(line string) (list []int) {
	for _, form := range numberForms {
		for _, m := range form.FindAllStringSubmatch(line, -1) {
			digits, isHex := strings.CutPrefix(m[1], "0x")
			n, err := strconv.ParseInt(digits, 10, 64)
			if isHex {
				n, err = strconv.ParseInt(digits, 16, 64)
			}
			switch {
			case err != nil, n > 0 && n < 107 && strings.Contains(line, "errordomain") && !strings.Contains(line, "posix"):
				continue // errno is of another domain
			case n < -1<<20: // as a signed number
				n += 1 << 32
			case n >= 0xC000 && n <= 0xC0FF: // Disk Arbitration's form of errno
				n &= 0xFF
			}
			list = append(list, int(n))
		}
	}
	return list
}

// classOfNumber is the class of an error number, nil if none has it.
func classOfNumber(n int) Class {
	i := slices.IndexFunc(vocabulary(), func(w wordsOf) bool { return slices.Contains(w.class.numbers, n) })
	if i < 0 {
		return nil
	}
	return vocabulary()[i].class
}

// classify finds the class of a failure and the line that gives its reason: by
// a status that means busy, a number, which is the same in each language, the
// reason in the tool's own form, other words, or the status.
func classify(c command.Command, status int, m command.Messages) (Class, string) {
	if status == 16 || status == 35 {
		return classOfNumber(status), m.Last()
	}
	var lines, reasons []string
	var checkers string // the status of the program that checked a file system
	for _, line := range m.Lines {
		lines = append(lines, withoutNames(line, c))
		r := ""
		if f := reason.FindStringSubmatch(fold(line)); f != nil {
			r = withoutNames(f[1], c)
		}
		reasons = append(reasons, r)
		if f := exitStatus.FindStringSubmatch(fold(line)); f != nil {
			checkers = f[1]
		}
	}
	for i, line := range slices.Backward(lines) {
		for _, n := range numbersIn(line) {
			if found := classOfNumber(n); found != nil && strconv.Itoa(n) != checkers {
				return found, m.Lines[i]
			}
		}
	}
	for _, text := range [][]string{reasons, lines} {
		for _, w := range vocabulary() {
			if i := w.find(text); i >= 0 {
				return w.class, m.Lines[i]
			}
		}
	}
	found := classOfNumber(status)
	switch {
	case status == 64: // of command lines that are wrong, by sysexits
		return Invalid, ""
	case c.Tool == command.Hdiutil && status > 2 && status < 64 && found != nil:
		return found, ""
	}
	return Unknown, ""
}

// classOf is the class of an error of this package, Unknown for others.
func classOf(err error) Class {
	if e, ok := errors.AsType[*ToolError](err); ok {
		return e.Class
	}
	return Unknown
}

// isTransient reports whether waiting may help.
func isTransient(err error) bool { return classOf(err) == Busy || classOf(err) == Locked }

const (
	tries       = 5 // of a command that is busy
	deviceTries = 4 // of one that did not reach the system's disk image driver: 3.5 s, since it never does in a sandbox
	otherTries  = 3 // of one that failed for a reason that may pass
)

// Verbs by what a failed run may have done.
var (
	// needDriver are the verbs that need the system's disk image driver.
	needDriver = []string{"create", "attach", "resize", "image create blank", "image attach", "image resize"}
	// repeatable are verbs that only read, or of whose failed tries no trace is
	// left: what they made is removed, and what they attached is found.
	repeatable = []string{"create", "attach", "convert", "info", "imageinfo", "verify", "verifyVolume",
		"image create blank", "image create from", "image attach", "image info"}
)

// triesFor is how often a command may be run that fails with the error. On
// loaded machines "Device not configured" (ENXIO) and, of create, "image not
// recognized" are passing: in build logs of several projects the same command
// succeeds when it is run again. What is unknown may be passing, too.
func triesFor(verb string, err error) int {
	c := classOf(err)
	_, isTools := errors.AsType[*ToolError](err)
	switch {
	case !isTools:
		return 1
	case isTransient(err):
		return tries
	case c == NoDevice && slices.Contains(needDriver, verb), c == NotImage && verb == "create":
		return deviceTries
	case slices.Contains([]Class{Unknown, NoHelper, TimedOut, InputOutput}, c) && slices.Contains(repeatable, verb):
		return otherTries
	}
	return 1
}
