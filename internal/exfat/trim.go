package exfat

// Trim tells the device that all free space is unused, in pieces of neighbouring clusters, and returns how many bytes
// that were. Pieces shorter than smallest bytes are left out. Allocation waits meanwhile; reading and writing files
// does not.
func (v *Volume) Trim(smallest int64) (done int64, err error) {
	defer annotate(&err, "trimming volume")
	if v.readOnly {
		return 0, ErrReadOnly
	}
	if err := v.quiesce(); err != nil { // no entry on the device may name what is given away
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return 0, ErrClosed
	}
	for _, r := range v.alloc.freeRuns() {
		n := int64(r.count) * v.g.clusterSize()
		if n < smallest {
			continue
		}
		if err := v.dev.Discard(v.g.at(r.first), n); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
