// Command testgate reads the output of `go test -json` and prints it as plain `go test` does, but fails if a test skipped
// that could have run on this machine.
//
// A skipped test passes for any reason: without this check a missing tool silently disables the strictest tests. The
// caller lists the reasons that do not apply on this machine; the command runs no test.
//
//	go test -json ./... | testgate -could 'is not installed|needs root'
//
// Exit status: 0 all passed, 1 a failure or a test that skipped though it could have run, 2 bad usage.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	could := flag.String("could", "", "regular `expression` of the reasons to skip that do not apply here; empty: all apply")
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
