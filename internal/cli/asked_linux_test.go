package cli_test

import "syscall"

// askedBy is the signal that asks where a run stands.
const askedBy = syscall.SIGUSR1
