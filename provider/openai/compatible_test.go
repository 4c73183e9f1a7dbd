package openai_test

import (
	"net/http"
	"testing"

	"github.com/onereply/onereply/provider"
	"github.com/onereply/onereply/provider/openai"
	"github.com/onereply/onereply/provider/providertest"
	"github.com/onereply/onereply/provider/simulator"
)

func TestCompatibleConforms(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Adapter{
		New: func(baseURL string, transport http.RoundTripper) (provider.Model, error) {
			return openai.NewCompatible("simulated", baseURL, "sk-test-secret", transport)
		},
		Provider: func() providertest.Provider { return simulator.New(simulator.Options{}) },
	})
}
