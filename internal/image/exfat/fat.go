package exfat

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/units"
)

// fatChunk is how much of the FAT is read at once, in bytes: 16,384 entries.
const fatChunk = 64 << 10

// fat is the file allocation table (section 4), loaded by the chunk when it is
// first needed: contiguous files do not use it, so that on most volumes little
// of it is ever read.
type fat struct {
	dev blockdev.Device
	// start is its offset on the device in bytes.
	start int64
	// entries counts those of the clusters and the two before them, which
	// belong to no cluster.
	entries uint32
	chunks  []*paged
}

// newFAT returns the table of a volume; it is read when entries are needed.
func newFAT(dev blockdev.Device, g *geometry) *fat {
	entries := g.Clusters + firstData
	n := (int64(entries)*4 + fatChunk - 1) / fatChunk
	return &fat{dev: dev, start: g.fatStart(), entries: entries, chunks: make([]*paged, n)}
}

// load returns the chunk that holds the entry of a cluster and the entry's
// place in it. A chunk may reach beyond the last entry, but not beyond the FAT
// region, as its length is a multiple of 512.
func (f *fat) load(cluster uint32) (*paged, int, error) {
	if cluster >= f.entries {
		return nil, 0, fmt.Errorf("cluster %d of %d: %w", cluster, f.entries-firstData, ErrCorrupt)
	}
	i := int64(cluster) * 4 / fatChunk
	if f.chunks[i] == nil {
		base := f.start + i*fatChunk
		n := min(fatChunk, units.RoundUp(int64(f.entries)*4, 512)-i*fatChunk)
		p := &paged{data: make([]byte, n), page: block, at: func(off int64) int64 { return base + off }}
		if err := readFull(f.dev, p.data, base); err != nil {
			return nil, 0, fmt.Errorf("loading FAT: %w", err)
		}
		f.chunks[i] = p
	}
	return f.chunks[i], int(int64(cluster) * 4 % fatChunk), nil
}

// next is the FAT entry of a cluster: the next cluster of its chain, or
// endOfChain.
func (f *fat) next(cluster uint32) (uint32, error) {
	p, off, err := f.load(cluster)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(p.data[off:]), nil
}

// set changes an entry.
func (f *fat) set(cluster, next uint32) error {
	p, off, err := f.load(cluster)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(p.data[off:], next)
	p.mark(off, 4)
	return nil
}

// extendChain links more clusters to an allocation: to the end of its chain,
// or, where it is contiguous and has none, to a chain that is made for all of
// it. After an error it is as before.
func (f *fat) extendChain(runs, more []run, contiguous bool) error {
	if contiguous {
		return f.link(0, append(runs, more...))
	}
	last := lastCluster(runs)
	err := f.link(last, more)
	if err != nil && last != 0 {
		_ = f.set(last, endOfChain) // its entry was loaded, so this cannot fail
	}
	return err
}

// link makes one chain of the runs, appended to the cluster `after` if that is
// not 0.
func (f *fat) link(after uint32, runs []run) error {
	prev := after
	for _, r := range runs {
		for c := r.first; c-r.first < r.count; c++ {
			if prev != 0 {
				if err := f.set(prev, c); err != nil {
					return err
				}
			}
			prev = c
		}
	}
	if prev == 0 {
		return nil
	}
	return f.set(prev, endOfChain)
}

// take collects the dirty pages.
func (f *fat) take(chunks []chunk) []chunk {
	for _, p := range f.chunks {
		chunks = p.take(chunks)
	}
	return chunks
}

// markAll makes all loaded pages dirty.
func (f *fat) markAll() {
	for _, p := range f.chunks {
		p.markAll()
	}
}

// run is a number of clusters in a row.
type run struct{ first, count uint32 }

// end is the cluster after the run.
func (r run) end() uint32 { return r.first + r.count }

// lastCluster is the last cluster of the runs, 0 for none.
func lastCluster(runs []run) uint32 {
	if len(runs) == 0 {
		return 0
	}
	return runs[len(runs)-1].end() - 1
}

// Extent is a contiguous part of a file. All fields are in bytes: where it
// starts in the file, where on the volume's device, and its length. The last
// extent of a file reaches to the end of its last cluster.
type Extent struct{ File, Device, Length int64 }

// appendRuns returns the extents followed by the runs. It does not change the
// old slice, which readers may hold.
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

// find returns the index of the extent that holds the offset, which must lie
// within the extents.
func find(extents []Extent, off int64) int {
	if len(extents) == 1 {
		return 0
	}
	return sort.Search(len(extents), func(i int) bool { return extents[i].File+extents[i].Length > off })
}

// deviceOffset is the place on the device of a byte of the extents.
func deviceOffset(extents []Extent, off int64) int64 {
	e := &extents[find(extents, off)]
	return e.Device + off - e.File
}

// transfer reads or writes p at byte off of the extents, with one call of do,
// which is ReadAt or WriteAt of the device, for each extent.
func transfer(do func(p []byte, off int64) (int, error), extents []Extent, p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		e := &extents[find(extents, off)]
		in := off - e.File
		part := p[done:][:min(int64(len(p)-done), e.Length-in)]
		n, err := do(part, e.Device+in)
		done += n
		if n < len(part) && (err == nil || err == io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && err != io.EOF {
			return done, err
		}
		off += int64(n)
	}
	return done, nil
}

// follow collects the clusters of an allocation, contiguous or along the FAT,
// until there are n (n < 0: without an end) or accept refuses the one that is
// next, which it also returns. accept gets a cluster and the number of those
// before it.
func (v *Volume) follow(first uint32, n int64, contiguous bool, accept func(cluster uint32, count int64) bool) (
	runs []run, count int64, next uint32, err error,
) {
	for next = first; (n < 0 || count < n) && accept(next, count); count++ {
		if tail := len(runs) - 1; tail >= 0 && runs[tail].end() == next {
			runs[tail].count++
		} else {
			runs = append(runs, run{next, 1})
		}
		if contiguous {
			next++
		} else if next, err = v.fat.next(next); err != nil {
			return runs, count, 0, err
		}
	}
	return runs, count, next, nil
}

// chain collects the clusters of an allocation: n clusters from first,
// contiguous or along the FAT; n < 0 follows the FAT to its end. It is
// ErrCorrupt if a link leads nowhere, or the chain is longer than limit
// clusters.
func (v *Volume) chain(first uint32, n int64, contiguous bool, limit int64) ([]run, error) {
	if n == 0 {
		return nil, nil
	}
	if n > int64(v.g.Clusters) || contiguous && (!v.g.valid(first) || int64(first-firstData)+n > int64(v.g.Clusters)) {
		return nil, fmt.Errorf("%d clusters from %d: %w", n, first, ErrCorrupt)
	}
	if contiguous {
		return []run{{first, uint32(n)}}, nil
	}
	limit = min(limit, int64(v.g.Clusters))
	mark, lap := first, int64(1) // Brent: a chain that comes back to mark within a lap is a cycle
	runs, count, next, err := v.follow(first, n, false, func(cluster uint32, count int64) bool {
		if !v.g.valid(cluster) || count > 0 && cluster == mark || count >= limit {
			return false
		}
		if count == 2*lap {
			mark, lap = cluster, count
		}
		return true
	})
	if err == nil && count != n && !(n < 0 && count > 0 && next == endOfChain) {
		err = fmt.Errorf("chain from %d breaks after %d clusters at %#x: %w", first, count, next, ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	return runs, nil
}
