// Package scripts embeds the shell scripts that dmgbench itself runs.
package scripts

import _ "embed"

// Capture is capture.sh, which records what disk image tools answer.
//
//go:embed capture.sh
var Capture string
