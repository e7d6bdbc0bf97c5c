package container

import (
	"encoding/binary"
	"fmt"
)

// loadUDSP reads the whole table of a sparse image. Its memory is at most
// eight times what the nodes take in the file. It refuses nodes that do not
// lie one behind the other (so that no chain can loop), bands outside the
// device or the file, two slots for one band, and entries behind the end of a
// table, about which readers differ: hdiutil stops at the first 0, apfs-fuse
// goes on.
func loadUDSP(m medium) (*udsp, error) {
	size, err := m.f.Size()
	if err != nil {
		return nil, err
	}
	u := &udsp{medium: m, fileSize: size}
	u.copied = map[spot]uint32{}
	for k, at := 0, int64(0); ; k++ {
		next, err := u.loadNode(k, at)
		if err != nil {
			return nil, fmt.Errorf("reading node %d of %q: %w", k, m.f.Path(), err)
		}
		if next == 0 {
			break
		}
		at = next
	}
	if err := u.loadCopies(); err != nil {
		return nil, fmt.Errorf("reading %q: %w", m.f.Path(), err)
	}
	last := len(u.nodes) - 1
	u.end = u.nodes[last].slot(len(u.nodes[last].entries), u.head.band)
	u.saved()
	return u, nil
}

// loadNode reads node k at an offset and returns the next one's, 0 for none.
func (u *udsp) loadNode(k int, at int64) (next int64, err error) {
	if at > u.fileSize-udspNode {
		return 0, corrupt("file ends before %d", at+udspNode)
	}
	b := make([]byte, udspNode)
	if n, err := u.f.ReadAt(b, at); n < len(b) {
		return 0, short(err)
	}
	if k == 0 {
		u.head, err = parseUDSPHead(b)
		next = u.head.next
	} else {
		next, err = parseUDSPIndex(b)
	}
	if err != nil {
		return 0, err
	}
	from, room := udspTable(k)
	if next != 0 {
		if next < at+udspNode {
			return 0, corrupt("next node at %d, in front of this one's end", next)
		}
		room = int(min(int64(room), (next-at-udspNode)/u.head.band))
	}
	n := udspNodeInfo{at: at, cap: room}
	return next, u.loadTable(&n, b[from:])
}

func (u *udsp) loadTable(n *udspNodeInfo, table []byte) error {
	bands := u.head.bands()
	used := 0 // up to and with the last entry that is not 0
	for i := range len(table) / 4 {
		v := binary.BigEndian.Uint32(table[4*i:])
		if v == 0 {
			continue
		}
		band, mark := udspMarked(v, bands)
		if !mark && used < i {
			return corrupt("entry %d behind the end of the table", i)
		}
		if i >= n.cap {
			return corrupt("entry %d is for a slot inside the next node", i)
		}
		for ; used < i; used++ {
			n.entries = append(n.entries, 0)
		}
		used++
		at := n.slot(i, u.head.band)
		if mark {
			u.marked = true
			if band != 0 {
				u.copied[spot{len(u.nodes), i}] = band
			}
			v = 0
		} else if err := u.loadSlot(at, v, bands); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		n.entries = append(n.entries, v)
	}
	u.nodes = append(u.nodes, *n)
	return nil
}

// loadSlot notes that a slot holds band v, which counts from 1.
func (u *udsp) loadSlot(at int64, v uint32, bands int64) error {
	switch {
	case int64(v) > bands:
		return corrupt("band %d of %d", v, bands)
	case at > u.fileSize-u.head.band:
		return corrupt("file of %d bytes ends inside the slot at %d", u.fileSize, at)
	case u.homes.get(int64(v)-1) != 0:
		return corrupt("band %d for the second time", v)
	}
	u.homes.set(int64(v)-1, at)
	u.bands++
	return nil
}

// loadCopies makes copies of bands that no slot holds count, and forgets the others.
func (u *udsp) loadCopies() error {
	counts := map[spot]uint32{}
	for s, band := range u.copied {
		if u.homes.get(int64(band)-1) == 0 {
			counts[s] = band
		}
	}
	for s, band := range counts {
		if err := u.loadSlot(u.at(s), band, u.head.bands()); err != nil {
			return err
		}
	}
	u.copied = counts
	return nil
}
