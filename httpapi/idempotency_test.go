package httpapi_test

import (
	"errors"
	"strings"

	"github.com/onereply/onereply"
)

// step is one request of a case and what must come of it. In do and body, {c}
// and {d} stand for two conversations of alice's workspace, {e} for one of
// carol's, {t} and {m} for the first task and its message, {m2} for the second
// message, {a} for the answer's message.
type step struct {
	do     string // default: POST /v1/conversations/{c}/messages
	as     string
	key    []string // default: K
	header map[string]string
	body   string // default, of a message: {"text":"hello"}
	empty  bool   // there is no body
	wait   string // instead of a request: "started" (a call has begun), "ended", or "release" (the call goes on)

	want int
	code string
	task string // "new", "again" (the first task), default: not looked at
	is   string // the task's status in the answer
	has  string // text that the answer has
	not  string // text that the answer must not have
}

type idempotencyCase struct {
	rows  string // of the published test table for idempotent APIs
	name  string
	setup setup
	steps []step
	left  counts // tasks, messages, keys in the end
}

const (
	sendDefault = "POST /v1/conversations/{c}/messages"
	regenerate  = "POST /v1/messages/{m}/regenerate"
	hello       = `{"text":"hello"}`
)

var (
	noKey   = []string{} // the header is there with no line: it is not sent
	works   = setup{workers: 2}
	held    = setup{workers: 2, model: func(m *model) { m.hold = make(chan struct{}) }}
	failing = setup{workers: 2, model: func(m *model) {
		m.fail = onereply.RefusedPermanent("content_filtered", errors.New("no"))
	}}
	secret = `{"text":"the first text is a secret"}`
)

func key(lines ...string) []string { return lines }

func plain(name, value string) map[string]string { return map[string]string{name: value} }

var first = step{want: 202, task: "new", is: "queued"}

// refusedThenRight is a request that is refused and records nothing, and the
// right one with the same key.
func refusedThenRight(bad step) []step { return []step{bad, first} }

