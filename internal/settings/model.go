package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Provider names a kind of model.
type Provider string

// The kinds of model.
const (
	Demo       Provider = "demo"
	OpenAI     Provider = "openai"
	Anthropic  Provider = "anthropic"
	Compatible Provider = "compatible"
)

// Where the providers are found unless a variable says otherwise.
const (
	openAIBase    = "https://api.openai.com/v1"
	anthropicBase = "https://api.anthropic.com"
)

// Model says who answers.
type Model struct {
	Provider Provider
	Name     string // as the provider names the model
	BaseURL  string // as the provider's SDK takes it
	APIKey   string // empty: none is sent
}

// secrets are the variables that models take their addresses and keys from.
type secrets struct {
	compatibleKey               string
	openAIKey, openAIBase       string
	anthropicKey, anthropicBase string
}

func (s *Serve) modelFlags() []Flag {
	return []Flag{
		{Name: "model", Value: "MODEL", Default: "demo",
			Usage: "Who answers: demo, openai:MODEL, anthropic:MODEL, or compatible:MODEL@BASE_URL for any server that speaks chat completions.", set: s.Model.set},
		{Name: "openai-background", Value: "true|false", Default: "true",
			Usage: "Make OpenAI's responses in the background, so that they survive a lost worker; with false nothing is stored there and a broken call cannot be found again.", set: boolean(&s.OpenAIBackground)},
		{Name: "anthropic-max-tokens", Value: "N", Default: "8192",
			Usage: "The longest answer asked of Anthropic, in tokens; every request there has to say one.", set: number(&s.AnthropicMaxTokens)},
		{Name: "model-concurrency", Value: "N", Default: "0",
			Usage: "Calls to the model at once in this process; 0 is no limit beside --workers.", set: number(&s.ModelConcurrency)},
		{Name: "model-tokens-per-minute", Value: "N", Default: "0",
			Usage: "Tokens this process may spend at the model in a minute, requests estimated; 0 is no limit.", set: number(&s.ModelTokensPerMinute)},
		{Name: "model-gate", Value: "true|false", Default: "true",
			Usage: "Let one refusal slow down all workers of this process, and a run of failures stop them but for a probe; with false each finds out for itself.", set: boolean(&s.ModelGate)},
		{Name: "openai-api-key", Env: "OPENAI_API_KEY", NoFlag: true,
			Usage: "The key of openai models.", set: verbatim(&s.secrets.openAIKey)},
		{Name: "openai-base-url", Env: "OPENAI_BASE_URL", NoFlag: true, Derived: "`" + openAIBase + "`",
			Usage: "Where openai models are found, ending in /v1.", set: verbatim(&s.secrets.openAIBase)},
		{Name: "anthropic-api-key", Env: "ANTHROPIC_API_KEY", NoFlag: true,
			Usage: "The key of anthropic models.", set: verbatim(&s.secrets.anthropicKey)},
		{Name: "anthropic-base-url", Env: "ANTHROPIC_BASE_URL", NoFlag: true, Derived: "`" + anthropicBase + "`",
			Usage: "Where anthropic models are found, without /v1.", set: verbatim(&s.secrets.anthropicBase)},
		{Name: "model-api-key", NoFlag: true,
			Usage: "The key sent to a compatible model's server, when it needs one.", set: verbatim(&s.secrets.compatibleKey)},
		{Name: "demo-delay", Value: "DURATION", Default: "30ms",
			Usage: "The pause of the demo model between two words.", set: duration(&s.DemoDelay)},
	}
}

func (s Serve) modelFaults(j *judge) {
	j.check("demo-delay", s.DemoDelay >= 0, "%v: must not be negative", s.DemoDelay)
	j.check("anthropic-max-tokens", s.AnthropicMaxTokens >= 1, "%d: must be at least 1", s.AnthropicMaxTokens)
	j.check("model-concurrency", s.ModelConcurrency >= 0, "%d: must not be negative", s.ModelConcurrency)
	j.check("model-gate", s.ModelGate || s.ModelConcurrency == 0 && s.ModelTokensPerMinute == 0, "false: the limits of --model-concurrency and --model-tokens-per-minute need it")
	j.check("model-tokens-per-minute", s.ModelTokensPerMinute >= 0, "%d: must not be negative", s.ModelTokensPerMinute)
	m := s.Model
	j.check("model", m.Provider != OpenAI || m.APIKey != "" || m.BaseURL != openAIBase, "%q: needs a key in OPENAI_API_KEY", m)
	j.check("model", m.Provider != Anthropic || m.APIKey != "" || m.BaseURL != anthropicBase, "%q: needs a key in ANTHROPIC_API_KEY", m)
}

// resolve fills in the address and the key.
func (m *Model) resolve(s secrets) {
	switch m.Provider {
	case OpenAI:
		m.BaseURL, m.APIKey = orElse(s.openAIBase, openAIBase), s.openAIKey
	case Anthropic:
		m.BaseURL, m.APIKey = orElse(s.anthropicBase, anthropicBase), s.anthropicKey
	case Compatible:
		m.APIKey = s.compatibleKey
	}
}

func orElse(base, other string) string {
	if base == "" {
		return other
	}
	return strings.TrimSuffix(base, "/")
}

// String gives the text the flag takes; never the key.
func (m Model) String() string {
	switch m.Provider {
	case OpenAI, Anthropic:
		return string(m.Provider) + ":" + m.Name
	case Compatible:
		return "compatible:" + m.Name + "@" + m.BaseURL
	}
	return string(m.Provider)
}

func (m *Model) set(text string) error {
	if text == "demo" {
		m.Provider = Demo
		return nil
	}
	scheme, rest, _ := strings.Cut(text, ":")
	switch Provider(scheme) {
	case OpenAI, Anthropic:
		if rest == "" || strings.ContainsFunc(rest, func(c rune) bool { return c <= ' ' }) {
			return fmt.Errorf("names no model, as in %s:NAME", scheme)
		}
		m.Provider, m.Name = Provider(scheme), rest
		return nil
	case Compatible:
	default:
		return errors.New("must be demo, openai:MODEL, anthropic:MODEL or compatible:MODEL@BASE_URL")
	}
	// Model names may hold an @ of their own, so the URL decides where to cut.
	at := max(strings.LastIndex(rest, "@http://"), strings.LastIndex(rest, "@https://"))
	if at < 1 {
		return errors.New("needs a model and a base URL, as in compatible:llama3.2@http://127.0.0.1:11434/v1")
	}
	base, err := url.Parse(rest[at+1:])
	if err != nil || base.Host == "" {
		return errors.New("has a base URL that cannot be read")
	}
	if base.User != nil || base.Fragment != "" || base.RawQuery != "" {
		return errors.New("has a base URL with a user, a query or a fragment; give a key in ONEREPLY_MODEL_API_KEY")
	}
	m.Provider, m.Name, m.BaseURL = Compatible, rest[:at], strings.TrimSuffix(rest[at+1:], "/")
	return nil
}
