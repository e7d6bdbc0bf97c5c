package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

// Machine is one that was added to the fleet.
type Machine struct {
	fleet.Status           // only the name and "not joined", if none was sent that can be read
	Heard        time.Time `json:"heard,omitzero"`            // when the server stored the status
	Queued       int       `json:"queued"`                    // jobs that have not ended
	Stored       int64     `json:"stored_bytes"`              // of its results, logs and run folders
	Unknown      int       `json:"unknown_results,omitempty"` // that it stored for jobs that it was not given
}

// refusedTime is how long the server's refusal of another agent is shown; that one
// tries again all the time.
const refusedTime = time.Minute

// Machines lists the machines by name. A machine is one that has a consumer of the
// queue; its status counts only under its own subject.
func (f *Fleet) Machines(ctx context.Context) ([]Machine, error) {
	s, err := f.JetStream.Stream(ctx, fleet.Jobs)
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", fleet.Jobs, err)
	}
	byName := map[string]*Machine{}
	consumers := s.ListConsumers(ctx)
	for info := range consumers.Info() {
		byName[info.Name] = &Machine{Status: fleet.Status{Machine: info.Name, State: "not joined"},
			Queued: int(info.NumPending) + info.NumAckPending}
	}
	_, err = f.read(ctx, fleet.Statuses, fleet.StatusSubject("*"), 1, func(m message) {
		s, err := fleet.Decode[fleet.Status](m.Data)
		machine := byName[s.Machine]
		if err == nil && machine != nil && m.Subject == fleet.StatusSubject(s.Machine) {
			machine.Status, machine.Heard = s, m.Time
		}
	})
	report, noReport := fleet.RequestReport(ctx, f.NATS)
	if err := cmp.Or(consumers.Err(), err, noReport); err != nil {
		return nil, err
	}
	var list []Machine
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if report != nil {
			byName[name].addReport(*report)
		}
		list = append(list, *byName[name])
	}
	return list, nil
}

// addReport adds what the server knows better than the machine.
func (m *Machine) addReport(r fleet.Report) {
	if !r.Keys[m.Machine] {
		m.State = fleet.Revoked
	}
	if refused := r.Refused[m.Machine]; time.Since(refused.Time) < refusedTime {
		m.Error = "another agent with its key was refused, at " + refused.Address
	}
	if r.Error != "" {
		m.Error = r.Error
	}
}

// stored are the streams of results, by machine, also of those that were removed. It
// adds to the machines what each stores.
func (f *Fleet) stored(ctx context.Context, machines []Machine) (results map[string]*jetstream.StreamInfo, err error) {
	results = map[string]*jetstream.StreamInfo{}
	streams := f.JetStream.ListStreams(ctx)
	for s := range streams.Info() {
		name, kind := fleet.StoreOf(s.Config.Name)
		if kind == fleet.Results("") {
			results[name] = s
		}
		for i := range machines {
			if machines[i].Machine == name {
				machines[i].Stored += int64(s.State.Bytes)
			}
		}
	}
	return results, streams.Err()
}

// Logs calls print for each line that a machine printed during a job; "" is any
// job. The server keeps the last lines of each job only. With follow it waits for
// further lines until ctx ends, which is an error.
func (f *Fleet) Logs(ctx context.Context, machine, job string, follow bool, print func(line string)) (err error) {
	if err := fleet.CheckMachine(machine); err != nil {
		return err
	}
	subject := fleet.LogSubject(machine, cmp.Or(job, "*"))
	for next := uint64(1); ; time.Sleep(time.Second) {
		next, err = f.read(ctx, fleet.Logs(machine), subject, next, func(m message) {
			for line := range strings.Lines(string(m.Data)) {
				print(strings.TrimRight(line, "\r\n"))
			}
		})
		if err != nil || !follow {
			return err
		}
	}
}
