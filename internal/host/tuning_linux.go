package host

// Tune reads how this system is set.
func Tune() Tuning { return root.tuning() }
