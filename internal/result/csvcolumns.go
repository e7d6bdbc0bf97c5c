package result

import (
	"slices"
	"strings"
)

// runColumns come first in every row but those of "tables"; the keys of the case follow, then caseColumns.
var runColumns = []Column{
	{"run", "run id", func(x *csvRow) any { return x.run.Run }},
	{"plan", "name of the plan", func(x *csvRow) any { return x.run.Plan.Name }},
	{"case", "id of the case", func(x *csvRow) any { return x.of.ID }},
}

var caseColumns = []Column{
	{"baseline", "true for the native baseline", func(x *csvRow) any { return x.of.Baseline }},
	{"kind", "image or directory", func(x *csvRow) any { return x.of.Target.Kind }},
	{"place", "named folder; empty: the run folder", func(x *csvRow) any { return x.of.Target.Place }},
	{"format", "four-letter name of the format", func(x *csvRow) any { return x.of.Target.Format }},
	{"encryption", "none, AES-128 or AES-256", func(x *csvRow) any { return x.of.Target.Encryption }},
	{"filesystem", "file system that was made", func(x *csvRow) any { return x.of.Target.Filesystem }},
	{"size_bytes", "nominal size of the image, B", func(x *csvRow) any { return x.of.Target.Size }},
	{"band_size_bytes", "band size found, B; 0: no bands", func(x *csvRow) any { return x.of.Target.BandSizeUsed }},
	{"backend", "tool that made it", func(x *csvRow) any { return x.of.Target.Backend }},
}

var stepColumns = []Column{
	{"round", "from 1", func(x *csvRow) any { return x.step.Round }},
	{"counts", "false: the round was not measured to its end, leave the row out",
		func(x *csvRow) any { return x.of.Counts(x.step.Round) }},
	{"session", "index of the session", func(x *csvRow) any { return x.step.Session }},
	{"step", "position in the case's protocol", func(x *csvRow) any { return x.step.Index }},
	{"do", "action", func(x *csvRow) any { return x.step.Do }},
	{"phase", "label of the step", func(x *csvRow) any { return x.step.Phase }},
	{"op", "write, read or stream", func(x *csvRow) any { return x.step.Op }},
	{"cycle", "from 1 inside a repeat, else 0", func(x *csvRow) any { return x.step.Cycle }},
}

var estimateColumns = []Column{
	{"ci_low", "in unit", intervalCell(func(ci *CI) any { return ci.Low })},
	{"ci_high", "in unit", intervalCell(func(ci *CI) any { return ci.High })},
	{"ci_level", "0.95: 95 %", intervalCell(func(ci *CI) any { return ci.Level })},
	{"ci_method", "how the interval was made", intervalCell(func(ci *CI) any { return ci.Method })},
	{"unit_of_replication", "what was replicated", intervalCell(func(ci *CI) any { return ci.Unit })},
}

