//go:build race

package udif

// raceFactor is how many times the memory the race detector takes.
const raceFactor = 3
