// Package archtest holds the tests of the shape of the tree: which package may import which, how long a file may
// be, and what no file may contain. It has no code of its own and nothing may import it.
package archtest
