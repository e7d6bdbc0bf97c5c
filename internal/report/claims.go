package report

import (
	"slices"
	"strings"

	"dmgbench/internal/result"
)

// ClaimView is one judged sentence as printed.
type ClaimView struct {
	Verdict, Word, Says, By, Scope, Reason, Here string
	Robust                                       string // "holds in 46 of 48 analyses"
	Evidence                                     []string
}

var verdictWords = map[string]string{
	result.Holds: "holds", result.DoesNotHold: "does not hold", result.CannotTell: "undecided", result.NotMeasured: "not judged",
}

// verdictOrder is the order in which verdicts are counted.
var verdictOrder = []string{result.Holds, result.DoesNotHold, result.CannotTell, result.NotMeasured}

// verdictOf is the class and the word of a verdict. One that nobody knows can decide nothing, but is shown.
func verdictOf(verdict string) (class, word string) {
	if word, ok := verdictWords[verdict]; ok {
		return verdict, word
	}
	return result.CannotTell, Plain(FirstOf(verdict, "no verdict"), 40)
}

// ClaimGroup is the claims that share a verdict and its reason: the reason is said
// once, before the list. A claim with a reason of its own is a group by itself.
type ClaimGroup struct {
	Verdict, Word string
	Reason        string   // shared by all; "" where the claim is alone and keeps its own
	Common        []string // evidence that all claims by one claimant name
	Claims        []ClaimView
}

// claimGroups words the claims, and groups them in the order in which the plan has the first of each.
func claimGroups(claims []result.Claim) []ClaimGroup {
	type key struct{ verdict, word, reason string }
	at := map[key]int{}
	var out []ClaimGroup
	for _, c := range claims {
		cv := wordClaim(c)
		k := key{cv.Verdict, cv.Word, c.Reason}
		i, ok := at[k]
		if !ok || cv.Reason == "" {
			i = len(out)
			at[k] = i
			out = append(out, ClaimGroup{Verdict: cv.Verdict, Word: cv.Word})
		}
		out[i].Claims = append(out[i].Claims, cv)
	}
	for i := range out {
		if g := &out[i]; len(g.Claims) > 1 {
			g.share()
		}
	}
	return out
}

// share takes out of the claims what all of them say. What a claim shows here, and
// the one before it showed as well, is not written out again.
func (g *ClaimGroup) share() {
	g.Reason = Count(len(g.Claims), "claim") + ": " + g.Claims[0].Reason
	for _, by := range []string{claimant("author"), claimant("us")} {
		g.Common = append(g.Common, takeCommon(g.Claims, by)...)
	}
	before := ""
	for i := range g.Claims {
		c := &g.Claims[i]
		c.Reason = ""
		if c.Here != "" && c.Here == before {
			c.Here = "the same"
			continue
		}
		before = c.Here
	}
}

// takeCommon moves out the evidence that each of several claims by one claimant names.
func takeCommon(claims []ClaimView, by string) (common []string) {
	var of []*ClaimView
	for i := range claims {
		if claims[i].By == by {
			of = append(of, &claims[i])
		}
	}
	if len(of) < 2 {
		return nil
	}
	for _, e := range slices.Clone(of[0].Evidence) {
		if slices.ContainsFunc(of, func(c *ClaimView) bool { return !slices.Contains(c.Evidence, e) }) {
			continue
		}
		common = append(common, by+", each of "+Grouped(int64(len(of)))+": "+e)
		for _, c := range of {
			c.Evidence = slices.DeleteFunc(c.Evidence, func(x string) bool { return x == e })
		}
	}
	return common
}

func wordClaim(c result.Claim) ClaimView {
	verdict, word := verdictOf(c.Verdict)
	cv := ClaimView{Verdict: verdict, Word: word, Says: Plain(c.Says, 400), By: claimant(c.By), Scope: scopeText(c.Scope),
		Reason: Plain(c.Reason, 800), Here: Plain(c.Here, 800)}
	if c.Robustness != nil {
		cv.Robust = Plain(c.Robustness.Text, 400)
	}
	for _, e := range c.Evidence {
		cv.Evidence = append(cv.Evidence, Plain(e, 600))
	}
	return cv
}

func claimant(by string) string {
	switch by {
	case "author":
		return "the author’s claim"
	case "us":
		return "our claim"
	}
	return Plain(by, 40)
}

func scopeText(scope string) string {
	switch scope {
	case "apple":
		return "about Apple’s tools"
	case "any":
		return "about any engine"
	}
	return Plain(scope, 40)
}

// CountVerdicts is "3 hold, 1 does not hold, 2 not measured".
func CountVerdicts(groups []ClaimGroup) string {
	var parts []string
	for _, verdict := range verdictOrder {
		n := 0
		for _, g := range groups {
			if g.Verdict == verdict {
				n += len(g.Claims)
			}
		}
		word := verdictWords[verdict]
		if n != 1 {
			word = map[string]string{result.Holds: "hold", result.DoesNotHold: "do not hold"}[verdict]
			if word == "" {
				word = verdictWords[verdict]
			}
		}
		if n > 0 {
			parts = append(parts, Grouped(int64(n))+" "+word)
		}
	}
	return strings.Join(parts, ", ")
}
