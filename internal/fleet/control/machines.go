package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/fleet"
)

// Machine is one that was added to the fleet.
type Machine struct {
	fleet.Status           // only the name and "not joined", if none was sent that can be read
	Heard        time.Time // when the server stored the status
	Queued       int       // jobs that have not ended
}

// Machines lists the machines by name. A machine is one that has a consumer of the
// queue; its status counts only under its own subject.
func (f *Fleet) Machines(ctx context.Context) ([]Machine, error) {
	s, err := f.JetStream.Stream(ctx, fleet.Jobs)
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", fleet.Jobs, err)
	}
	byName := map[string]Machine{}
	consumers := s.ListConsumers(ctx)
	for info := range consumers.Info() {
		byName[info.Name] = Machine{Status: fleet.Status{Machine: info.Name, State: "not joined"},
			Queued: int(info.NumPending) + info.NumAckPending}
	}
	_, err = f.read(ctx, fleet.Statuses, fleet.StatusSubject("*"), 1, func(m message) {
		s, err := fleet.Decode[fleet.Status](m.Data)
		machine, isAdded := byName[s.Machine]
		if err == nil && isAdded && m.Subject == fleet.StatusSubject(s.Machine) {
			byName[s.Machine] = Machine{Status: s, Heard: m.Time, Queued: machine.Queued}
		}
	})
	order := func(a, b Machine) int { return cmp.Compare(a.Machine, b.Machine) }
	return slices.SortedFunc(maps.Values(byName), order), cmp.Or(consumers.Err(), err)
}

// Logs calls print for each line that a machine printed during a job; "" is any
// job. The server keeps the last lines of each job only. With follow it waits for
// further lines until ctx ends, which is an error.
func (f *Fleet) Logs(ctx context.Context, machine, job string, follow bool, print func(line string)) (err error) {
	subject := fleet.LogSubject(machine, cmp.Or(job, "*"))
	for next := uint64(1); ; time.Sleep(time.Second) {
		next, err = f.read(ctx, fleet.Logs, subject, next, func(m message) {
			for line := range strings.Lines(string(m.Data)) {
				print(strings.TrimRight(line, "\r\n"))
			}
		})
		if err != nil || !follow {
			return err
		}
	}
}
