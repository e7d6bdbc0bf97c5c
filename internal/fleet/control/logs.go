package control

import (
	"cmp"
	"context"
	"strings"
	"time"

	"dmgbench/internal/fleet"
)

// followEvery is how often new lines are fetched.
const followEvery = time.Second

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
