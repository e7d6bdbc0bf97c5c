package runner

import "dmgbench/internal/result"

// PlacesOf are the places of a run that is to be resumed: those of c, and those
// that the registry in its state directory knows. An error means that a place of
// the run is known no more.
func PlacesOf(c Config, run result.RunStart) ([]Place, error) { return placesAgain(c, run) }
