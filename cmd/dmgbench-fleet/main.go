// Command dmgbench-fleet runs disk image benchmark plans on many machines.
package main

import (
	"os"

	"dmgbench/internal/fleet/cli"
)

func main() { os.Exit(cli.Run()) }
