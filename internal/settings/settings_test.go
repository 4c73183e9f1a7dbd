package settings

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func variables(pairs ...string) Lookup {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, found := m[name]
		return v, found
	}
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	got, err := ParseServe(nil, variables())
	if err != nil {
		t.Fatal(err)
	}
	got.renewText, got.secrets = "", secrets{}
	want := Serve{
		Listen: "127.0.0.1:8080", Database: Database{File: "onereply.db"},
		Migrate: true, Queue: "database",
		Model:     Model{Provider: Demo},
		DemoDelay: 30 * time.Millisecond, OpenAIBackground: true, AnthropicMaxTokens: 8192, ModelGate: true,
		Workers: 32, Lease: 30 * time.Second, Renew: 10 * time.Second, Sweep: 5 * time.Second,
		MaxAttempts: 5, MaxCalls: 3, MaxElapsed: 15 * time.Minute,
		BackoffBase: time.Second, BackoffMax: time.Minute, CallTimeout: 5 * time.Minute, OnUnknownOutcome: "retry",
		KeyRetention: 168 * time.Hour, TaskRetention: 720 * time.Hour,
		MaxMessage: 64 << 10, Drain: 20 * time.Second,
		Roles:    Roles{API: true, Dispatch: true, Work: true, Sweep: true},
		LogLevel: slog.LevelInfo, LogFormat: "text",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Serve{}, secrets{})); diff != "" {
		t.Errorf("defaults differ (-want +got):\n%s", diff)
	}
}

func TestWhereAValueComesFrom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		env  []string
		want time.Duration
	}{
		{"nothing given takes the default", nil, nil, 30 * time.Second},
		{"a variable replaces the default", nil, []string{"ONEREPLY_LEASE", "40s"}, 40 * time.Second},
		{"a flag wins over a variable", []string{"--lease", "50s"}, []string{"ONEREPLY_LEASE", "40s"}, 50 * time.Second},
		{"a flag hides a wrong variable", []string{"--lease=50s"}, []string{"ONEREPLY_LEASE", "soon"}, 50 * time.Second},
		{"an empty variable is unset", nil, []string{"ONEREPLY_LEASE", ""}, 30 * time.Second},
		{"the last of two flags wins", []string{"--lease", "50s", "-lease", "60s"}, nil, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseServe(c.args, variables(c.env...))
			if err != nil {
				t.Fatal(err)
			}
			if got.Lease != c.want {
				t.Errorf("lease is %v, want %v", got.Lease, c.want)
			}
			if got.Renew != c.want/3 {
				t.Errorf("renew is %v, want a third of the lease", got.Renew)
			}
		})
	}
}

func TestEveryWrongValueIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag, value, want string
	}{
		{"listen", "8080", "--listen \"8080\": must be HOST:PORT"},
		{"listen", "127.0.0.1:http", "port from 0 to 65535"},
		{"listen", "127.0.0.1:70000", "port from 0 to 65535"},
		{"listen", ":8080", "API keys"},
		{"listen", "0.0.0.0:8080", "API keys"},
		{"listen", "192.168.1.7:8080", "API keys"},
		{"listen", "[::]:8080", "API keys"},
		{"listen", "example.org:8080", "API keys"},
		{"database", "onereply.db", "must begin with sqlite:"},
		{"database", "postgres:///x", "names no host"},
		{"database", "postgres://u:p%zz@h/x", "cannot be read as a URL"},
		{"database", "postgres://h/x?listen=maybe", "listen must be off"},
		{"migrate", "perhaps", "true or false"},
		{"database", "mysql:x", "no database this build knows"},
		{"database", "sqlite:", "names no file"},
		{"database", "sqlite::memory:", "file on disk"},
		{"queue", "sqs:https://example.org/q", "not supported yet"},
		{"model", "gpt", "must be demo, openai:MODEL"},
		{"model", "openai:gpt-5", "needs a key in OPENAI_API_KEY"},
		{"model", "anthropic:claude", "needs a key in ANTHROPIC_API_KEY"},
		{"model", "openai:", "names no model"},
		{"model", "anthropic:a b", "names no model"},
		{"anthropic-max-tokens", "0", "at least 1"},
		{"model-concurrency", "-1", "must not be negative"},
		{"model-tokens-per-minute", "-1", "must not be negative"},
		{"openai-background", "perhaps", "true or false"},
		{"model", "compatible:llama", "needs a model and a base URL"},
		{"model", "compatible:@http://127.0.0.1/v1", "needs a model and a base URL"},
		{"model", "compatible:m@http://u:p@127.0.0.1/v1", "ONEREPLY_MODEL_API_KEY"},
		{"demo-delay", "-1s", "must not be negative"},
		{"workers", "0", "must be from 1"},
		{"workers", "many", "not a whole number"},
		{"lease", "0s", "at least 100ms"},
		{"lease", "30", "not a duration"},
		{"renew", "11s", "at most a third"},
		{"renew", "0s", "at most a third"},
		{"sweep", "0s", "at least 1ms"},
		{"max-attempts", "0", "at least 1"},
		{"max-calls", "0", "at least 1"},
		{"max-elapsed", "0s", "at least 1ms"},
		{"backoff-base", "0s", "at least 1ms"},
		{"backoff-base", "2m", "--backoff-max 1m0s: must be at least --backoff-base"},
		{"call-timeout", "0s", "at least 1ms"},
		{"on-unknown-outcome", "maybe", "must be retry or stop"},
		{"key-retention", "10ms", "at least 1s"},
		{"key-retention", "800h", "--task-retention 720h0m0s: must be at least --key-retention"},
		{"max-message", "64kB", "not a size"},
		{"max-message", "0", "must be from 1"},
		{"max-message", "9223372036854775807MiB", "not a size"},
		{"drain", "-1s", "must not be negative"},
		{"roles", "api,worker", "\"worker\" is no role"},
		{"roles", "api,", "is no role"},
		{"log-level", "loud", "debug, info, warn or error"},
		{"log-format", "xml", "text or json"},
	} {
		t.Run(c.flag+" "+c.value, func(t *testing.T) {
			t.Parallel()
			_, err := ParseServe([]string{"--" + c.flag + "=" + c.value}, variables())
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("error is %v, want Faults", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "--") {
				t.Errorf("error %q does not begin with a flag and contain %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q is more than one line", err)
			}
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := ParseServe([]string{"--lease=soon", "--workers=x"}, variables("ONEREPLY_DRAIN", "later"))
	for _, want := range []string{"--lease", "--workers", "--drain (from ONEREPLY_DRAIN)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	_, err = ParseServe([]string{"--max-calls=0", "--max-attempts=0"}, variables())
	for _, want := range []string{"--max-calls", "--max-attempts"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// What is wrong is named, whether it could be read or not, and nothing else:
// not what was derived from a wrong value or is compared with one.
func TestTheFaultsAreThoseOfTheValuesGivenAndNoOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, env, want string
	}{
		{"--lease 0 --workers -1 --model nope --queue kafka", "", "model queue workers lease"},
		{"--lease 0s --workers -1 --model nope --queue kafka", "", "model queue workers lease"},
		{"--lease abc --workers -1", "", "lease workers"},
		{"--lease 0s", "", "lease"},
		{"--lease 0s --renew 1s", "", "lease"},
		{"--lease 0s --renew 0s", "", "lease renew"},
		{"--lease abc --renew later", "", "lease renew"},
		{"--workers 0", "soon", "lease workers"},
		{"--backoff-base -1s --backoff-max 1m", "", "backoff-base"},
		{"--backoff-base x --backoff-max 0s", "", "backoff-base backoff-max"},
		{"--key-retention 1000000h --task-retention 1h", "", "task-retention"},
		{"--key-retention 0s --task-retention 1h", "", "key-retention"},
		{"--listen nowhere --database x --log-format x --log-level x --max-message x --drain -1s --roles x --migrate x", "",
			"database migrate max-message roles log-level listen drain log-format"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			_, err := ParseServe(strings.Fields(c.args), variables("ONEREPLY_LEASE", c.env))
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("error is %v, want Faults", err)
			}
			var named []string
			for _, f := range faults {
				name, _, _ := strings.Cut(strings.TrimPrefix(f, "--"), " ")
				named = append(named, name)
			}
			if diff := cmp.Diff(strings.Fields(c.want), named); diff != "" {
				t.Errorf("%v names others (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestUsageErrorsWriteFlagsWithTwoDashes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--leese 3s", "flag provided but not defined: --leese"},
		{"-leese 3s", "flag provided but not defined: --leese"},
		{"--lease", "flag needs an argument: --lease"},
	} {
		if _, err := ParseServe(strings.Fields(c.args), variables()); err == nil || err.Error() != c.want {
			t.Errorf("%s: error is %v, want %s", c.args, err, c.want)
		}
	}
}

func TestWhatIsNoSettingIsAUsageError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--leese", "3s"}, {"extra"}, {"--lease"}} {
		var usage *UsageError
		if _, err := ParseServe(args, variables()); !errors.As(err, &usage) {
			t.Errorf("%v: error is %v, want a UsageError", args, err)
		}
	}
	if _, err := ParseServe([]string{"--help"}, variables()); !errors.Is(err, ErrHelp) {
		t.Errorf("--help gave %v", err)
	}
}

func TestHostedModelsTakeTheVariablesOfTheirSDKs(t *testing.T) {
	t.Parallel()
	keys := []string{"OPENAI_API_KEY", "ok", "ANTHROPIC_API_KEY", "ak"}
	bases := []string{"OPENAI_BASE_URL", "http://127.0.0.1:9/v1/", "ANTHROPIC_BASE_URL", "http://127.0.0.1:9"}
	for _, c := range []struct {
		flag      string
		variables []string
		want      Model
	}{
		{"openai:gpt-5", keys, Model{OpenAI, "gpt-5", "https://api.openai.com/v1", "ok"}},
		{"anthropic:claude-x", keys, Model{Anthropic, "claude-x", "https://api.anthropic.com", "ak"}},
		{"openai:gpt-5", bases, Model{OpenAI, "gpt-5", "http://127.0.0.1:9/v1", ""}},
		{"anthropic:claude-x", slices.Concat(keys, bases), Model{Anthropic, "claude-x", "http://127.0.0.1:9", "ak"}},
	} {
		got, err := ParseServe([]string{"--model", c.flag}, variables(c.variables...))
		if err != nil || got.Model != c.want || got.Model.String() != c.flag {
			t.Errorf("%s: %+v %q, %v", c.flag, got.Model, got.Model, err)
		}
	}
}

func TestACompatibleModelKeepsNameAndURLApart(t *testing.T) {
	t.Parallel()
	got, err := ParseServe([]string{"--model", "compatible:hf.co/a@b@https://host.example/v1/"}, variables("ONEREPLY_MODEL_API_KEY", "k"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Model.Name != "hf.co/a@b" || got.Model.BaseURL != "https://host.example/v1" || got.Model.APIKey != "k" {
		t.Errorf("model is %+v", got.Model)
	}
	if s := got.Model.String(); strings.Contains(s, "k\"") || s != "compatible:hf.co/a@b@https://host.example/v1" {
		t.Errorf("model prints as %q", s)
	}
}

func TestHelpNamesEveryFlagItsDefaultAndItsVariable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	Help(&b)
	for _, f := range Flags() {
		for _, want := range []string{f.Variable(), f.Usage, f.Default} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("help lacks %q of --%s", want, f.Name)
			}
		}
		if f.NoFlag == strings.Contains(b.String(), "--"+f.Name+" ") {
			t.Errorf("help of %s is wrong about being a flag", f.Name)
		}
	}
}

func TestWhichServerAClientTalksTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args, variable, want, fault string
	}{
		{"the default is the default of serve", "", "", "http://127.0.0.1:8080", ""},
		{"a variable is heard", "", "http://h:1", "http://h:1", ""},
		{"a flag wins", "--server=http://g:2", "http://h:1", "http://g:2", ""},
		{"no scheme is a fault", "--server=g:2", "", "", "must begin with http"},
		{"a query is a fault", "--server=http://g/?a", "", "", "must not hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := flag.NewFlagSet("", flag.ContinueOnError)
			lookup := variables("ONEREPLY_SERVER", c.variable, "ONEREPLY_API_KEY", "secret")
			r := RegisterRemote(set, lookup)
			if err := set.Parse(strings.Fields(c.args)); err != nil {
				t.Fatal(err)
			}
			err := r.Resolve(lookup)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("error is %v, want %q", err, c.fault)
				}
				return
			}
			if err != nil || r.Server != c.want || r.APIKey != "secret" {
				t.Errorf("got %+v and %v, want server %s", r, err, c.want)
			}
		})
	}
}
