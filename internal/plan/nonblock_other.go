//go:build !unix

package plan

// nonBlock has no meaning here: opening a named pipe does not wait.
const nonBlock = 0
