package analysis

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/system/units"
)

func figure(t require.TestingT, text, unit string) plan.Figure {
	f, err := plan.ParseFigure(text, unit)
	require.NoError(t, err)
	return f
}

// prints is a plan that only publishes.
func prints(t require.TestingT, figures ...plan.Published) *plan.Plan {
	for i := range figures {
		figures[i].Value = figure(t, figures[i].Value.Text, figures[i].Quantity.Unit())
	}
	return &plan.Plan{Source: &plan.Source{Title: "an article", On: plan.On{Machine: "Mac mini M4 Pro", OS: "macOS 26.3.1"}}, Published: figures}
}

func pub(q plan.Quantity, text string, pairs ...string) plan.Published {
	return plan.Published{Quantity: q, Where: sel(pairs...), Value: plan.Figure{Text: text}}
}

// The figures of 23 March 2026, methodology section 3.8.
func encryptionCost(t require.TestingT) *plan.Plan {
	p := prints(t,
		pub("read", "6.13 GB/s", "format", "UDSB", "encryption", "none", "phase", "new"),
		pub("write", "7.62 GB/s", "format", "UDSB", "encryption", "none", "phase", "new"),
		pub("write", "8.03 GB/s", "format", "UDSB", "encryption", "none", "phase", "part-full"),
		pub("write", "7.79 GB/s", "format", "UDSB", "encryption", "none", "phase", "emptied"),
		pub("write", "10.11 GB/s", "format", "UDRW", "encryption", "none", "phase", "new"),
		pub("write", "9.55 GB/s", "format", "ASIF", "encryption", "none", "phase", "new"),
		pub("write", "5.23 GB/s", "format", "UDSB", "encryption", "AES-256", "phase", "new"),
		pub("write", "1.58 GB/s", "format", "UDRW", "encryption", "AES-256", "phase", "new"),
		pub("write", "1.72 GB/s", "format", "ASIF", "encryption", "AES-256", "phase", "new"),
		pub("write", "7.66 GB/s", "target", "directory", "phase", "new"),
		pub("write", "about 2 GB/s", "format", "UDSP", "phase", "new"),
		pub("write", "0.08 GB/s to 0.5 GB/s", "format", "UDSP", "encryption", "AES-256", "phase", "new"),
		pub("read", "below 0.92 GB/s", "format", "UDSP", "phase", "new"),
		pub("write", "1.52 GB/s", "format", "ASIF", "encryption", "AES-256", "phase", "new"),
	)
	p.Published[13].On = plan.On{Machine: "MacBook Pro M3 Pro"}
	return p
}

