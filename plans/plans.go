// Package plans holds the plans that the program ships with, embedded as the
// TOML files they are. It only hands out their text: reading a plan is the
// business of internal/plan, and a plan of one's own needs nothing from here.
package plans

import (
	"embed"
	"strings"
)

//go:embed *.toml
var files embed.FS

// Names lists the shipped plans, sorted: the files' names without ".toml".
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("the embedded folder cannot be read: " + err.Error())
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok {
			out = append(out, name)
		}
	}
	return out
}

// Get is the text of the plan of that name; ok is false if none is shipped
// under it.
func Get(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(name + ".toml")
	return text, err == nil
}
