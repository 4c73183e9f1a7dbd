package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// ordinals are the "N:" and "N+:" of markers, which a check of all of them leaves out.
var ordinals = regexp.MustCompile(`\[\[\s*\d+\+?:`)

// rule is one entry of a script file.
type rule struct {
	Match   string `json:"match"`   // a part of the prompt; empty: every prompt
	Markers string `json:"markers"` // as in a prompt
}

// ParseScript reads a script file for [Options].Script: a JSON list of rules,
// each with a part of the prompt to match, and markers as [ParsePlan] knows them.
// The first rule that matches a prompt applies, as if its markers stood before
// it; a prompt that none matches is left to its own markers.
//
//	[
//	  {"match": "weather", "markers": "[[1: status 529]] [[2+: say sunny]]"},
//	  {"markers": "[[delay 200ms]]"}
//	]
func ParseScript(raw []byte) (func(Request) (Plan, bool), error) {
	var rules []rule
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&rules); err != nil {
		return nil, fmt.Errorf("want a JSON list of rules: %w", err)
	}
	for i, r := range rules {
		if _, err := ParsePlan(ordinals.ReplaceAllString(r.Markers, "[["), 1); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if rest := strings.TrimSpace(marker.ReplaceAllString(r.Markers, "")); rest != "" {
			return nil, fmt.Errorf("rule %d: %q is no marker", i+1, rest)
		}
	}
	return func(r Request) (Plan, bool) {
		for _, rule := range rules {
			if strings.Contains(r.Prompt, rule.Match) {
				plan, err := ParsePlan(rule.Markers+" "+r.Prompt, r.Attempt)
				return plan, err == nil // a prompt's own bad marker is reported without the script
			}
		}
		return Plan{}, false
	}, nil
}
