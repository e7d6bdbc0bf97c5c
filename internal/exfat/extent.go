package exfat

import (
	"fmt"
	"sort"

	"dmgbench/internal/blockdev"
)

// run is a number of clusters in a row.
type run struct{ first, count uint32 }

func (r run) end() uint32 { return r.first + r.count }

// Extent is a contiguous part of a file. All fields are in bytes: where it starts in the file, where on the volume's
// device, and its length. The last extent of a file reaches to the end of its last cluster.
type Extent struct{ File, Device, Length int64 }

// appendRuns returns extents with the runs added behind; the old slice stays as it is, since readers may hold it.
func (g *geometry) appendRuns(old []Extent, runs []run) []Extent {
	out := append(make([]Extent, 0, len(old)+len(runs)), old...)
	var end int64
	if n := len(out); n > 0 {
		end = out[n-1].File + out[n-1].Length
	}
	for _, r := range runs {
		off, n := g.at(r.first), int64(r.count)*g.clusterSize()
		if last := len(out) - 1; last >= 0 && out[last].Device+out[last].Length == off {
			out[last].Length += n
		} else {
			out = append(out, Extent{end, off, n})
		}
		end += n
	}
	return out
}

// runs turns extents back into clusters.
func (g *geometry) runs(extents []Extent) []run {
	runs := make([]run, 0, len(extents))
	for _, e := range extents {
		runs = append(runs, run{g.cluster(e.Device), uint32(e.Length / g.clusterSize())})
	}
	return runs
}

// cut splits extents at n bytes, a multiple of the cluster size.
func cut(extents []Extent, n int64) (keep, rest []Extent) {
	for _, e := range extents {
		switch {
		case e.File+e.Length <= n:
			keep = append(keep, e)
		case e.File >= n:
			rest = append(rest, e)
		default:
			part := n - e.File
			keep = append(keep, Extent{e.File, e.Device, part})
			rest = append(rest, Extent{n, e.Device + part, e.Length - part})
		}
	}
	return keep, rest
}

// extentsLen is the number of bytes the extents hold.
func extentsLen(extents []Extent) int64 {
	if len(extents) == 0 {
		return 0
	}
	last := extents[len(extents)-1]
	return last.File + last.Length
}

// find returns the index of the extent that holds the offset, which must lie within the extents.
func find(extents []Extent, off int64) int {
	if len(extents) == 1 {
		return 0
	}
	return sort.Search(len(extents), func(i int) bool { return extents[i].File+extents[i].Length > off })
}

// readExtents reads len(b) bytes from the start of the extents.
func readExtents(dev blockdev.Device, extents []Extent, b []byte) error {
	for _, x := range extents {
		if x.File >= int64(len(b)) {
			break
		}
		if err := readFull(dev, b[x.File:min(x.File+x.Length, int64(len(b)))], x.Device); err != nil {
			return err
		}
	}
	return nil
}

// chain collects the clusters of an allocation: n clusters from first, contiguous or along the FAT; n < 0 follows the
// FAT to its end. It stops with ErrCorrupt at a link that leads nowhere or at a chain longer than limit clusters.
func (v *Volume) chain(first uint32, n int64, contiguous bool, limit int64) ([]run, error) {
	if n == 0 {
		return nil, nil
	}
	if !v.g.valid(first) || n > int64(v.g.clusters) {
		return nil, fmt.Errorf("chain of %d clusters from %d: %w", n, first, ErrCorrupt)
	}
	if contiguous {
		if n < 0 || int64(first-firstData)+n > int64(v.g.clusters) {
			return nil, fmt.Errorf("%d contiguous clusters from %d: %w", n, first, ErrCorrupt)
		}
		return []run{{first, uint32(n)}}, nil
	}
	runs := []run{{first, 1}}
	last := first
	mark, lap := first, int64(1) // Brent: a chain that comes back to mark within a lap is a cycle
	for count := int64(1); n < 0 || count < n; count++ {
		next, err := v.fat.next(last)
		if err != nil {
			return nil, err
		}
		if n < 0 && next == endOfChain {
			break
		}
		if !v.g.valid(next) || next == mark || count >= min(limit, int64(v.g.clusters)) {
			return nil, fmt.Errorf("chain from %d breaks after %d clusters at %#x: %w", first, count, next, ErrCorrupt)
		}
		if tail := &runs[len(runs)-1]; tail.end() == next {
			tail.count++
		} else {
			runs = append(runs, run{next, 1})
		}
		last = next
		if count == 2*lap {
			mark, lap = next, count
		}
	}
	return runs, nil
}
