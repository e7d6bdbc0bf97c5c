//go:build unix

package plan

import "syscall"

const nonBlock = syscall.O_NONBLOCK
