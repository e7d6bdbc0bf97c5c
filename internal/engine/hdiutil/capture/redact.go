package capture

import (
	"bytes"
	"cmp"
	"os"
	"os/user"
	"regexp"
	"slices"
)

// word is something that is not to be told, and what stands for it.
type word struct{ what, stands []byte }

// minPrivate is the shortest name, in bytes, that is looked for: "a" would be found everywhere.
const minPrivate = 3

// words are all of them, the longest first: one may be part of another.
func words(o Options, work string) []word {
	var list []word
	add := func(what, stands string) {
		if len(what) >= minPrivate {
			list = append(list, word{[]byte(what), []byte(stands)})
		}
	}
	add(string(o.Passphrase), "$PASSPHRASE")
	add(work, "$WORK")
	for what, stands := range o.Private {
		add(what, stands)
	}
	if u, err := user.Current(); err == nil && u.Username != "root" {
		add(u.HomeDir, "$HOME")
		add(u.Username, "$USER")
		add(u.Name, "$USERNAME")
	}
	if host, err := os.Hostname(); err == nil {
		add(host, "$HOST")
	}
	for _, t := range [][]string{o.Hdiutil, o.Diskutil} {
		if len(t) > 1 { // a program of ours; Apple's have their fixed places
			add(t[0], "$PROGRAM")
		}
	}
	slices.SortFunc(list, func(a, b word) int { return cmp.Compare(len(b.what), len(a.what)) })
	return list
}

// Paths in property lists that are neither ours nor the system's: images that somebody else has attached.
var (
	pathString = regexp.MustCompile(`<string>/[^<]*</string>`)
	ordinary   = regexp.MustCompile(`^<string>/(dev|System|usr|sbin|bin|private/tmp)(/[^<]*)?</string>$`)
)

// redact takes out what is private.
func (x *session) redact(content []byte) []byte {
	for _, w := range x.words {
		content = bytes.ReplaceAll(content, w.what, w.stands)
	}
	return pathString.ReplaceAllFunc(content, func(p []byte) []byte {
		if ordinary.Match(p) {
			return p
		}
		return []byte("<string>/$PRIVATE</string>")
	})
}
