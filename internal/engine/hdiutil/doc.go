// Package hdiutil is the engine that drives a command which speaks hdiutil:
// Apple's hdiutil and `diskutil image` on a Mac, this project's work-alike on
// Linux. One driver, one grammar, one dialect of property lists for both.
//
// It trusts no exit status alone: a success counts when what was asked for is
// there (the file, the mount, the device that is gone), read back from the host.
// It tries again only what is busy, a bounded number of times, and every retry is
// a warning of the report, since it lies inside the step that the runner times;
// the length of the last single run of the tool stands beside it as
// `<verb>_ns` in reported. What a tool cannot do is found out by asking it, never
// guessed from a version.
//
// It refuses to leave an image attached after an error, to detach a device that
// is no longer its image's, to delete what it did not make, to swap a file system
// for another one, and to pass a passphrase in an argument or the environment.
package hdiutil
