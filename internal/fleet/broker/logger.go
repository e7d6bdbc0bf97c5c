package broker

import (
	"fmt"
	"io"
	"sync"
)

// logger writes the warnings and errors of nats-server.
type logger struct {
	mu    sync.Mutex
	w     io.Writer
	fatal chan error // gets the first error for which the server does not start
}

func newLogger(w io.Writer) *logger {
	if w == nil {
		w = io.Discard
	}
	return &logger{w: w, fatal: make(chan error, 1)}
}

func (l *logger) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", v...)
}

func (l *logger) Warnf(format string, v ...any) { l.Errorf(format, v...) }

// Fatalf does not end the process, as the caller of Serve gets the error.
func (l *logger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Errorf(format, v...):
	default:
	}
}

func (*logger) Noticef(string, ...any) {}
func (*logger) Debugf(string, ...any)  {}
func (*logger) Tracef(string, ...any)  {}
