package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmgbench/internal/fleet"
)

// Machine is one that was added to the fleet.
type Machine struct {
	Name    string
	Status  *fleet.Status // nil if it has sent none yet, or one that cannot be read
	Heard   time.Time     // when the server stored the status
	Waiting int           // jobs in the queue, without the one that it is executing
}

// Machines lists the machines by name.
func (f *Fleet) Machines(ctx context.Context) ([]Machine, error) {
	s, err := f.js.Stream(ctx, fleet.Jobs)
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", fleet.Jobs, err)
	}
	byName := map[string]*Machine{}
	consumers := s.ListConsumers(ctx)
	for info := range consumers.Info() {
		byName[info.Name] = &Machine{Name: info.Name, Waiting: int(info.NumPending) + info.NumAckPending}
	}
	if err := consumers.Err(); err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	_, err = f.read(ctx, fleet.Statuses, fleet.StatusSubject("*"), 1, func(m message) {
		s, err := fleet.Decode[fleet.Status](m.data)
		machine := byName[s.Machine]
		if err != nil || machine == nil || m.subject != fleet.StatusSubject(s.Machine) {
			return
		}
		machine.Status, machine.Heard = &s, m.time
		if s.Job != "" {
			machine.Waiting = max(machine.Waiting-1, 0)
		}
	})
	var out []Machine
	for _, m := range byName {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// Logs calls print for each line that a machine printed during a job; "" is any
// machine or job. With follow it waits for further lines until ctx ends.
func (f *Fleet) Logs(ctx context.Context, machine, job string, follow bool, print func(line string)) (err error) {
	subject := fleet.LogSubject(cmp.Or(machine, "*"), cmp.Or(job, "*"))
	for next := uint64(1); ; {
		next, err = f.read(ctx, fleet.Logs, subject, next, func(m message) {
			for line := range strings.Lines(string(m.data)) {
				print(strings.TrimRight(line, "\r\n"))
			}
		})
		switch {
		case follow && ctx.Err() != nil:
			return nil
		case err != nil || !follow:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(followEvery):
		}
	}
}
