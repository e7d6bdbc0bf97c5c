// Command testgate reads the output of `go test -json` and prints it as plain
// `go test` does, but fails if a test skipped that could have run on this
// machine.
//
// A skipped test passes for any reason: without this check a missing tool
// silently disables the strictest tests. The caller lists the reasons that do
// not apply on this machine; the command runs no test.
//
//	go test -json ./... | testgate -could 'is not installed|needs root'
//
// Exit status: 0 all passed, 1 a failure or a test that skipped though it could
// have run.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	could := flag.String("could", "$.", "regular `expression` of the reasons to skip that do not apply here; by default all apply")
	flag.Parse()
	g := gate{w: os.Stdout, could: regexp.MustCompile(*could)}
	if err := g.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
		os.Exit(1)
	}
}

// event is a line of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// gate holds the output of each test until the test has ended.
type gate struct {
	w       io.Writer
	could   *regexp.Regexp // reasons to skip that do not apply
	output  map[[2]string]*strings.Builder
	ended   int      // packages
	failed  int      // packages and builds
	skipped []string // tests that could have run
}

// read reads the stream. It returns an error if a test failed, if one skipped
// that could have run, and if the stream contains the result of no package.
func (g *gate) read(r io.Reader) error {
	g.output = map[[2]string]*strings.Builder{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil || e.Action == "":
			fmt.Fprintf(g.w, "%s", line) // a message of go itself
		default:
			g.handle(e)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the output of go test: %w", err)
		}
	}
	switch {
	case len(g.skipped) > 0:
		return fmt.Errorf("skipped, and could have run here:\n%s", strings.Join(g.skipped, "\n"))
	case g.failed > 0:
		return fmt.Errorf("%d packages did not pass", g.failed)
	case g.ended == 0:
		return errors.New("reading the output of go test: no package was tested")
	}
	return nil
}

func (g *gate) handle(e event) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(g.w, e.Output)
	case "build-fail":
		g.failed++
	case "output":
		if g.output[key] == nil {
			g.output[key] = &strings.Builder{}
		}
		g.output[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		text := ""
		if b := g.output[key]; b != nil {
			text = b.String()
			delete(g.output, key)
		}
		if e.Test == "" {
			g.endPackage(e, text)
		} else {
			g.endTest(e, text)
		}
	}
}

func (g *gate) endTest(e event, text string) {
	switch e.Action {
	case "fail":
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "=== ") {
				fmt.Fprint(g.w, line)
			}
		}
	case "skip":
		if why := reason(text); g.could.MatchString(why) {
			g.skipped = append(g.skipped, fmt.Sprintf("  %s %s: %s", e.Package, e.Test, why))
		}
	}
}

// endPackage prints what `go test` prints of a package: all output if it
// failed, else its last line.
func (g *gate) endPackage(e event, text string) {
	g.ended++
	if e.Action == "fail" {
		g.failed++
		fmt.Fprint(g.w, text)
		return
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") || strings.HasPrefix(line, "\t") {
			fmt.Fprint(g.w, line)
		}
	}
}

// reason is the message of a test that skipped.
func reason(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
