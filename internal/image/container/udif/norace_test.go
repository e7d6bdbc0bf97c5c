//go:build !race

package udif

const raceFactor = 1
