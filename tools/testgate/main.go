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
	could := flag.String("could", "$.",
		"regular `expression` of the reasons to skip that do not apply here; by default all apply")
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
	output  map[[2]string]string
	ended   int      // packages
	failed  int      // packages and builds
	skipped []string // tests that could have run
}

// read reads the stream. It returns an error if a test failed, if one skipped
// that could have run, and if the stream contains the result of no package.
func (g *gate) read(r io.Reader) error {
	g.output = map[[2]string]string{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && (json.Unmarshal(line, &e) != nil || e.Action == "") {
			fmt.Fprintf(g.w, "%s", line) // a message of go itself
		}
		g.handle(e)
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

// handle prints what `go test` prints: all output of what failed, and the last
// line of other packages.
func (g *gate) handle(e event) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(g.w, e.Output)
	case "build-fail":
		g.failed++
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			g.output[key] += e.Output
		}
	case "pass", "fail", "skip":
		text := g.output[key]
		delete(g.output, key)
		if e.Action == "fail" {
			fmt.Fprint(g.w, text)
		}
		switch {
		case e.Test != "" && e.Action == "skip":
			if why := reason(text); g.could.MatchString(why) {
				g.skipped = append(g.skipped, fmt.Sprintf("  %s %s: %s", e.Package, e.Test, why))
			}
		case e.Test == "" && e.Action == "fail":
			g.ended, g.failed = g.ended+1, g.failed+1
		case e.Test == "":
			g.ended++
			fmt.Fprint(g.w, summary.FindString(text))
		}
	}
}

// summary is the last line of a package that did not fail.
var summary = regexp.MustCompile(`(?m)^(ok  |\?   |)\t.*\n`)

// reason is the message of a test that skipped.
func reason(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--- ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
