package container

import (
	"slices"

	"dmgbench/internal/blockdev"
	"dmgbench/internal/container/udif"
)

// mapOf is what is known of a device without reading it, nil if nothing is. A sparse image of a few bytes may be of a
// device of exabytes, which nobody could read through. Nothing may write to the device while the map is in use.
func mapOf(dev blockdev.Device) udif.Map {
	switch d := dev.(type) {
	case Tabled:
		return d.UDIF()
	case *mapped:
		return d
	case *bundle:
		return d.bandMap()
	}
	return nil
}

// Next implements [udif.Map]: what has no place in the file is zeros.
func (m *mapped) Next(off int64) (end int64, state udif.State) {
	m.RLock()
	defer m.RUnlock()
	first := off / m.chunk
	i, last := first, ceil(m.size, m.chunk)
	for i < last {
		n := m.layout.gap(i)
		if n == 0 {
			break
		}
		i += n
	}
	state = udif.StateZero
	if i == first {
		state = udif.StateData
		for i++; i < min(first+mappedRun, last) && m.layout.gap(i) == 0; i++ {
		}
	}
	return min(min(i, last)*m.chunk, m.size), state
}

// gap implements layout.
func (u *udsp) gap(i int64) int64 {
	switch {
	case u.homes.page(i) == nil:
		return pageLen - i%pageLen
	case u.homes.get(i) == 0:
		return 1
	}
	return 0
}

// gap implements layout.
func (a *asif) gap(i int64) int64 {
	if a.group(i/a.head.perGroup) == nil {
		return a.head.perGroup - i%a.head.perGroup
	}
	if at, _ := a.find(i); at == 0 {
		return 1
	}
	return 0
}

// bandMap is which bands a bundle has, of bandSize bytes each, in order; what others would hold is zeros.
type bandMap struct {
	size, bandSize int64
	bands          []int64
}

// bandMap lists the bands; nil, which is a map of nothing, if they cannot be listed.
func (b *bundle) bandMap() udif.Map {
	if b.enter() != nil {
		return nil
	}
	defer b.RUnlock()
	m := &bandMap{size: b.info.size, bandSize: b.info.bandSize}
	if b.bands == nil {
		return m
	}
	var err error
	if m.bands, err = listBands(b.bands); err != nil {
		return nil
	}
	return m
}

// Next implements [udif.Map].
func (m *bandMap) Next(off int64) (end int64, state udif.State) {
	i := off / m.bandSize
	k, found := slices.BinarySearch(m.bands, i)
	if !found {
		if k == len(m.bands) || m.bands[k] >= ceil(m.size, m.bandSize) {
			return m.size, udif.StateZero
		}
		return m.bands[k] * m.bandSize, udif.StateZero
	}
	return min((i+1)*m.bandSize, m.size), udif.StateData
}
