package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"dmgbench/internal/fleet"
)

// deliver stores the run folder and the result, takes the job out of the queue
// and deletes the task. It tries until ctx ends: what was measured is not lost.
func (s *session) deliver(ctx context.Context) error {
	s.c.report(func(st *fleet.Status) { st.State = fleet.Storing })
	for pause := (backoff{}); ; {
		err := s.store(ctx, pause.attempts)
		if err == nil {
			err = s.acknowledge(ctx)
		}
		if err == nil {
			break
		}
		s.c.report(func(st *fleet.Status) { st.Error = shorten(err.Error()) })
		if !pause.wait(ctx) {
			return ctx.Err()
		}
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("deleting job %q: %w", s.Result.Job, err)
	}
	return nil
}

// store stores the run folder and then the result, unless there is one.
func (s *session) store(ctx context.Context, attempt int) error {
	done, err := s.c.hasResult(ctx, s.Result)
	if done || err != nil {
		return err
	}
	r := s.Result
	if r.Run = s.runID(); r.Run != "" {
		if r.Size, err = s.c.upload(ctx, r.Run, s.run(), attempt); err != nil {
			return err
		}
	}
	return s.c.publish(ctx, r)
}

// hasResult reports whether the result of an occurrence is stored.
func (c *connection) hasResult(ctx context.Context, r fleet.Result) (bool, error) {
	return c.isStored(ctx, fleet.Results, fleet.ResultSubject(c.machine, r.Job, r.Occurrence), requestTime)
}

// acknowledge takes the job out of the queue, or lets it wait for its next
// occurrence. A job that is gone needs neither.
func (s *session) acknowledge(ctx context.Context) error {
	if s.msg == nil {
		return nil
	}
	if due, more := s.nextDue(time.Now()); more {
		return errors.Join(s.msg.NakWithDelay(time.Until(due)), s.c.flush(requestTime))
	}
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := s.msg.DoubleAck(limited)
	if err != nil {
		there, unknown := s.c.isStored(ctx, fleet.Jobs, fleet.JobSubject(s.c.machine, s.Result.Job), requestTime)
		if unknown == nil && !there {
			return nil
		}
		err = fmt.Errorf("acknowledging job %q: %w", s.Result.Job, s.c.checkAnswer(err))
	}
	return err
}

// nextDue is when the next occurrence of a repeated job is due. An occurrence that
// was missed is left out. more is false after the last one.
func (s *session) nextDue(now time.Time) (due time.Time, more bool) {
	if s.Job.Every < minEvery {
		return due, false
	}
	meta, err := s.msg.Metadata()
	if err != nil {
		return due, false
	}
	next := max(occurrence(s.Job, meta.Timestamp, now), s.Result.Occurrence) + 1
	return meta.Timestamp.Add(time.Duration(next) * s.Job.Every), s.Job.Repeat == 0 || next < s.Job.Repeat
}

// occurrence is the number of the present occurrence of a job that was stored at a
// time of the server's clock.
func occurrence(job fleet.Job, stored, now time.Time) int {
	if job.Every < minEvery {
		return 0
	}
	return max(int(now.Sub(stored)/job.Every), 0)
}
