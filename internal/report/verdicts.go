package report

import (
	"strings"

	"dmgbench/internal/result"
)

// ClaimView is one judged sentence as printed. Here is what the run measured,
// where the claim was not judged by it.
type ClaimView struct {
	Verdict, Word, Says, By, Scope, Reason, Here string
	Robust                                       string // "holds in 46 of 48 analyses"
	Evidence                                     []string
}

// verdicts are the words of each verdict, of one claim and of several, in the
// order in which they are counted.
var verdicts = []struct{ verdict, one, several string }{
	{result.Holds, "holds", "hold"},
	{result.DoesNotHold, "does not hold", "do not hold"},
	{result.CannotTell, "undecided", "undecided"},
	{result.NotMeasured, "not judged", "not judged"},
}

// verdictOf is the class and the word of a verdict. An unknown verdict counts
// as undecided, and is shown.
func verdictOf(verdict string) (class, word string) {
	for _, v := range verdicts {
		if v.verdict == verdict {
			return verdict, v.one
		}
	}
	return result.CannotTell, Plain(FirstOf(verdict, "no verdict"), 40)
}

// ClaimGroup is the claims that share a verdict and its reason: the reason is
// printed once, before the list. A claim with a reason of its own is a group.
type ClaimGroup struct {
	Verdict, Word string
	Reason        string // shared by all; "" where the claim is alone and keeps its own
	Claims        []ClaimView
}

// claimGroups words the claims, and groups them in the order in which the plan
// has the first of each.
//
// Claims with evidence of their own keep it.
func claimGroups(claims []result.Claim) []ClaimGroup {
	type key struct{ verdict, word, reason string }
	at := map[key]int{}
	var out []ClaimGroup
	for _, c := range claims {
		cv := newClaimView(c)
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
			g.Reason = Count(len(g.Claims), "claim") + ": " + g.Claims[0].Reason
			for k := range g.Claims {
				g.Claims[k].Reason = ""
			}
		}
	}
	return out
}

func newClaimView(c result.Claim) ClaimView {
	verdict, word := verdictOf(c.Verdict)
	cv := ClaimView{Verdict: verdict, Word: word, Says: Plain(c.Says, 400), By: claimant(c.By),
		Scope: scopeText(c.Scope), Reason: Plain(c.Reason, 800), Here: Plain(c.Here, 800),
		Evidence: plainList(c.Evidence, 600)}
	if c.Robustness != nil {
		cv.Robust = Plain(c.Robustness.Text, 400)
	}
	return cv
}

// claimant is who made a claim, in words.
func claimant(by string) string { return named("claimant", by, 40) }

// scopeText is what a claim is about, in words.
func scopeText(scope string) string { return named("scope", scope, 40) }

// reasons are why a claim was judged so, without the evidence.
func (c ClaimView) reasons() []string {
	return NonEmpty([]string{c.Reason, c.Robust, TextIf(c.Here != "", "Here: "+c.Here)})
}

// ClaimItems are the verdicts as a list, with or without the evidence. Claims
// that share a reason are a list below it.
func ClaimItems(groups []ClaimGroup, evidence bool) []Item {
	var out []Item
	for _, g := range groups {
		var claims []Item
		for _, c := range g.Claims {
			item := Item{Text: c.Says, Note: joinFacts(c.By, c.Scope), Items: Items(c.reasons()...)}
			if evidence {
				item.Items = append(item.Items, Items(c.Evidence...)...)
			}
			claims = append(claims, item)
		}
		group := claims[0]
		if g.Reason != "" {
			group = Item{Text: g.Reason, Items: claims}
		}
		group.Label, group.Class = g.Word, g.Verdict
		out = append(out, group)
	}
	return out
}

// CountVerdicts is "3 hold, 1 does not hold, 2 not judged".
func CountVerdicts(groups []ClaimGroup) string {
	counts := map[string]int{}
	for _, g := range groups {
		for _, c := range g.Claims {
			counts[c.Verdict]++
		}
	}
	var parts []string
	for _, v := range verdicts {
		switch n := counts[v.verdict]; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+v.one)
		default:
			parts = append(parts, Grouped(n)+" "+v.several)
		}
	}
	return strings.Join(parts, ", ")
}
