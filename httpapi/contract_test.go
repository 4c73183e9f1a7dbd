package httpapi_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

//go:embed openapi.json
var contractText []byte

type object = map[string]any

var contract = sync.OnceValue(func() object {
	var doc object
	if err := json.Unmarshal(contractText, &doc); err != nil {
		panic(err)
	}
	return doc
})

func at(v any, path ...string) any {
	for _, step := range path {
		m, _ := v.(object)
		v = m[step]
	}
	return v
}

// deref follows a $ref.
func deref(v any) object {
	m, _ := v.(object)
	if ref, ok := m["$ref"].(string); ok {
		return deref(at(contract(), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
	}
	return m
}

var braces = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// operation finds what the contract says of a request; nil where it says nothing.
func operation(method, path string) (template string, op object) {
	path, _, _ = strings.Cut(path, "?")
	if method == http.MethodHead {
		method = http.MethodGet
	}
	paths, _ := contract()["paths"].(object)
	for template := range paths {
		if regexp.MustCompile("^" + braces.ReplaceAllString(regexp.QuoteMeta(template), "[^/]+") + "$").MatchString(path) {
			op, _ := at(paths, template, strings.ToLower(method)).(object)
			return template, op
		}
	}
	return "", nil
}

// checkContract fails the test when an answer is not what openapi.json says:
// an operation or a status it does not have, a body of another media type or
// shape, a header it promises that is missing.
func checkContract(t *testing.T, method, path string, got response) {
	t.Helper()
	template, op := operation(method, path)
	if op == nil {
		if got.status != 404 && got.status != 405 && got.status != 401 && got.status != 403 {
			t.Errorf("%s %s is answered %d and is not in openapi.json", method, path, got.status)
		}
		return
	}
	said := deref(at(op, "responses", fmt.Sprint(got.status)))
	if said == nil {
		t.Errorf("%s %s: openapi.json has no %d", method, template, got.status)
		return
	}
	headers, _ := said["headers"].(object)
	for name := range headers {
		if got.header.Get(name) == "" {
			t.Errorf("%s %s: %d lacks the header %s", method, template, got.status, name)
		}
	}
	media, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	content, _ := said["content"].(object)
	if len(content) == 0 {
		if got.body != "" {
			t.Errorf("%s %s: %d has a body: %s", method, template, got.status, got.body)
		}
		return
	}
	if content[media] == nil {
		t.Errorf("%s %s: %d comes as %q", method, template, got.status, media)
		return
	}
	if strings.HasSuffix(media, "json") && method != http.MethodHead {
		var body any
		if err := json.Unmarshal([]byte(got.body), &body); err != nil {
			t.Errorf("%s %s: %v", method, template, err)
			return
		}
		for _, fault := range mismatches("body", at(content, media, "schema"), body) {
			t.Errorf("%s %s: %d: %s\n%s", method, template, got.status, fault, got.body)
		}
	}
}

// mismatches compares a value with a schema, as far as openapi.json goes.
// Objects may not have members that the schema does not list.
func mismatches(where string, schema, v any) (faults []string) {
	s := deref(schema)
	if any, ok := s["anyOf"].([]any); ok {
		for _, one := range any {
			if len(mismatches(where, one, v)) == 0 {
				return nil
			}
		}
		return []string{where + " fits nothing of anyOf"}
	}
	if allowed, ok := s["enum"].([]any); ok && !slices.Contains(allowed, v) {
		faults = append(faults, fmt.Sprintf("%s is %v, not of %v", where, v, allowed))
	}
	if want, ok := s["const"]; ok && want != v {
		faults = append(faults, fmt.Sprintf("%s is %v, not %v", where, v, want))
	}
	switch s["type"] {
	case "object":
		return append(faults, objectMismatches(where, s, v)...)
	case "array":
		items, ok := v.([]any)
		if !ok {
			return append(faults, fmt.Sprintf("%s is %T, not an array", where, v))
		}
		for i, item := range items {
			faults = append(faults, mismatches(fmt.Sprintf("%s[%d]", where, i), s["items"], item)...)
		}
	case "string":
		if _, ok := v.(string); !ok {
			faults = append(faults, fmt.Sprintf("%s is %T, not a string", where, v))
		}
	case "integer":
		if n, ok := v.(float64); !ok || n != float64(int64(n)) {
			faults = append(faults, fmt.Sprintf("%s is %v, not an integer", where, v))
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			faults = append(faults, fmt.Sprintf("%s is %T, not a boolean", where, v))
		}
	}
	return append(faults, formatMismatch(where, s["format"], v)...)
}

func objectMismatches(where string, s object, v any) (faults []string) {
	members, ok := v.(object)
	if !ok {
		return []string{fmt.Sprintf("%s is %T, not an object", where, v)}
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := members[name.(string)]; !ok {
			faults = append(faults, where+" lacks "+name.(string))
		}
	}
	properties, listed := s["properties"].(object)
	for name, member := range members {
		property, known := properties[name]
		switch {
		case known:
			faults = append(faults, mismatches(where+"."+name, property, member)...)
		case listed:
			faults = append(faults, where+" has "+name+", which openapi.json does not")
		}
	}
	return faults
}

var formats = map[string]*regexp.Regexp{
	"uuid":      regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`),
	"date-time": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$`),
}

func formatMismatch(where string, format, v any) []string {
	name, _ := format.(string)
	text, _ := v.(string)
	if rule, ok := formats[name]; ok && !rule.MatchString(text) {
		return []string{fmt.Sprintf("%s is %q, not a %s", where, text, name)}
	}
	return nil
}

func TestEveryDocumentedOperationIsRouted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	paths, _ := contract()["paths"].(object)
	for template, item := range paths {
		for method := range item.(object) {
			if method == "parameters" {
				continue
			}
			path := strings.NewReplacer("{id}", "01890000-0000-7000-8000-00000000000a", "{code}", "not_found").Replace(template)
			got := w.send(request{do: strings.ToUpper(method) + " " + path, body: ""})
			if got.code == "method_not_allowed" || strings.Contains(got.body, "no such route") {
				t.Errorf("%s %s: %d %s", method, template, got.status, got.body)
			}
		}
	}
}

func TestTheContractIsServedAndRefersToNothingThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	if got := w.send(request{do: "GET /v1/openapi.json"}); got.body != string(contractText) {
		t.Error("what is served is not openapi.json")
	}
	var walk func(where string, v any)
	walk = func(where string, v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok && deref(v) == nil {
				t.Errorf("%s refers to %s", where, ref)
			}
			for name, member := range v {
				walk(where+"/"+name, member)
			}
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s/%d", where, i), item)
			}
		}
	}
	walk("", contract())
}
