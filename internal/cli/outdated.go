package cli

import (
	"fmt"

	"dmgbench/internal/result"
)

// upToDate is the result of a run folder that read takes from its result.json, or,
// where plan or journal were changed since that was written, what they say now.
func (a *app) upToDate(dir string, read func(dir string) (*result.Result, error)) (*result.Result, error) {
	r, err := read(dir)
	if err != nil {
		return nil, err
	}
	old, err := result.Outdated(dir, r)
	if err != nil || !old {
		return r, err
	}
	if r, err = soFar(dir); err != nil {
		return nil, err
	}
	a.warnOutdated(dir)
	return r, nil
}

// warnOutdated tells of a result.json that was not used, once; runs are read several at a time.
func (a *app) warnOutdated(dir string) {
	a.outdated.Lock()
	defer a.outdated.Unlock()
	if a.outdated.told[dir] {
		return
	}
	if a.outdated.told == nil {
		a.outdated.told = map[string]bool{}
	}
	a.outdated.told[dir] = true
	a.warn(fmt.Sprintf("%s: %s was not made of the plan and journal there now: analyzed anew\n"+
		"  hint: dmgbench report %s writes it again", dir, result.ResultFile, quoted(dir)))
}
