package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/agent"
)

// maxJoin is the largest join string in bytes.
const maxJoin = 64 << 10

// join is the command "join". It ends without an error when it is interrupted.
func (a *app) join(ctx context.Context, args []string) error {
	link, err := a.agentLink(append(args, "")[0])
	if err != nil {
		return err
	}
	c := agent.Config{Link: link, Tags: a.list("tag"), Engine: a.text("engine"), Program: a.text("program"),
		Log: func(format string, args ...any) { a.note(format, args...) }}
	if c.Folder, err = a.stateFolder(filepath.Join("agents", link.User)); err != nil {
		return err
	}
	if c.Program == "" {
		c.Program, err = dmgbenchProgram()
	}
	if err == nil {
		c.Places, err = a.paths("on")
	}
	if err == nil {
		c.Inputs, err = a.paths("input")
	}
	if err == nil {
		c.Backing, err = a.paths("backing")
	}
	if err != nil {
		return err
	}
	if err = agent.Run(ctx, c); ctx.Err() != nil {
		return nil
	}
	return err
}

// agentLink is how this machine reaches the fleet: a join string, from the
// argument, a file or stdin, or an address with a file of credentials.
func (a *app) agentLink(arg string) (fleet.Link, error) {
	name, text := a.text("name"), arg
	url := cmp.Or(a.text("nats"), arg)
	var err error
	switch {
	case a.text("creds") != "" || a.text("nats") != "":
		if err = fleet.CheckMachine(name); err != nil || a.text("creds") == "" || url == "" {
			return fleet.Link{}, usageError("for a server of your own: --nats URL --creds FILE --name NAME",
				"reading --nats, --creds and --name: one is missing or wrong")
		}
		return fleet.Link{URLs: []string{url}, User: name, Credentials: a.text("creds")}, nil
	case arg == "":
		return fleet.Link{}, usageError("\"dmgbench-fleet add-machine NAME\" prints one", "reading the join string: it is missing")
	case arg == "-":
		var data []byte
		data, err = io.ReadAll(io.LimitReader(a.stdin, maxJoin))
		text = string(data)
	default: // no file has a name as long as a join string
		if data, e := os.ReadFile(arg); e == nil {
			text = string(data)
		}
	}
	var link fleet.Link
	if err == nil {
		link, err = fleet.ParseLink(text)
	}
	if err != nil {
		return link, usageError("give the file that has the join string, or - for stdin", "%w", err)
	}
	if name != "" && name != link.User {
		return link, usageError("", "reading --name: the join string is for machine %q, not %q", link.User, name)
	}
	return link, nil
}

// paths are the values NAME=PATH of a flag by their names, as absolute paths. A
// value without a name, which may only contain an equals sign after a slash, is
// the one for plans with a single place.
func (a *app) paths(flag string) (map[string]string, error) {
	out := map[string]string{}
	for _, value := range a.list(flag) {
		name, path, ok := strings.Cut(value, "=")
		if !ok || strings.ContainsAny(name, `/\`) {
			name, path = "", value
		}
		info, err := os.Stat(path)
		switch {
		case err == nil && (name == "" && flag != "on" || out[name] != ""):
			err = fmt.Errorf("want NAME=PATH, each name once")
		case err == nil && info.IsDir() != (flag != "input"):
			err = fmt.Errorf("want a file for --input, else a folder")
		}
		if err != nil {
			return nil, usageError("", "reading --%s %q: %w", flag, value, err)
		}
		if out[name], err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	return out, nil
}