// ownColumns are those of each table after runColumns and caseColumns; "tables" has no others.
var ownColumns = map[string][]Column{
	"samples": slices.Concat(stepColumns, []Column{
		{"file", "name on the volume", func(x *csvRow) any { return x.sample.File }},
		{"set", "set of the file", func(x *csvRow) any { return x.sample.Set }},
		{"order", "position in the step", func(x *csvRow) any { return x.sample.Order }},
		{"worker", "who did it", func(x *csvRow) any { return x.sample.Worker }},
		{"bytes", "size, B", func(x *csvRow) any { return x.sample.Bytes }},
		{"start_ns", "since the session began, ns", func(x *csvRow) any { return x.sample.StartNS }},
		{"duration_ns", "ns", func(x *csvRow) any { return x.sample.DurationNS }},
		{"rate_bytes_per_second", "bytes / duration, B/s",
			func(x *csvRow) any { return rateCell(x.sample.Bytes, x.sample.DurationNS) }},
	}),
	"steps": slices.Concat(stepColumns, []Column{
		{"expect", "ok or fail", func(x *csvRow) any { return x.step.Expect }},
		{"error", "empty: it went well", func(x *csvRow) any { return x.step.Error }},
		{"start_ns", "ns", func(x *csvRow) any { return x.step.StartNS }},
		{"duration_ns", "of the whole step, ns", func(x *csvRow) any { return x.step.DurationNS }},
		{"workers", "goroutines doing file I/O", func(x *csvRow) any { return x.step.Workers }},
		{"bytes", "moved between gate and last done, B", spanCell(func(p *Span) any { return p.Bytes })},
		{"span_ns", "gate to last done, ns", spanCell(func(p *Span) any { return p.LastDoneNS - p.GateNS })},
		{"first_done_ns", "gate to first done, ns", spanCell(func(p *Span) any { return p.FirstDoneNS - p.GateNS })},
		{"idle_ns", "worker time outside files, ns", spanCell(func(p *Span) any { return p.IdleNS })},
		{"rate_bytes_per_second", "bytes / span, B/s",
			spanCell(func(p *Span) any { return rateCell(p.Bytes, p.LastDoneNS-p.GateNS) })},
		{"allocated_bytes", "on the host, B", diskCell(func(d *DiskUse) any { return d.Allocated })},
		{"apparent_bytes", "on the host, B", diskCell(func(d *DiskUse) any { return d.Apparent })},
		{"bands", "files of a sparse bundle", diskCell(func(d *DiskUse) any { return d.Bands })},
		{"bands_full", "of them full", diskCell(func(d *DiskUse) any { return d.BandsFull })},
		{"volume_free_bytes", "B; empty while detached", diskCell(func(d *DiskUse) any { return positive(d.VolumeFree) })},
		{"host_free_bytes", "B; empty where it is not known", diskCell(func(d *DiskUse) any { return positive(d.HostFree) })},
		{"bytes_freed", "by compact or trim, B", func(x *csvRow) any { return x.step.BytesFreed }},
		{"live_bytes", "bytes of files on the volume, B", func(x *csvRow) any { return x.step.Live }},
		{"device_read_bytes", "by the disk below, B",
			func(x *csvRow) any { return part(x.step.Device, func(d *DeviceBytes) any { return d.Read }) }},
		{"device_written_bytes", "by the disk below, B",
			func(x *csvRow) any { return part(x.step.Device, func(d *DeviceBytes) any { return d.Written }) }},
		{"cache_asked", "cache mode the plan asks for", func(x *csvRow) any { return asked(x.step.Cache) }},
		{"cache_achieved", "cache mode found", func(x *csvRow) any { return found(x.step.Cache) }},
		{"sync_asked", "flush the plan asks for", func(x *csvRow) any { return asked(x.step.Sync) }},
		{"sync_achieved", "flush found", func(x *csvRow) any { return found(x.step.Sync) }},
		{"stream_out_bytes", "bytes behind the codec, B",
			func(x *csvRow) any { return part(x.step.Stream, func(s *Stream) any { return s.Out }) }},
		{"ratio", "original / compressed",
			func(x *csvRow) any { return part(x.step.Stream, func(s *Stream) any { return s.Ratio }) }},
		{"findings", "of check and verify, separated by ; ",
			func(x *csvRow) any { return strings.Join(x.step.Findings, "; ") }},
		{"warnings", "separated by ; ", func(x *csvRow) any { return joinWarnings(x.step.Warnings) }},
		{"retry_ns", "failed tries and pauses between tries, not in duration_ns, ns",
			func(x *csvRow) any { return x.step.RetryNS }},
	}),
	"summaries": slices.Concat([]Column{
		{"phase", "label of the step", func(x *csvRow) any { return x.summary.Phase }},
		{"op", "quantity", func(x *csvRow) any { return x.summary.Op }},
		{"cycle", "from 1 inside a repeat, else 0", func(x *csvRow) any { return x.summary.Cycle }},
		{"n", "values behind the summary", func(x *csvRow) any { return x.summary.N }},
		{"rounds", "rounds behind it", func(x *csvRow) any { return x.summary.Rounds }},
		{"bytes", "B", func(x *csvRow) any { return x.summary.Bytes }},
		{"estimate", "name of the estimate", func(x *csvRow) any { return x.estimate.Name }},
		{"headline", "true for the one to quote", func(x *csvRow) any { return x.estimate.Name == x.summary.Headline }},
		{"value", "in unit", func(x *csvRow) any { return x.estimate.Value }},
		{"unit", "B/s, B, s or 1", func(x *csvRow) any { return x.estimate.Unit }},
	}, estimateColumns, []Column{
		{"why", "why there is no interval", func(x *csvRow) any { return x.estimate.Why }},
		{"published", "figures as printed, with the statistic, separated by ; ",
			func(x *csvRow) any { return joinPublished(x.summary.Published) }},
		{"departures", "separated by ; ", func(x *csvRow) any { return strings.Join(x.summary.Departures, "; ") }},
		{"warnings", "separated by ; ", func(x *csvRow) any { return joinWarnings(x.summary.Warnings) }},
	}),
	"tables": slices.Concat([]Column{
		{"run", "run id", func(x *csvRow) any { return x.run.Run }},
		{"plan", "name of the plan", func(x *csvRow) any { return x.run.Plan.Name }},
		{"table", "name of the table", func(x *csvRow) any { return x.table.Name }},
		{"table_title", "its heading", func(x *csvRow) any { return x.table.Title }},
		{"row_group", "heading before neighbouring rows", func(x *csvRow) any { return x.head.Group }},
		{"row", "heading of the row", func(x *csvRow) any { return x.head.Title }},
		{"column_group", "heading over neighbouring columns", func(x *csvRow) any { return x.across.Group }},
		{"column", "heading of the column", func(x *csvRow) any { return x.across.Title }},
		{"op", "quantity, coefficient or outcome", func(x *csvRow) any { return x.head.Op + x.across.Op }},
		{"case", "id of the case; empty: none was measured", func(x *csvRow) any { return x.cell.Case }},
		{"phase", "label of the step", func(x *csvRow) any { return x.cell.Phase }},
		{"cycle", "from 1 inside a repeat, else 0", func(x *csvRow) any { return x.cell.Cycle }},
		{"rounds", "rounds behind the value", func(x *csvRow) any { return x.cell.Rounds }},
		{"estimate", "name of the estimate", func(x *csvRow) any { return x.estimate.Name }},
		{"value", "in unit; empty: not measured",
			func(x *csvRow) any { return part(x.cell.Estimate, func(e *Estimate) any { return e.Value }) }},
		{"unit", "B/s, B, s or 1, of all values of the row", func(x *csvRow) any { return x.estimate.Unit }},
	}, estimateColumns, []Column{
		{"why", "why there is no value, or no interval", func(x *csvRow) any { return x.estimate.Why }},
		{"published", "figure as printed", publishedCell(func(p *PublishedValue) any { return p.Text })},
		{"published_low", "in unit", publishedCell(func(p *PublishedValue) any { return p.Low })},
		{"published_high", "in unit; as published_low where one value is printed",
			publishedCell(func(p *PublishedValue) any { return p.High })},
		{"published_on", "machine, system, tool and day of the figure",
			publishedCell(func(p *PublishedValue) any { return p.On })},
		{"ratio", "measured / published", publishedCell(func(p *PublishedValue) any {
			if p.Ratio > 0 {
				return p.Ratio
			}
			return nil
		})},
		{"comparable", "false: the departures or `on` say why not; empty: nothing to compare", func(x *csvRow) any {
			if x.cell.Estimate == nil {
				return nil
			}
			return part(x.cell.Published, func(p *PublishedValue) any { return p.Comparable })
		}},
		{"warnings", "separated by ; ", func(x *csvRow) any { return joinWarnings(x.cell.Warnings) }},
		{"fit", "fit whose coefficient the value is", func(x *csvRow) any { return x.cell.Fit }},
		{"outcome", "how the steps ended, in the words of the plan; empty: no outcome is asked for",
			outcomeCell(func(o *TableOutcome) any { return o.Text })},
		{"ok", "steps that ended well", outcomeCell(func(o *TableOutcome) any { return o.OK })},
		{"failed", "steps that ended with an error, expected or not",
			outcomeCell(func(o *TableOutcome) any { return o.Failed })},
	}),
}
