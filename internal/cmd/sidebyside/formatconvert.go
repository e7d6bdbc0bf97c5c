package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"dmgbench/internal/stats"
	"dmgbench/internal/units"
)

// Files in the place.
const (
	rawFile = "device.img"
	dmgFile = "image.dmg"
	outFile = "out"
	ourRaw  = outFile + ".dmg" // the extension that our hdiutil gives to raw images, too
	ourDMG  = outFile + ".dmg"
	ourBack = "back.dmg"
	rawBack = "back.img"
)

// ourConvert is the command of our hdiutil that makes out of in.
func ourConvert(in, out, format string, more ...string) []string {
	return append([]string{"convert", in, "-format", format, "-o", out}, more...)
}

// decoding compares UDZO → raw.
func (b *formatBench) decoding(ctx context.Context) error {
	if err := b.testImage(rawFile, b.size); err != nil {
		return err
	}
	defer os.Remove(b.path(rawFile))
	makers := []job{{tool: b.ourTool(), args: ourConvert(rawFile, dmgFile, "UDZO"), output: dmgFile}}
	if b.fstoolImages {
		t := b.fstoolTool()
		if !t.found() {
			return fmt.Errorf("making an image with fstool: %s", t.missing())
		}
		makers = append(makers, job{tool: t, args: []string{"convert", rawFile, dmgFile, "--dmg-format", "UDZO"}, output: dmgFile})
	}
	for _, maker := range makers {
		if _, err := b.run(ctx, b.size, maker.tool.program, maker.args...); err != nil {
			return err
		}
		d := deed{op: "UDZO → raw", bytes: b.size, aim: aimDecode, verify: func(_ context.Context, _ job, made string) error {
			return same(made, b.path(rawFile))
		}}
		if maker.tool.name != us {
			d.op += " (made by " + maker.tool.name + ")"
		}
		d.jobs = []job{
			{b.ourTool(), ourConvert(dmgFile, ourRaw, "UDRW"), ourRaw},
			{b.fstoolTool(), []string{"convert", dmgFile, outFile}, outFile},
			{&converter{"qemu-img", b.qemu, "apt-get install qemu-utils, brew install qemu"}, []string{"convert", "-f", "dmg", "-O", "raw", dmgFile, outFile}, outFile},
			{&converter{"7zz", b.sevenZip, "apt-get install 7zip, brew install sevenzip"}, []string{"x", "-tdmg", "-y", "-bso0", "-bsp0", "-o" + outFile, dmgFile}, outFile},
		}
		if err := b.compare(ctx, d); err != nil {
			return err
		}
		if err := os.Remove(b.path(dmgFile)); err != nil {
			return err
		}
	}
	return nil
}

// encoding compares raw → UDZO at each level, and raw → ULFO.
func (b *formatBench) encoding(ctx context.Context) error {
	if err := b.testImage(rawFile, b.encodeSize); err != nil {
		return err
	}
	defer os.Remove(b.path(rawFile))
	d := deed{bytes: b.encodeSize, compresses: true, aim: aimEncode, verify: b.roundTrip}
	for _, level := range b.levels {
		n := fmt.Sprint(level)
		d.op = "raw → UDZO, level " + n
		d.jobs = []job{
			{b.ourTool(), ourConvert(rawFile, ourDMG, "UDZO", "-imagekey", "zlib-level="+n), ourDMG},
			{b.fstoolTool(), []string{"convert", rawFile, ourDMG, "--dmg-format", "UDZO", "--dmg-level", n}, ourDMG},
		}
		if err := b.compare(ctx, d); err != nil {
			return err
		}
	}
	d.op = "raw → ULFO"
	d.jobs = []job{
		{b.ourTool(), ourConvert(rawFile, ourDMG, "ULFO"), ourDMG},
		{b.fstoolTool(), []string{"convert", rawFile, ourDMG, "--dmg-format", "ULFO"}, ourDMG},
	}
	return b.compare(ctx, d)
}

// roundTrip decodes an image with another tool than the one that made it, where there is one.
func (b *formatBench) roundTrip(ctx context.Context, j job, made string) error {
	back, program, args := ourBack, b.hdiutil, ourConvert(filepath.Base(made), ourBack, "UDRW")
	if other := b.fstoolTool(); j.tool.name == us && other.found() {
		back, program, args = rawBack, other.program, []string{"convert", filepath.Base(made), rawBack}
	}
	defer os.Remove(b.path(back))
	if _, err := b.run(ctx, b.encodeSize, program, args...); err != nil {
		return err
	}
	return same(b.path(back), b.path(rawFile))
}

// add makes the rows and the table of a deed. The aim is on the fastest of the other tools.
func (b *formatBench) add(d deed, jobs []job, results []tally) error {
	rates, best, fastest := make([][]float64, len(jobs)), 0, 0.0
	for i, r := range results {
		for _, l := range r.rounds {
			rates[i] = append(rates[i], l.rate())
		}
		m, err := stats.Median(rates[i])
		if err != nil {
			return err
		}
		if i > 0 && m > fastest {
			best, fastest = i, m
		}
	}
	for i := 1; i < len(jobs); i++ {
		row := row{Workers: b.cores(), Op: d.op, Subject: us, Baseline: jobs[i].tool.name, Quantity: quantityRate}
		if i == best {
			row.Aim = d.aim
		}
		if err := row.compare(rates[0], rates[i]); err != nil {
			return fmt.Errorf("comparing %s: %w", d.op, err)
		}
		if d.compresses {
			row.compareSizes(results[0].made, results[i].made)
		}
		b.report.Rows = append(b.report.Rows, row)
	}
	for i, j := range d.jobs {
		if i > 0 && !j.tool.found() {
			b.report.Rows = append(b.report.Rows, row{Workers: b.cores(), Op: d.op, Subject: us, Baseline: j.tool.name, Quantity: quantityRate, Missing: j.tool.missing()})
		}
	}
	return b.costs(d, jobs, results)
}

// costs adds what each tool made and took to the table.
func (b *formatBench) costs(d deed, jobs []job, results []tally) error {
	t := b.report.table("What each made and took", "op", "tool", "made", "of the image", "rate", "processor time", "most memory")
	for i, r := range results {
		var rates, cpu []float64
		for _, l := range r.rounds {
			rates, cpu = append(rates, l.rate()), append(cpu, l.cpu/2)
		}
		rate, err := stats.Median(rates)
		if err != nil {
			return err
		}
		seconds, err := stats.Median(cpu)
		if err != nil {
			return err
		}
		t.add(d.op, jobs[i].tool.name, units.Bytes(r.made).Human(), fmt.Sprintf("%.1f %%", 100*float64(r.made)/float64(d.bytes)),
			units.Rate(rate).Human(), units.Significant(seconds, 3)+" s", units.Bytes(r.peak).Human())
	}
	return nil
}
