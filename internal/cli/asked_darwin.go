package cli

import (
	"os"
	"syscall"
)

// askSignal is what Ctrl-T sends.
var askSignal os.Signal = syscall.SIGINFO
