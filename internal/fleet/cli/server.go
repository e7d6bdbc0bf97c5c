package cli

import (
	"context"
	"strings"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/report"
	"dmgbench/internal/system/units"
)

// serve is the command "serve".
func (a *app) serve(ctx context.Context, _ []string) error {
	limits := fleet.DefaultLimits()
	runs, err := units.ParseBytes(a.text("runs"))
	if err != nil || runs <= 0 || a.number("replicas") < 1 {
		return usageError("", "reading --runs and --replicas: want a size such as \"4 GiB\", and a number from 1 on")
	}
	limits.Runs = int64(runs)
	if a.text("nats") != "" {
		limits.Replicas = a.number("replicas")
		return a.setUpServer(ctx, limits)
	}
	folder, err := a.stateFolder(serverFolder)
	if err != nil {
		return err
	}
	s, err := broker.Serve(folder, broker.Options{Listen: a.text("listen"), Advertise: a.list("advertise"),
		Limits: limits, Log: cleanWriter{a}})
	if err != nil {
		return err
	}
	defer s.Close()
	command := "dmgbench-fleet add-machine NAME"
	if a.text("folder") != "" {
		command += " --folder " + quote(folder)
	}
	err = a.print("serving a fleet at %s", strings.Join(s.Addresses(), ", "))
	if err == nil {
		err = a.print("add a machine: %s", command)
	}
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// cleanWriter prints the lines of the server, which may contain names that
// clients gave themselves.
type cleanWriter struct{ *app }

func (w cleanWriter) Write(p []byte) (int, error) {
	w.note("%s", p)
	return len(p), nil
}

// setUpServer makes the streams on a server that is not ours.
func (a *app) setUpServer(ctx context.Context, l fleet.Limits) error {
	f, err := a.openFleet()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Setup(ctx, l); err != nil {
		return err
	}
	return a.print("made the streams of the fleet, with %s", report.Count(l.Replicas, "copy"))
}