func TestJudgePublished(t *testing.T) {
	w := func(pairs ...string) plan.Operand { return op("write", append(pairs, "phase", "new")...) }
	aes := func(f string) plan.Operand { return w("format", f, "encryption", "AES-256") }
	plain := func(f string) plan.Operand { return w("format", f, "encryption", "none") }
	b := func(text string) plan.Bound { return bound(t, text, "1") }
	gb := func(text string) plan.Bound { return bound(t, text, "B/s") }
	udsb := op("write", "format", "UDSB", "encryption", "none")
	elsewhere := aes("ASIF")
	elsewhere.On = plan.On{Machine: "MacBook Pro M3 Pro"}
	median := aes("ASIF")
	median.Statistic = "median"
	for _, x := range []struct {
		name    string
		a       plan.Assert
		verdict string
		reason  string
	}{
		{"ratio", plan.Assert{Kind: "ratio", Left: aes("UDSB"), Right: aes("UDRW"), Bound: b(">= 2")}, result.Holds, "UDSB writes 3.31 times as fast as UDRW, as published"},
		{"ratio not", plan.Assert{Kind: "ratio", Left: aes("UDSB"), Right: aes("UDRW"), Bound: b(">= 4")}, result.DoesNotHold, "needs at least 4"},
		{"difference", plan.Assert{Kind: "difference", Left: plain("UDSB"), Right: aes("UDSB"), Bound: gb("2 GB/s to 3 GB/s")}, result.Holds, "2.39 GB/s"},
		{"equal", plan.Assert{Kind: "equal", Left: aes("ASIF"), Right: aes("UDRW"), Within: 0.1}, result.Holds, ""},
		{"own machine wins", plan.Assert{Kind: "bound", Left: aes("ASIF"), Bound: gb("1.7 GB/s to 1.8 GB/s")}, result.Holds, "1.72 GB/s"},
		{"named machine", plan.Assert{Kind: "bound", Left: elsewhere, Bound: gb("< 1.6 GB/s")}, result.Holds, "1.52 GB/s"},
		{"order", plan.Assert{Kind: "order", Of: []plan.Operand{plain("UDRW"), plain("ASIF"), plain("UDSB")}}, result.Holds, ""},
		{"rank", plan.Assert{Kind: "rank", Left: plain("ASIF"), Of: []plan.Operand{plain("UDRW"), plain("UDSB")}, Rank: 2}, result.Holds, "ASIF is number 2 of 3"},
		{"rank not", plan.Assert{Kind: "rank", Left: plain("ASIF"), Of: []plan.Operand{plain("UDRW"), plain("UDSB")}, Rank: 1}, result.DoesNotHold, ""},
		{"extreme", plan.Assert{Kind: "extreme", Left: op("write", "encryption", "AES-256", "phase", "new"), Along: "format", Direction: "smallest", At: []string{"UDSP"}}, result.Holds, ""},
		{"spread", plan.Assert{Kind: "spread", Left: udsb, Along: "phase", Bound: b("<= 6%")}, result.Holds, ""},
		{"spread not", plan.Assert{Kind: "spread", Left: udsb, Along: "phase", Bound: b("<= 5%")}, result.DoesNotHold, ""},
		{"trend", plan.Assert{Kind: "trend", Left: udsb, Along: "phase", Direction: "rising"}, result.Holds, ""},
		{"constant", plan.Assert{Kind: "trend", Left: udsb, Along: "phase", Direction: "constant", Within: 0.06}, result.Holds, ""},
		{"the mean of cells", plan.Assert{Kind: "bound", Left: udsb, Bound: gb("7.81 GB/s to 7.82 GB/s")}, result.Holds, ""},
		{"against native", plan.Assert{Kind: "ratio", Left: plain("UDRW"), Right: w("target", "directory"), Bound: b("> 1")}, result.Holds, "the native folder"},
		{"about, within its rounding", plan.Assert{Kind: "bound", Left: w("format", "UDSP", "encryption", "none"), Bound: gb(">= 2.05 GB/s")}, result.Holds, `"about" read as ± 5`},
		{"about, beyond it", plan.Assert{Kind: "bound", Left: w("format", "UDSP", "encryption", "none"), Bound: gb(">= 2.2 GB/s")}, result.DoesNotHold, ""},
		{"range, all of it", plan.Assert{Kind: "bound", Left: aes("UDSP"), Bound: gb("<= 0.5 GB/s")}, result.Holds, ""},
		{"range, part of it", plan.Assert{Kind: "bound", Left: aes("UDSP"), Bound: gb("<= 0.3 GB/s")}, result.CannotTell, "reaches above"},
		{"range, nothing of it", plan.Assert{Kind: "bound", Left: aes("UDSP"), Bound: gb("> 0.5 GB/s")}, result.DoesNotHold, ""},
		{"below is strict", plan.Assert{Kind: "bound", Left: op("read", "format", "UDSP", "phase", "new"), Bound: gb("< 0.92 GB/s")}, result.Holds, ""},
		{"below leaves it open", plan.Assert{Kind: "bound", Left: op("read", "format", "UDSP", "phase", "new"), Bound: gb("< 0.5 GB/s")}, result.CannotTell, ""},
		{"missing", plan.Assert{Kind: "bound", Left: op("read", "format", "UDRW", "phase", "new"), Bound: gb("> 1 GB/s")}, result.NotMeasured, "the source prints no read rate with format UDRW, phase new"},
		{"missing statistic", plan.Assert{Kind: "bound", Left: median, Bound: gb("> 1 GB/s")}, result.NotMeasured, "no median write rate"},
		{"all", plan.Assert{Kind: "all", Parts: []plan.Assert{{Kind: "ratio", Left: aes("UDSB"), Right: aes("UDRW"), Bound: b("> 3")},
			{Kind: "ratio", Left: aes("UDSB"), Right: aes("ASIF"), Bound: b("> 3")}}}, result.Holds, ""},
		{"any", plan.Assert{Kind: "any", Parts: []plan.Assert{{Kind: "ratio", Left: aes("UDSB"), Right: aes("UDRW"), Bound: b("> 9")},
			{Kind: "ratio", Left: aes("UDSB"), Right: aes("ASIF"), Bound: b("> 3")}}}, result.Holds, ""},
		{"constant operand", plan.Assert{Kind: "ratio", Left: aes("UDRW"), Right: plan.Operand{Constant: &plan.Figure{Kind: "is", Low: 2.5e9, High: 2.5e9, Unit: "B/s", Text: "2.5 GB/s"}}, Bound: b("< 1")}, result.Holds, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := encryptionCost(t)
			c := claimOf(x.a)
			c.By = "author"
			p.Claims = []plan.Claim{c}
			got := JudgePublished(p)
			require.Len(t, got, 1)
			assert.Equal(t, x.verdict, got[0].Verdict, got[0].Reason)
			assert.Contains(t, got[0].Reason, x.reason)
		})
	}
}

