package container

// verifyMapped reads the whole table of a sparse image, as opening does, and
// says what opening would pass over.
func verifyMapped(f store, format string) (list []Finding, err error) {
	img, err := openMapped(f, format, OpenOptions{ReadOnly: true})
	if err != nil {
		return unreadable(err)
	}
	switch l := img.layout.(type) {
	case *udsp:
		return l.findings(), nil
	case *asif:
		return l.findings()
	}
	return nil, nil
}

// findings leaves out bytes behind the last band: every crash may leave them,
// and opening for writing cuts them off.
func (u *udsp) findings() (list []Finding) {
	if u.marked {
		list = append(list, Finding{Problem: "a compaction was interrupted; opening for writing finishes it"})
	}
	return list
}

// findings looks at the metadata, which nothing else needs.
func (a *asif) findings() (list []Finding, err error) {
	say := func(problem string) { list = append(list, Finding{Path: "metadata", Problem: problem}) }
	at, partly := a.find(a.head.meta)
	if at == 0 {
		say("missing")
		return list, nil
	}
	p := make([]byte, 0x400)
	if partly {
		err = a.readPartly(a.head.meta, p, 0)
	} else {
		_, err = a.f.ReadAt(p, at)
	}
	if err != nil {
		return nil, err
	}
	if string(p[:4]) != "meta" {
		say("no header")
	}
	return list, nil
}
