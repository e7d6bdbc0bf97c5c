package exfat

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// claim follows an allocation of n clusters (n < 0: to the end of the chain) and takes possession of them. It returns
// those that it got, and what stopped it before it had all.
func (c *checker) claim(first uint32, n int64, contiguous bool) (runs []run, problem Kind, err error) {
	last := uint32(0)
	at := first
	for count := int64(0); n < 0 || count < n; count++ {
		switch {
		case !contiguous && at == endOfChain && count > 0:
			if n < 0 {
				return runs, "", nil
			}
			return runs, ChainShort, nil
		case !c.g.valid(at):
			return runs, ChainBad, nil
		case c.owned.taken(at - firstData):
			if slices.ContainsFunc(runs, func(r run) bool { return at >= r.first && at < r.end() }) {
				return runs, ChainCycle, nil
			}
			return runs, CrossLink, nil
		}
		c.owned.put(at-firstData, 1, true)
		if tail := len(runs) - 1; tail >= 0 && runs[tail].end() == at {
			runs[tail].count++
		} else {
			runs = append(runs, run{at, 1})
		}
		last = at
		if contiguous {
			at++
			continue
		}
		if at, err = c.fat.next(last); err != nil {
			return runs, "", err
		}
	}
	if !contiguous && n > 0 && at != endOfChain {
		return runs, ChainLong, nil
	}
	return runs, "", nil
}

// task is a directory to be read, whose clusters have been claimed.
type task struct {
	path string // ends with a slash
	runs []run
}

// walkTree reads all directories from the root.
func (c *checker) walkTree() error {
	runs, problem, err := c.claim(c.g.root, -1, false)
	if err != nil {
		return err
	}
	if problem != "" {
		c.unsure = true
		c.report.add(c.chainFinding(problem, "/", runs, false, nil))
	}
	for tasks := []task{{"/", runs}}; len(tasks) > 0; {
		t := tasks[len(tasks)-1]
		tasks = tasks[:len(tasks)-1]
		d := &checkDir{c: c, path: t.path, extents: c.g.appendRuns(nil, t.runs), names: map[string]bool{}}
		more, err := d.read()
		if err != nil {
			return err
		}
		tasks = append(tasks, more...)
		c.report.Dirs++
	}
	return nil
}

// chainFinding describes a broken chain. If shorten is given, it cuts the owner to the clusters that were reached.
func (c *checker) chainFinding(problem Kind, path string, runs []run, contiguous bool, shorten func() error) Finding {
	f := Finding{Kind: problem, Path: path}
	var last uint32
	for _, r := range runs {
		f.Count += r.count
		last = r.end() - 1
	}
	if len(runs) > 0 {
		f.Cluster = runs[0].first
	}
	f.Detail = fmt.Sprintf("reached %d clusters", f.Count)
	if problem == CrossLink || shorten == nil && problem != ChainLong && last == 0 {
		return f
	}
	f.fix = func() error {
		if !contiguous && last != 0 && problem != ChainShort {
			if err := c.fat.set(last, endOfChain); err != nil {
				return err
			}
		}
		if shorten == nil || problem == ChainLong {
			return nil
		}
		return shorten()
	}
	return f
}

// loadUpcase finds the table in the root directory before names are judged by it.
func (c *checker) loadUpcase() error {
	view := &Volume{dev: c.dev, g: c.g, fat: c.fat, upcase: c.upcase, limit: c.limit, dirs: map[*directory]struct{}{}}
	root, err := view.loadDir(nil)
	if err != nil && !structural(err) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // the walk reports what is wrong with the root
	}
	view.root = root
	for i := range root.used {
		e := root.data[i*entryLen:][:entryLen]
		if e[0] != typeUpcase {
			continue
		}
		size := int64(binary.LittleEndian.Uint64(e[24:]))
		if size <= 0 || size > 2<<16 {
			break
		}
		b, err := view.readChain(binary.LittleEndian.Uint32(e[20:]), size)
		if err == nil && tableChecksum(b) == binary.LittleEndian.Uint32(e[4:]) {
			c.upcase = decodeCase(b)
			return nil
		}
		if err != nil && !structural(err) {
			return err
		}
		c.report.add(Finding{Kind: Upcase, Detail: "damaged; names were judged by the standard table"})
		return nil
	}
	c.report.add(Finding{Kind: Upcase, Detail: "missing; names were judged by the standard table"})
	return nil
}