// "About 2" is 2 where the spread of figures is bounded; a range stays one.
func TestSpreadOfRoundedFigures(t *testing.T) {
	for _, k := range []struct{ figure, bound, verdict string }{
		{"about 2 GB/s", "<= 12%", result.Holds}, {"about 2 GB/s", "<= 8%", result.CannotTell},
		{"about 2 GB/s", "<= 3%", result.DoesNotHold}, {"1.9 GB/s to 2.1 GB/s", "<= 12%", result.CannotTell},
	} {
		p := prints(t, pub("write", k.figure, "phase", "new"), pub("write", "2.2 GB/s", "phase", "old"))
		c := claimOf(plan.Assert{Kind: "spread", Left: op("write"), Along: "phase", Bound: bound(t, k.bound, "1")})
		c.By = "author"
		p.Claims = []plan.Claim{c}
		got := JudgePublished(p)[0]
		assert.Equal(t, k.verdict, got.Verdict, "%s %s: %s", k.figure, k.bound, got.Reason)
	}
}

func TestOutcomeOnTheAuthorsSide(t *testing.T) {
	p := planOf(t, threeFormats)
	c := claimOf(plan.Assert{Kind: "outcome", Step: "check", Where: sel("format", "UDSB"), Outcome: "ok"})
	c.By = "author"
	not := c
	not.Assert.Outcome = "fail"
	p.Claims = []plan.Claim{c, not}
	got := JudgePublished(p)
	assert.Equal(t, result.Holds, got[0].Verdict, got[0].Reason)
	assert.Equal(t, result.DoesNotHold, got[1].Verdict, got[1].Reason)
}

// threads has the figures of methodology section 3.5.
func threads(t require.TestingT) *plan.Plan {
	p := prints(t)
	for i, s := range []string{"49.32 s", "26.74 s", "18.60 s", "14.29 s", "11.21 s"} {
		p.Published = append(p.Published, pub("stream_time", s, "cores", "host", "threads", fmt.Sprint(i+1)))
	}
	for i, s := range []string{"30.13 s", "21.36 s", "17.18 s", "13.59 s"} {
		p.Published = append(p.Published, pub("stream_time", s, "cores", "vm", "threads", fmt.Sprint(i+2)))
	}
	p.Published = append(p.Published, pub("stream_time", "6.80 s", "cores", "host", "threads", "10"))
	for i := range p.Published {
		p.Published[i].Value = figure(t, p.Published[i].Value.Text, "s")
	}
	p.Inputs = []plan.Input{{Name: "ipsw", Size: units.Bytes(15_517_000_000)}}
	p.Protocol = []plan.Block{{Steps: []plan.Step{{Do: "copy", From: "ipsw", To: "in"}, {Do: "stream", From: "in", To: "out"}}}}
	return p
}

