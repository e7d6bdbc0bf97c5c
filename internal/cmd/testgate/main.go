// Command testgate reads what `go test -json` prints and says it again as plain
// `go test` would, but refuses skipped tests that could have run here.
//
// A test that skips is green, whatever the reason: a gate that does not look at the
// reasons loses its strictest tests without a word when a tool is missing. Which
// reasons do not hold on this machine is for the caller to say; the command runs no test.
//
//	go test -json ./... | testgate -could 'is not installed|needs root'
//
// EXIT STATUS: 0 all passed, 1 a failure or a test that skipped though it could have run, 2 bad usage.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	could := flag.String("could", "", "regular `expression` of the reasons to skip that do not hold here; empty: all hold")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	g := gate{w: os.Stdout}
	if *could != "" {
		expression, err := regexp.Compile(*could)
		if err != nil {
			fmt.Fprintln(os.Stderr, "testgate: reading -could:", err)
			os.Exit(2)
		}
		g.could = expression
	}
	if err := g.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
		os.Exit(1)
	}
}
