package result

// Precondition is how a place was written to before the rounds of a session, until
// its rate had settled by fio's rule or a limit was reached.
type Precondition struct {
	Session int            `json:"session"`
	Place   string         `json:"place"`
	Steady  bool           `json:"steady"`
	Text    string         `json:"text"`
	Slope   float64        `json:"slope"`  // of the last window: by what share of its mean the rate changes from one sample to the next, -1 where there was no window
	Window  int            `json:"window"` // samples
	Limit   float64        `json:"limit"`  // share below which the slope is settled
	Samples []SteadySample `json:"samples"`
}

// SteadySample is one file that was written, flushed and deleted.
type SteadySample struct {
	Bytes      int64 `json:"bytes"`
	DurationNS int64 `json:"duration_ns"`
}

func (p *Precondition) check() error { return optional(p.Place) }