func sendCases() []idempotencyCase {
	return []idempotencyCase{
		{"1", "the first request is accepted", setup{}, []step{first}, counts{1, 1, 1}},
		{"2", "a replay while queued shows the task", setup{}, []step{first, {want: 200, task: "again", is: "queued"}}, counts{1, 1, 1}},
		{"2", "a replay while running shows the task", held, []step{
			{want: 202, task: "new"}, {wait: "started"}, {want: 200, task: "again", is: "running"}, {wait: "release"}, {wait: "ended"},
		}, counts{1, 2, 1}},
		{"3", "a replay after completion has the saved reply", works, []step{
			{want: 202, task: "new"}, {wait: "ended"}, {want: 200, task: "again", is: "completed", has: `"text":"one good answer"`},
			{want: 200, task: "again", has: `"outcome":"accepted"`},
		}, counts{1, 2, 1}},
		{"7", "another body after completion is refused and told nothing", works, []step{
			{body: secret, want: 202, task: "new"}, {wait: "ended"},
			{body: `{"text":"other"}`, want: 422, code: "idempotency_key_reused", not: "secret"},
		}, counts{1, 2, 1}},
		{"8", "another body while running is refused as reused, not as in conflict", held, []step{
			{want: 202, task: "new"}, {wait: "started"}, {body: `{"text":"other"}`, want: 422, code: "idempotency_key_reused"}, {wait: "release"}, {wait: "ended"},
		}, counts{1, 2, 1}},
		{"22", "a request without a key is refused", setup{}, []step{{key: noKey, want: 400, code: "idempotency_key_missing", has: `"/problems/idempotency_key_missing"`}}, counts{}},
		{"23", "an empty key is refused", setup{}, []step{{key: key(""), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"23", "an empty string as key is refused", setup{}, []step{{key: key(`""`), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"23", "a key of spaces is refused", setup{}, []step{{key: key("   "), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"24", "a key of 255 characters is taken", setup{}, []step{{key: key(strings.Repeat("k", 255)), want: 202, task: "new"}}, counts{1, 1, 1}},
		{"24", "a key of 256 characters is refused", setup{}, []step{{key: key(strings.Repeat("k", 256)), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"27", "a quoted key and the bare one are the same", setup{}, []step{{key: key(`"K"`), want: 202, task: "new"}, {key: key("K"), want: 200, task: "again"}}, counts{1, 1, 1}},
		{"28", "a key with a parameter is refused", setup{}, []step{{key: key(`"K";p=1`), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"28", "a list of keys is refused", setup{}, []step{{key: key(`"a", "b"`), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"28", "an unterminated key is refused", setup{}, []step{{key: key(`"K`), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"29", "two equal key lines are refused", setup{}, []step{{key: key("K", "K"), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"29", "two different key lines are refused", setup{}, []step{{key: key("K", "L"), want: 400, code: "idempotency_key_invalid"}}, counts{}},
		{"31", "keys that differ in case are two keys", setup{}, []step{{key: key("abc"), want: 202, task: "new"}, {key: key("ABC"), want: 202, task: "new"}}, counts{2, 2, 2}},
		{"45", "the same text with a fresh key is sent twice on purpose", setup{}, []step{first, {key: key("K2"), want: 202, task: "new"}}, counts{2, 2, 2}},
		{"57", "document versions that a request names stay those", setup{}, []step{
			{body: `{"text":"hello","documents":[{"id":"doc","version":7}]}`, want: 202, task: "new"},
			{body: `{"text":"hello","documents":[{"id":"doc","version":7}]}`, want: 200, task: "again", has: `"documents":[{"id":"doc","version":7}]`},
			{body: `{"text":"hello","documents":[{"id":"doc","version":8}]}`, want: 422, code: "idempotency_key_reused"},
		}, counts{1, 1, 1}},
	}
}

func bodyCases() []idempotencyCase {
	same := func(rows, name, a, b string) idempotencyCase {
		return idempotencyCase{rows, name, setup{}, []step{{body: a, want: 202, task: "new"}, {body: b, want: 200, task: "again"}}, counts{1, 1, 1}}
	}
	other := func(rows, name, a, b string) idempotencyCase {
		return idempotencyCase{rows, name, setup{}, []step{{body: a, want: 202, task: "new"}, {body: b, want: 422, code: "idempotency_key_reused"}}, counts{1, 1, 1}}
	}
	bad := func(rows, name, body, code string) idempotencyCase {
		return idempotencyCase{rows, name, setup{}, refusedThenRight(step{body: body, want: 400, code: code}), counts{1, 1, 1}}
	}
	docs := func(version string) string {
		return `{"text":"hello","documents":[{"id":"a","version":` + version + `}]}`
	}
	return []idempotencyCase{
		same("9", "the order of members and white space do not matter", docs("1"), " {\n\"documents\" : [ { \"version\":1, \"id\":\"a\" } ],\t\"text\":\"hello\" }\r\n"),
		same("10", "an escape and the letter it stands for are the same", `{"text":"A/\u00e9"}`, `{"text":"\u0041\/é"}`),
		same("11", "1 and 1.0 are the same number", docs("1"), docs("1.0")),
		same("11", "1 and 1e0 are the same number", docs("1"), docs("1e0")),
		bad("12", "a number outside the safe range is refused", docs("9007199254740992"), "invalid_json"),
		bad("12", "its neighbour, which a double cannot hold, too", docs("9007199254740993"), "invalid_json"),
		bad("12", "a number that is no double too", docs("1e400"), "invalid_json"),
		other("13", "composed and decomposed letters differ", `{"text":"é"}`, `{"text":"e\u0301"}`),
		bad("14", "null is refused", `{"text":"hello","documents":null}`, "invalid_json"),
		other("14", "left out and empty differ", hello, `{"text":"hello","documents":[]}`),
		other("14", "left out and an empty object differ", hello, `{"text":"hello","policy":{}}`),
		other("14", "left out and the default's own value differ", hello, `{"text":"hello","policy":{"on_unknown_outcome":"retry"}}`),
		other("15", "the order of a list matters", `{"text":"hello","documents":[{"id":"a","version":1},{"id":"b","version":1}]}`, `{"text":"hello","documents":[{"id":"b","version":1},{"id":"a","version":1}]}`),
		bad("16", "a duplicate member is refused", `{"text":"a","text":"hello"}`, "invalid_json"),
		bad("17", "a member in the wrong case is refused", `{"Text":"hello"}`, "invalid_json"),
		bad("18", "an unknown member is refused", `{"text":"hello","more":1}`, "invalid_json"),
		bad("19", "a second value is refused", `{"text":"hello"}{}`, "invalid_json"),
		bad("19", "trailing bytes are refused", `{"text":"hello"}x`, "invalid_json"),
		bad("20", "malformed JSON is refused and leaves the key unused", `{"text":"hello"`, "invalid_json"),
		{"20", "an empty body is refused and leaves the key unused", setup{}, refusedThenRight(step{empty: true, want: 400, code: "invalid_json"}), counts{1, 1, 1}},
		bad("20", "a body that is no object is refused", `["hello"]`, "invalid_json"),
		bad("21", "invalid UTF-8 is refused", "{\"text\":\"a\xffb\"}", "invalid_json"),
		bad("21", "a lone surrogate is refused", `{"text":"a\ud800b"}`, "invalid_json"),
		bad("21", "deep nesting is refused", `{"text":`+strings.Repeat("[", 3000)+strings.Repeat("]", 3000)+`}`, "invalid_json"),
		bad("46", "a missing text is refused and leaves the key unused", `{}`, "invalid_request"),
		bad("46", "an empty text is refused", `{"text":""}`, "invalid_request"),
		bad("46", "a text of white space is refused", `{"text":" \n\t "}`, "invalid_request"),
		bad("46", "a NUL in a text is refused", `{"text":"a\u0000b"}`, "invalid_request"),
		bad("46", "a text of another type is refused", `{"text":1}`, "invalid_json"),
		bad("46", "an unknown policy is refused", `{"text":"hello","policy":{"on_unknown_outcome":"maybe"}}`, "invalid_request"),
		bad("46", "an empty policy value is refused", `{"text":"hello","policy":{"on_unknown_outcome":""}}`, "invalid_request"),
		bad("46", "a deadline that is no time is refused", `{"text":"hello","policy":{"deadline":"soon"}}`, "invalid_json"),
		bad("46", "a deadline of the year one is refused", `{"text":"hello","policy":{"deadline":"0001-01-01T00:00:00Z"}}`, "invalid_request"),
		bad("46", "a document without a version is refused", `{"text":"hello","documents":[{"id":"a"}]}`, "invalid_request"),
		bad("46", "a document version of zero is refused", docs("0"), "invalid_request"),
		bad("46", "a document version between two is refused", docs("1.5"), "invalid_json"),
	}
}

func outsideCases() []idempotencyCase {
	media := func(rows, name string, status int, header map[string]string) idempotencyCase {
		s := step{header: header, want: status}
		if status == 415 {
			s.code = "unsupported_media_type"
			return idempotencyCase{rows, name, setup{}, refusedThenRight(s), counts{1, 1, 1}}
		}
		return idempotencyCase{rows, name, setup{}, []step{s}, counts{1, 1, 1}}
	}
	atLimit := `{"text":"` + strings.Repeat("x", 4096) + `"}`
	above := `{"text":"` + strings.Repeat("x", 4097) + `"}`
	escaped := `{"text":"` + strings.Repeat(`\u0078`, 4096) + `"}`
	padded := hello + strings.Repeat(" ", 6*4096+16<<10)
	return []idempotencyCase{
		{"52", "a text at the limit is taken", setup{}, []step{{body: atLimit, want: 202, task: "new"}}, counts{1, 1, 1}},
		{"52", "a text at the limit is taken however it is escaped", setup{}, []step{{body: escaped, want: 202, task: "new"}}, counts{1, 1, 1}},
		{"52, 46", "a text above the limit is refused and leaves the key unused", setup{}, refusedThenRight(step{body: above, want: 413, code: "too_large"}), counts{1, 1, 1}},
		{"52, 46", "a body above the limit is refused and leaves the key unused", setup{}, refusedThenRight(step{body: padded, want: 413, code: "too_large"}), counts{1, 1, 1}},
		media("53, 46", "text is refused", 415, plain("Content-Type", "text/plain")),
		media("53, 46", "no content type is refused", 415, plain("Content-Type", "")),
		media("53", "a form is refused", 415, plain("Content-Type", "application/x-www-form-urlencoded")),
		media("53", "another JSON type is refused", 415, plain("Content-Type", "application/merge-patch+json")),
		media("53", "another charset is refused", 415, plain("Content-Type", "application/json; charset=latin1")),
		media("53", "a content type that cannot be read is refused", 415, plain("Content-Type", "application/json; charset")),
		media("53", "a charset of UTF-8 is taken", 202, plain("Content-Type", "application/json; charset=utf-8")),
		media("53", "the content type's case does not matter", 202, plain("Content-Type", `Application/JSON;Charset="UTF-8"`)),
		media("54", "a gzip body is refused", 415, plain("Content-Encoding", "gzip")),
		media("54", "the identity coding is none", 202, plain("Content-Encoding", "identity")),
		{"56", "reads and deletes ignore a key", setup{}, []step{
			first,
			{do: "GET /v1/conversations/{c}", key: key("K"), want: 200},
			{do: "GET /v1/tasks/{t}", key: key("K", "bad,"), want: 200},
			{do: "DELETE /v1/conversations/{d}", key: key("K"), want: 204},
			{do: "DELETE /v1/conversations/{d}", key: key("K"), want: 404, code: "not_found"},
			{want: 200, task: "again"},
		}, counts{1, 1, 1}},
	}
}

func scopeCases() []idempotencyCase {
	return []idempotencyCase{
		{"32", "another workspace's same key is its own", setup{}, []step{
			{body: secret, want: 202, task: "new"},
			{do: "POST /v1/conversations/{e}/messages", as: "carol", want: 202, task: "new", not: "secret"},
			{do: "POST /v1/conversations/{c}/messages", as: "carol", body: secret, want: 404, code: "not_found", not: "secret"},
		}, counts{2, 2, 2}},
		{"33", "two people of one workspace share its keys", setup{}, []step{first, {as: "bob", want: 200, task: "again"}}, counts{1, 1, 1}},
		{"34", "the same key on another operation is another key", works, []step{
			{want: 202, task: "new"}, {wait: "ended"},
			{do: regenerate, body: `{}`, want: 202, task: "new"},
			{do: "POST /v1/conversations", body: `{}`, want: 201},
			{want: 200, task: "again"},
		}, counts{2, 3, 3}},
		{"35", "the same key on another conversation is refused", setup{}, []step{
			first, {do: "POST /v1/conversations/{d}/messages", want: 422, code: "idempotency_key_reused"},
		}, counts{1, 1, 1}},
		{"36", "bad credentials with a known key learn nothing", setup{}, []step{
			first, {as: "mallory", want: 401, code: "unauthorized"}, {as: "mallory", key: key("unknown"), want: 401, code: "unauthorized"},
		}, counts{1, 1, 1}},
		{"37", "a deleted conversation is not found, for a known key too", works, []step{
			{want: 202, task: "new"}, {wait: "ended"}, {do: "DELETE /v1/conversations/{c}", key: noKey, want: 204},
			{want: 404, code: "not_found", not: "answer"},
		}, counts{1, 0, 1}},
		{"37", "a conversation that never was is not found and leaves the key unused", setup{}, []step{
			{do: "POST /v1/conversations/01890000-0000-7000-8000-00000000000a/messages", want: 404, code: "not_found"}, first,
		}, counts{1, 1, 1}},
	}
}

func endCases() []idempotencyCase {
	return []idempotencyCase{
		{"42", "a replay after failure shows the failure and works no more", failing, []step{
			{want: 202, task: "new"}, {wait: "ended"}, {want: 200, task: "again", is: "failed", has: `"content_filtered"`},
		}, counts{1, 1, 1}},
		{"43", "a replay after a cancel shows the cancelled task", setup{}, []step{
			first, {do: "POST /v1/tasks/{t}/cancel", key: noKey, body: `{}`, want: 200, has: `"status":"cancelled"`},
			{want: 200, task: "again", is: "cancelled"},
			{do: "POST /v1/tasks/{t}/cancel", key: noKey, want: 200, header: plain("Content-Type", ""), body: "", has: `"status":"cancelled"`},
		}, counts{1, 1, 1}},
		{"44", "another answer to the same question is a new task, once per key", works, []step{
			{want: 202, task: "new"}, {wait: "ended"},
			{do: regenerate, key: key("R"), body: `{}`, want: 202, task: "new"},
			{do: regenerate, key: key("R"), body: ` { } `, want: 200},
			{do: regenerate, key: key("R2"), body: `{}`, want: 202, task: "new"},
			{do: regenerate, key: noKey, body: `{}`, want: 400, code: "idempotency_key_missing"},
			{do: regenerate, key: key("R3"), body: ``, want: 400, code: "invalid_json"},
			{do: regenerate, key: key("R3"), body: `{"text":"x"}`, want: 400, code: "invalid_json"},
			{do: regenerate, key: key("R3"), as: "carol", body: `{}`, want: 404, code: "not_found"},
			{do: "POST /v1/messages/{a}/regenerate", key: key("R3"), body: `{}`, want: 400, code: "invalid_request"},
			{do: "POST /v1/messages/{t}/regenerate", key: key("R3"), body: `{}`, want: 404, code: "not_found"},
			{want: 200, task: "again"},
		}, counts{3, 4, 3}},
		{"44", "a key of regenerate belongs to its message", works, []step{
			{want: 202, task: "new"}, {wait: "ended"},
			{do: regenerate, key: key("R"), body: `{}`, want: 202, task: "new"},
			{key: key("K2"), want: 202, task: "new"},
			{do: "POST /v1/messages/{m2}/regenerate", key: key("R"), body: `{}`, want: 422, code: "idempotency_key_reused"},
		}, counts{3, 5, 3}},
		{"1, 2", "a conversation's key is optional and honoured", setup{}, []step{
			{do: "POST /v1/conversations", key: key("C"), body: `{"title":"t"}`, want: 201, has: `"title":"t"`},
			{do: "POST /v1/conversations", key: key("C"), body: `{ "title" : "t" }`, want: 200, has: `"title":"t"`},
			{do: "POST /v1/conversations", key: key("C"), body: `{}`, want: 422, code: "idempotency_key_reused"},
			{do: "POST /v1/conversations", key: key("C,"), body: `{}`, want: 400, code: "idempotency_key_invalid"},
			{do: "POST /v1/conversations", key: noKey, body: `{"title":"t"}`, want: 201},
			{do: "POST /v1/conversations", key: noKey, body: `{"title":"a\nb"}`, want: 400, code: "invalid_request"},
			{do: "POST /v1/conversations", key: noKey, body: `{"title":null}`, want: 400, code: "invalid_json"},
		}, counts{0, 0, 1}},
		{"42", "a resume adds one allowance per key", failing, []step{
			{want: 202, task: "new"}, {wait: "ended"},
			{do: "POST /v1/tasks/{t}/resume", key: noKey, body: `{}`, want: 400, code: "idempotency_key_missing"},
			{do: "POST /v1/tasks/{t}/resume", key: key("R"), body: `{"deadline":1}`, want: 400, code: "invalid_json"},
			{do: "POST /v1/tasks/{t}/resume", key: key("R"), as: "carol", body: `{}`, want: 404, code: "not_found"},
			{do: "POST /v1/tasks/{t}/resume", key: key("R"), body: `{}`, want: 202, has: `"attempts":{"used":1,"max":4}`},
			{wait: "ended"},
			{do: "POST /v1/tasks/{t}/resume", key: key("R"), body: `{}`, want: 200, has: `"max":4}`},
			{do: "POST /v1/tasks/{t}/resume", key: key("R"), body: `{"deadline":"2999-01-01T00:00:00Z"}`, want: 422, code: "idempotency_key_reused"},
			{want: 200, task: "again", is: "failed"},
		}, counts{1, 1, 2}},
		{"42", "only a failed task can be resumed, and a refusal leaves the key unused", held, []step{
			{want: 202, task: "new"}, {wait: "started"},
			{do: "POST /v1/tasks/{t}/resume", key: key("R"), body: `{}`, want: 409, code: "task_not_failed", has: `"task_status":"running"`},
			{wait: "release"}, {wait: "ended"},
			{do: "POST /v1/tasks/{t}/resume", key: key("R"), body: `{}`, want: 409, code: "task_ended", has: `"task_status":"completed"`},
			{do: "POST /v1/tasks/{t}/cancel", key: noKey, body: `{}`, want: 409, code: "task_ended", has: `"task_status":"completed"`},
		}, counts{1, 2, 1}},
	}
}
