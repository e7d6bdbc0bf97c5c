package plan

import "fmt"

// SelectorError says that a selector cannot be read or selects nothing: bad usage, exit 2.
type SelectorError struct{ Text, Cause string }

// Error names the selector and what is wrong with it.
func (e *SelectorError) Error() string { return fmt.Sprintf("selecting %q: %s", e.Text, e.Cause) }

// OverrideError says that a flag cannot be applied to a plan: bad usage, exit 2.
type OverrideError struct{ Flag, Value, Cause string }

// Error names the flag and why it cannot be applied.
func (e *OverrideError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("applying --%s: %s", e.Flag, e.Cause)
	}
	return fmt.Sprintf("applying --%s %s: %s", e.Flag, e.Value, e.Cause)
}
