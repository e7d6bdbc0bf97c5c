package container

import (
	"fmt"
	"slices"
)

// compact implements chunkMap.
func (u *udsp) compact(keep func(i int64) (bool, error)) error {
	dropped := map[int64]bool{}
	for _, i := range u.list() {
		ok, err := keep(i)
		if err != nil {
			return err
		}
		dropped[i] = !ok
	}
	return u.rewrite(func(i int64) bool { return !dropped[i] })
}

// udspSlot is an entry of the table and the offset of its slot.
type udspSlot struct {
	band *uint32
	at   int64
}

// rewrite drops the bands for which keep returns false, fills their slots with
// the last bands, and cuts the file. While the header has the mark of a
// compaction, an entry of 0 is a slot that is not in use, and of two slots with
// one band the later one counts, as in readers that fill a list from the table.
//
//  1. the header gets the mark,
//  2. the slots to fill get the bands that will be copied there; their former
//     slots are later ones, and count,
//  3. the bands are copied,
//  4. the table is cut, so that the copies count,
//  5. the header loses the mark,
//  6. the file is cut.
//
// Each step is durable before the next, and the order of writes inside a step
// does not matter. After a failure or a crash, fillSlots makes the table one
// without a mark.
func (u *udsp) rewrite(keep func(i int64) bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	nodes, moves, left := u.planMoves(keep)
	if left < 0 {
		return nil
	}
	steps := []func() error{
		func() error { return u.putMark(u.nodes, true) },
		func() error { return u.putNodes(nodes) },
		func() error {
			for _, m := range moves {
				if err := u.copyBytes(m[1].at, m[0].at, u.head.band); err != nil {
					return fmt.Errorf("moving band %d: %w", *m[0].band-1, err)
				}
			}
			return nil
		},
		func() error {
			nodes = cutNodes(nodes, left)
			return u.putNodes(nodes)
		},
		func() error { return u.putMark(nodes, false) },
		func() error {
			u.setNodes(nodes)
			return u.f.Truncate(u.end)
		},
	}
	for _, step := range steps {
		if err := u.syncAfter(step()); err != nil {
			return err
		}
	}
	return nil
}

// planMoves returns the moves, each from a slot to another, the chain with the
// moved bands in both, and how many of its slots are needed; -1 if no band is
// dropped.
func (u *udsp) planMoves(keep func(i int64) bool) (nodes []udspNodeInfo, moves [][2]udspSlot, left int) {
	nodes = slices.Clone(u.nodes)
	var all, kept []udspSlot
	for k := range nodes {
		n := &nodes[k]
		n.entries = slices.Clone(n.entries)
		for i := range n.entries {
			s := udspSlot{&n.entries[i], n.slot(i, u.head.band)}
			if all = append(all, s); keep(int64(*s.band) - 1) {
				kept = append(kept, s)
			}
		}
	}
	if left = len(kept); left == len(all) {
		return nil, nil, -1
	}
	for _, to := range all[:left] {
		if !keep(int64(*to.band) - 1) {
			from := kept[left-1-len(moves)]
			*to.band = *from.band
			moves = append(moves, [2]udspSlot{from, to})
		}
	}
	return nodes, moves, left
}

// putMark writes the header node with or without the mark of a compaction.
func (u *udsp) putMark(nodes []udspNodeInfo, compacting bool) error {
	u.head.compacting = compacting
	return u.putNode(nodes, 0)
}

// putNodes writes a whole chain.
func (u *udsp) putNodes(nodes []udspNodeInfo) error {
	for k := range nodes {
		if err := u.putNode(nodes, k); err != nil {
			return err
		}
	}
	return nil
}

// cutNodes ends a chain after the first left entries.
func cutNodes(nodes []udspNodeInfo, left int) []udspNodeInfo {
	for k := range nodes {
		n := &nodes[k]
		n.entries = n.entries[:min(len(n.entries), left)]
		if left -= len(n.entries); left == 0 {
			_, n.cap = udspTable(k) // no node follows
			return nodes[:k+1]
		}
	}
	return nodes
}

// setNodes makes a chain that is in the file the table, and computes all other
// fields from it.
func (u *udsp) setNodes(nodes []udspNodeInfo) {
	u.nodes = nodes
	clear(u.places)
	for _, n := range nodes {
		for i, v := range n.entries {
			u.places[int64(v)-1] = n.slot(i, u.head.band)
		}
	}
	u.markSaved()
}

// fillSlots ends a compaction that was interrupted or has failed. Slots without
// a band that counts get zeros, and then the number of a band without a slot,
// which reads as zeros, too: unlike the completion of the compaction, this
// takes no space on a full disk.
func (u *udsp) fillSlots() error {
	absent := int64(0)
	for _, n := range u.nodes {
		for i, v := range n.entries {
			at := n.slot(i, u.head.band)
			if v != 0 && u.places[int64(v)-1] == at {
				continue
			}
			for u.places[absent] != 0 {
				absent++
			}
			if absent >= u.head.bands() {
				return corrupt("reading %q: more slots than bands", u.f.Path())
			}
			if err := u.writeZeros(at, u.head.band); err != nil {
				return err
			}
			n.entries[i], u.places[absent] = uint32(absent)+1, at
		}
	}
	err := u.sync()
	if err == nil {
		err = u.syncAfter(u.putNodes(u.nodes))
	}
	if err == nil {
		err = u.syncAfter(u.putMark(u.nodes, false))
	}
	return err
}

// resize implements chunkMap. Bands after a smaller size are removed before the
// header has that size, since a table that refers to them would be damaged.
// What an earlier, larger size left in the last band is cleared before a larger
// size can show it.
func (u *udsp) resize(size int64) error {
	next := u.head
	next.size = size
	if next.bands() > udspMaxBands {
		return errBadSize
	}
	if err := u.rewrite(func(i int64) bool { return i < next.bands() }); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	// The end of the device is in this band, before and after.
	at, in := u.places[u.head.size/u.head.band], u.head.size%u.head.band
	if size > u.head.size && at != 0 && in > 0 {
		if err := u.syncAfter(u.writeZeros(at+in, u.head.band-in)); err != nil {
			return err
		}
	}
	u.head = next
	return u.syncAfter(u.putNode(u.nodes, 0))
}
