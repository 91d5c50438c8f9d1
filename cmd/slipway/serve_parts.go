package main

import (
	"encoding/json"
	"fmt"

	"github.com/slipway-dev/slipway"
	"github.com/slipway-dev/slipway/agent"
	"github.com/slipway-dev/slipway/graphconfig"
)

// namedParts is what a graph configuration says of the code that workers load beside its graphs.
type namedParts struct {
	Auth struct{ Path string } `json:"auth"`
	HTTP struct {
		App   string `json:"app"`
		Order string `json:"middleware_order"`
	} `json:"http"`
	Store struct {
		Path  string                 `json:"path"`
		Index struct{ Embed string } `json:"index"`
	} `json:"store"`
	Checkpointer struct {
		Path  string          `json:"path"`
		Serde json.RawMessage `json:"serde"`
	} `json:"checkpointer"`
	Encryption struct{ Path string } `json:"encryption"`
}

// partsOf says what the workers of each language load beside the graphs: each part those of its own language. Encryption
// with the key of LANGGRAPH_AES_KEY is everybody's.
func partsOf(bundle slipway.Bundle, getenv func(string) string) (map[slipway.Language]agent.Parts, error) {
	var named namedParts
	if len(bundle.Config) > 0 {
		if err := json.Unmarshal(bundle.Config, &named); err != nil {
			return nil, fmt.Errorf("the graph configuration cannot be read: %w", err)
		}
	}
	parts := map[slipway.Language]agent.Parts{}
	put := func(spec string, language slipway.Language, set func(p *agent.Parts)) {
		if spec != "" {
			p := parts[language]
			set(&p)
			parts[language] = p
		}
	}
	code := func(spec string, set func(p *agent.Parts)) { put(spec, graphconfig.LanguageOf(spec), set) }
	code(named.Auth.Path, func(p *agent.Parts) { p.Auth = &agent.CodePart{Path: named.Auth.Path} })
	code(named.HTTP.App, func(p *agent.Parts) {
		p.App = &agent.AppPart{Path: named.HTTP.App, MiddlewareFirst: named.HTTP.Order != "auth_first"}
	})
	embed := named.Store.Index.Embed
	put(embed, embedder(embed, bundle), func(p *agent.Parts) { p.Embed = &agent.EmbedPart{Spec: embed} })
	code(named.Store.Path, func(p *agent.Parts) { p.Store = &agent.CodePart{Path: named.Store.Path} })
	code(named.Checkpointer.Path, func(p *agent.Parts) { p.Checkpointer = &agent.CheckpointerPart{Path: named.Checkpointer.Path} })
	code(named.Encryption.Path, func(p *agent.Parts) { p.Encryption = &agent.EncryptionPart{Path: named.Encryption.Path} })
	putSerde(parts, bundle, named.Checkpointer.Serde)
	if named.Encryption.Path == "" && getenv("LANGGRAPH_AES_KEY") != "" {
		putAES(parts, bundle)
	}
	return parts, nil
}

// embedder returns the language of the workers that embed; a provider's model goes to Python where there is any.
func embedder(spec string, bundle slipway.Bundle) slipway.Language {
	if !graphconfig.EmbedsItself(spec) && !hasLanguage(bundle, slipway.Python) {
		return slipway.Node
	}
	return graphconfig.LanguageOf(spec)
}

func hasLanguage(bundle slipway.Bundle, language slipway.Language) bool {
	for _, g := range bundle.Graphs {
		if g.Language == language {
			return true
		}
	}
	return false
}

// putSerde tells Python workers which types their checkpoints may hold; JavaScript's serialiser knows no such setting.
func putSerde(parts map[slipway.Language]agent.Parts, bundle slipway.Bundle, serde json.RawMessage) {
	p := parts[slipway.Python]
	if len(serde) == 0 || !hasLanguage(bundle, slipway.Python) && p.Checkpointer == nil {
		return
	}
	if p.Checkpointer == nil {
		p.Checkpointer = &agent.CheckpointerPart{}
	}
	p.Checkpointer.Serde = serde
	parts[slipway.Python] = p
}

func putAES(parts map[slipway.Language]agent.Parts, bundle slipway.Bundle) {
	for _, language := range []slipway.Language{slipway.Python, slipway.Node} {
		if hasLanguage(bundle, language) {
			p := parts[language]
			p.Encryption = &agent.EncryptionPart{AES: true}
			parts[language] = p
		}
	}
}
