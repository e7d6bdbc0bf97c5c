package cli

import (
	"os"
	"syscall"
)

// askSignal is what dd and others take for it here: no key sends it.
var askSignal os.Signal = syscall.SIGUSR1
