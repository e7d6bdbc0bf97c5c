//go:build !darwin && !linux

package cli

import "os"

// askSignal is none.
var askSignal os.Signal
