package container

import (
	"errors"
	"fmt"
	"slices"
)

// compact implements chunkMap.
func (u *udsp) compact(keep func(i int64) (bool, error)) error {
	dropped := map[int64]bool{}
	for _, n := range u.nodes {
		for _, v := range n.entries {
			if v == 0 {
				continue
			}
			ok, err := keep(int64(v) - 1)
			if err != nil {
				return err
			}
			if !ok {
				dropped[int64(v)-1] = true
			}
		}
	}
	if len(dropped) == 0 {
		return nil
	}
	return u.rewrite(func(i int64) bool { return !dropped[i] })
}

// udspMove moves a band from the end of the file to a slot that is not in use.
type udspMove struct {
	band     uint32
	from, to slotRef
}

// rewrite drops the bands for which keep returns false, fills their slots with
// the last bands, and cuts the file. At any moment one slot counts for each
// band:
//
//  1. slots that were dropped are marked as such,
//  2. bands are copied into them (if that fails, the table is restored),
//  3. these slots are marked as copies,
//  4. the slots copied from are marked as not in use, so that the copies count,
//  5. the table is written without marks and without its end.
//
// Each step is durable before the next, and the order of writes inside a step
// does not matter.
func (u *udsp) rewrite(keep func(i int64) bool) error {
	bands := u.head.bands()
	if bands > udspMarkBands {
		found := fmt.Sprintf("sparse image of %d bands", bands)
		return &UnsupportedError{Path: u.f.Path(), Found: found, Doing: "compacting"}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	table, left := u.markDropped(keep)
	moves := planMoves(table, left)
	steps := []func() error{
		func() error { return u.putTables(table) },
		func() error { return u.copyBands(moves) },
		func() error {
			for _, m := range moves {
				table[m.to.node][m.to.i] = udspMark | m.band
			}
			return u.putTables(table)
		},
		func() error {
			for _, m := range moves {
				table[m.from.node][m.from.i] = udspMark
			}
			return u.putTables(table)
		},
		func() error {
			for _, m := range moves {
				table[m.to.node][m.to.i] = m.band
			}
			return u.cutTables(table, left)
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	u.rebuildIndex()
	if err := u.f.Truncate(u.end); err != nil {
		return err
	}
	return u.sync()
}

// markDropped returns the table with dropped slots marked, and how many bands
// are left. A copy that counts becomes a band.
func (u *udsp) markDropped(keep func(i int64) bool) (table [][]uint32, left int) {
	table = make([][]uint32, len(u.nodes))
	for k := range u.nodes {
		n := &u.nodes[k]
		table[k] = make([]uint32, len(n.entries))
		for i, v := range n.entries {
			if v == 0 {
				v = u.copied[slotRef{k, i}]
			}
			table[k][i] = udspMark
			if v != 0 && keep(int64(v)-1) {
				table[k][i] = v
				left++
			}
		}
	}
	return table, left
}

// planMoves moves the bands after the first left slots into the unused ones of
// those.
func planMoves(table [][]uint32, left int) []udspMove {
	var free []slotRef
	var moves []udspMove
	n := 0
	for k := range table {
		for i, v := range table[k] {
			switch n++; {
			case v == udspMark && n <= left:
				free = append(free, slotRef{k, i})
			case v != udspMark && n > left:
				moves = append(moves, udspMove{band: v, from: slotRef{k, i}, to: free[len(moves)]})
			}
		}
	}
	return moves
}

// copyBands copies bands. If that fails it undoes the first step: holes take
// space when they are filled, and on a full disk an image with marks could not
// be opened for writing.
func (u *udsp) copyBands(moves []udspMove) error {
	for k, m := range moves {
		if err := u.copyBytes(u.offsetOf(m.to), u.offsetOf(m.from), u.head.band); err != nil {
			return errors.Join(fmt.Errorf("moving band %d: %w", m.band-1, err), u.restoreTable(moves[:k+1]))
		}
	}
	return nil
}

// restoreTable writes the table as it was before the first step. What started
// copies have overwritten was dropped, and becomes zeros. The marks of an
// earlier compaction stay: what their slots contained is not known.
func (u *udsp) restoreTable(started []udspMove) error {
	if u.interrupted {
		return nil
	}
	for _, m := range started {
		if err := u.writeZeros(u.offsetOf(m.to), u.head.band); err != nil {
			return err
		}
	}
	if err := u.sync(); err != nil {
		return err
	}
	if err := u.putNodes(u.nodes); err != nil {
		return err
	}
	return u.sync()
}

// putNodes writes a whole chain.
func (u *udsp) putNodes(nodes []udspNodeInfo) error {
	for k := range nodes {
		if err := u.putNode(nodes, k, len(nodes)-1); err != nil {
			return err
		}
	}
	return nil
}

// putTables writes every node with a new table.
func (u *udsp) putTables(table [][]uint32) error {
	nodes := slices.Clone(u.nodes)
	for k := range nodes {
		nodes[k].entries = table[k]
	}
	return u.putNodes(nodes)
}

// cutTables writes the first left entries without marks, ends the chain after
// them, and makes them the table.
func (u *udsp) cutTables(table [][]uint32, left int) error {
	var nodes []udspNodeInfo
	for k, n := range u.nodes {
		n.entries = table[k][:min(len(table[k]), left)]
		nodes = append(nodes, n)
		if left -= len(n.entries); left == 0 {
			break
		}
	}
	_, nodes[len(nodes)-1].cap = udspTable(len(nodes) - 1) // no node follows
	if err := u.putNodes(nodes); err != nil {
		return err
	}
	u.nodes = nodes
	return nil
}

// rebuildIndex computes all other fields from the nodes.
func (u *udsp) rebuildIndex() {
	clear(u.places)
	u.interrupted, u.copied = false, nil
	for k := range u.nodes {
		n := &u.nodes[k]
		for i, v := range n.entries {
			u.places[int64(v)-1] = n.slot(i, u.head.band)
		}
		u.end = n.slot(len(n.entries), u.head.band)
	}
	u.markSaved()
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
	if next.bands() < u.head.bands() && u.hasBandFrom(next.bands()) {
		if err := u.rewrite(func(i int64) bool { return i < next.bands() }); err != nil {
			return err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	// The end of the device is in this band, before and after.
	at, in := u.places[u.head.size/u.head.band], u.head.size%u.head.band
	if size > u.head.size && at != 0 && in > 0 {
		if err := u.writeZeros(at+in, u.head.band-in); err != nil {
			return err
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	u.head = next
	if err := u.putNode(u.nodes, 0, len(u.nodes)-1); err != nil {
		return err
	}
	return u.sync()
}

// hasBandFrom reports whether a band from first on has a slot.
func (u *udsp) hasBandFrom(first int64) bool {
	return slices.ContainsFunc(u.nodes, func(n udspNodeInfo) bool {
		return slices.ContainsFunc(n.entries, func(v uint32) bool { return int64(v)-1 >= first })
	})
}
