// Command dmgbench executes disk image benchmark plans.
package main

import (
	"os"

	"dmgbench/internal/cli"
)

func main() { os.Exit(cli.Run()) }
