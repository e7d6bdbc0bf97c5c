package agent

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"dmgbench/internal/fleet"
)

// Config is what the owner of a machine gives to its agent.
type Config struct {
	Link            fleet.Link        // User is the name of the machine
	Folder          string            // of the agent's state: made if missing, and used by one agent at a time
	Program         string            // path of dmgbench
	Places          map[string]string // folders by name; "" is the one for plans without places, or with a single one
	Backing, Inputs map[string]string // folders and files by name
	Tags            []string
	Engine          string // of jobs that have none; "" is the program's choice
	Log             func(format string, args ...any)
}

// complete checks the settings and makes all paths absolute.
func (c *Config) complete() error {
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	if err := fleet.CheckMachine(c.Link.User); err != nil {
		return err
	}
	path, err := exec.LookPath(c.Program)
	if err == nil {
		c.Program, err = filepath.Abs(path)
	}
	if err == nil {
		c.Folder, err = filepath.Abs(c.Folder)
	}
	for _, paths := range []map[string]string{c.Places, c.Backing, c.Inputs} {
		for name, path := range paths {
			if err == nil {
				paths[name], err = filepath.Abs(path)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	return nil
}