// Every printed digit of methodology section 4.
// fitPublished fits a model of the plan to the author's own points.
func fitPublished(p *plan.Plan, f plan.Fit) result.Fit {
	return fitResult(f, judge{s: &runData{p: p}, author: true}.fit(f))
}

func TestFitPublishedReproducesTheAuthor(t *testing.T) {
	p := threads(t)
	host := []string{"1", "2", "3", "4", "5"}
	for _, x := range []struct {
		q      plan.Quantity
		cores  string
		model  string
		points []string
		want   map[string]string // coefficient → digits as printed
	}{
		{"stream", "host", "line", host, map[string]string{"intercept": "0.04642", "slope": "0.26448", "r2": "0.9991"}},
		{"stream", "vm", "line", nil, map[string]string{"intercept": "0.10162", "slope": "0.20571", "r2": "0.9969"}},
		{"stream_time", "host", "power", host, map[string]string{"factor": "49.88625", "exponent": "-0.911690"}},
		{"stream_time", "vm", "power", nil, map[string]string{"factor": "54.73701", "exponent": "-0.854318"}},
	} {
		f := plan.Fit{Name: "f", Quantity: x.q, Where: sel("cores", x.cores), Along: "threads", Points: x.points, Model: x.model, Predict: []string{"10"}}
		got := fitPublished(p, f)
		require.Empty(t, got.Reason)
		scale := 1.0
		if x.q == "stream" {
			scale = 1e-9
		}
		for _, c := range got.Coefficients {
			if want, ok := x.want[c.Name]; ok {
				v := c.Value
				if c.Name != "r2" {
					v *= scale
				}
				decimals := len(want) - 1 - indexByte(want, '.')
				assert.Equal(t, want, fmt.Sprintf("%.*f", decimals, v), "%s %s %s", x.q, x.cores, c.Name)
				delete(x.want, c.Name)
			}
		}
		assert.Empty(t, x.want)
		require.Len(t, got.Predictions, 1)
		if x.q == "stream" && x.cores == "host" {
			assert.InDelta(t, 2.69, got.Predictions[0][1]/1e9, 0.005)
		}
	}
}

func indexByte(s string, b byte) int {
	for i := range len(s) {
		if s[i] == b {
			return i
		}
	}
	return -1
}

func TestFitClaimsOnTheAuthorsSide(t *testing.T) {
	p := threads(t)
	p.Fits = []plan.Fit{
		{Name: "rate", Quantity: "stream", Where: sel("cores", "host"), Along: "threads", Points: []string{"1", "2", "3", "4", "5"}, Model: "line", Predict: []string{"10"}},
		{Name: "none", Quantity: "write", Along: "threads", Model: "line", Published: []plan.Coefficient{{Name: "slope", Value: 2, Text: "2"}}},
	}
	for i, a := range []plan.Assert{
		{Kind: "coefficient", Fit: "rate", Coefficient: "slope", Bound: bound(t, "0.26 GB/s to 0.27 GB/s", "B/s")},
		{Kind: "coefficient", Fit: "none", Coefficient: "slope", Bound: bound(t, "about 2", "1")},
		{Kind: "prediction", Fit: "rate", Left: op("stream", "cores", "host", "threads", "10"), At: []string{"10"}, Bound: bound(t, "0.8 to 0.9", "1")},
		{Kind: "trend", Left: op("stream_time", "cores", "host"), Along: "threads", Direction: "falling"},
	} {
		c := claimOf(a)
		c.ID, c.By = fmt.Sprint(i), "author"
		p.Claims = append(p.Claims, c)
	}
	for _, c := range JudgePublished(p) {
		assert.Equal(t, result.Holds, c.Verdict, "%s: %s", c.ID, c.Reason)
	}
}

