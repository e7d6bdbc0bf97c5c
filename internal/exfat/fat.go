package exfat

import (
	"encoding/binary"
	"fmt"

	"dmgbench/internal/blockdev"
)

const fatChunk = 64 << 10 // bytes of the FAT that are read at once

// fat is the file allocation table, loaded by the chunk when it is first needed.
type fat struct {
	dev     blockdev.Device
	start   int64
	entries uint32 // including the first two
	chunks  []*paged
}

func newFAT(dev blockdev.Device, g *geometry) *fat {
	f := &fat{dev: dev, start: g.fatStart()}
	f.resize(g.clusters)
	return f
}

// resize makes room for entries for so many clusters.
func (f *fat) resize(clusters uint32) {
	f.entries = clusters + firstData
	n := (int64(f.entries)*4 + fatChunk - 1) / fatChunk
	for int64(len(f.chunks)) < n {
		f.chunks = append(f.chunks, nil)
	}
	f.chunks = f.chunks[:n]
}

// load returns the chunk that holds the entry of a cluster and the entry's place in it. A chunk may reach beyond the
// last entry, but not beyond the FAT region, whose length is a multiple of 512.
func (f *fat) load(cluster uint32) (*paged, int, error) {
	if cluster >= f.entries {
		return nil, 0, fmt.Errorf("cluster %d of %d: %w", cluster, f.entries-firstData, ErrCorrupt)
	}
	i := int64(cluster) * 4 / fatChunk
	if f.chunks[i] == nil {
		base := f.start + i*fatChunk
		n := min(fatChunk, alignUp(int64(f.entries)*4, 512)-i*fatChunk)
		p := &paged{data: make([]byte, n), page: block, at: func(off int64) int64 { return base + off }}
		if err := readFull(f.dev, p.data, base); err != nil {
			return nil, 0, fmt.Errorf("loading FAT: %w", err)
		}
		f.chunks[i] = p
	}
	return f.chunks[i], int(int64(cluster) * 4 % fatChunk), nil
}

// next is what the FAT says about a cluster: the next one of its chain, or endOfChain.
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

// link makes one chain of the runs, appended to the cluster `after` if that is not 0.
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
		if p != nil {
			chunks = p.take(chunks)
		}
	}
	return chunks
}

func (f *fat) remark(chunks []chunk) {
	for _, p := range f.chunks {
		if p != nil {
			p.remark(chunks)
		}
	}
}