// Methodology section 3.6: the ranks differ in one place, and the sparse bundle
// is the one off the line, as the author sees it.
func TestRelationOfTheAuthor(t *testing.T) {
	p := prints(t)
	for _, x := range []struct{ place, write, seconds string }{
		{"internal", "7.69 GB/s", "5.57 s"}, {"bundle", "7.35 GB/s", "9.67 s"}, {"usb4", "3.61 GB/s", "5.84 s"},
		{"tb3", "2.26 GB/s", "10.49 s"}, {"raw", "1.35 GB/s", "16.87 s"},
	} {
		w, s := pub("write", x.write, "place", x.place), pub("stream_time", x.seconds, "place", x.place)
		w.Value, s.Value = figure(t, x.write, "B/s"), figure(t, x.seconds, "s")
		p.Published = append(p.Published, w, s)
	}
	p.Inputs, p.Protocol = threads(t).Inputs, threads(t).Protocol
	rel := plan.Relation{Name: "r", X: op("write"), Y: op("stream"),
		Over: []plan.Selector{sel("place", "internal"), sel("place", "bundle"), sel("place", "usb4"), sel("place", "tb3"), sel("place", "raw")}}
	got := judge{s: &runData{p: p}, est: aggregate, author: true}.relation(rel)
	require.Len(t, got.Points, 5)
	for i, pt := range got.Points {
		assert.Equal(t, i+1, pt.RankX)
		assert.Equal(t, []int{1, 3, 2, 4, 5}[i], pt.RankY)
		assert.Equal(t, i == 1, pt.Outlier, pt.Label)
	}
	assert.InDelta(t, 2.786, got.Points[0].Y/1e9, 0.0005)
	assert.InDelta(t, 0.9, got.Spearman, 1e-12)
	assert.Empty(t, got.Reason)
}

// The rate that the author's time stands for is that of his file, not of the one
// that a scaled run reads.
func TestDerivedRateOfAScaledRun(t *testing.T) {
	p := planOf(t, scaling+`
[[published]]
where = { threads = 4 }
stream_time = "0.5 s"
`)
	rate := op("stream", "threads", "4")
	full := (&runData{p: p}).publishedValue(rate)
	require.InDelta(t, 2e9, full.low, 1)
	small, _, err := p.Apply(plan.Overrides{Scale: 0.001})
	require.NoError(t, err)
	require.Less(t, small.Inputs[0].Size, p.Inputs[0].Size)
	assert.Equal(t, full, (&runData{p: small}).publishedValue(rate))
	small.Inputs[0].PublishedSize = 0 // as older runs have it
	assert.NotEmpty(t, (&runData{p: small}).publishedValue(rate).missing)
}

// Cases that were measured in the run folder for want of their disk: one departure, of these cases alone.
func TestAPlaceThatIsHereIsOneDepartureAndNotComparable(t *testing.T) {
	at := func(id, place string) *caseData {
		return &caseData{c: &result.Case{ID: id}, plan: plan.Case{Settings: plan.Settings{TargetSettings: plan.TargetSettings{Place: place}}}}
	}
	s := &runData{p: &plan.Plan{Changes: []plan.Change{{Kind: "place", Text: "elsewhere"}}}, r: &result.Result{},
		cases: []*caseData{at("a", plan.HereName("usb4")), at("b", "internal"), at("c", plan.HereName("tb3"))}}
	list := []result.Departure(s.departures())
	assert.Equal(t, []result.Departure{{Kind: "place", Text: "elsewhere", Cases: []string{"a", "c"}}}, list)
	s.r.Departures = list
	assert.Equal(t, []bool{false, true, false}, []bool{s.isComparable("a"), s.isComparable("b"), s.isComparable("c")})
}
