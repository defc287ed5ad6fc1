// Genkit Go 1.4.0 with its OpenAI plugin (or Google AI's, MODEL=gemini), its spans sent by an OTLP exporter.
package main

import (
	"context"
	"os"
	"strings"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	oai "github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/firebase/genkit/go/plugins/googlegenai"
	"github.com/openai/openai-go/option"
)

type city struct {
	City string `json:"city"`
}
type money struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}
type order struct {
	ID string `json:"order_id"`
}
type job struct {
	ID string `json:"job_id"`
}
type task struct {
	Task string `json:"task"`
}

func main() {
	ctx := context.Background()
	provider := tracing(ctx)
	model := "openai/gpt-4.1-mini"
	var g *genkit.Genkit
	if os.Getenv("MODEL") == "gemini" {
		os.Setenv("GOOGLE_GEMINI_BASE_URL", stageURL)
		model = "googleai/gemini-2.5-flash"
		g = genkit.Init(ctx, genkit.WithPlugins(&googlegenai.GoogleAI{APIKey: "none"}), genkit.WithDefaultModel(model))
	} else {
		plugin := &oai.OpenAI{APIKey: "none", Opts: []option.RequestOption{option.WithBaseURL(stageURL + "/v1/"), option.WithMaxRetries(0)}}
		g = genkit.Init(ctx, genkit.WithPlugins(plugin), genkit.WithDefaultModel(model))
	}
	weather := genkit.DefineTool(g, "get_weather", "The weather in a city", func(ctx *ai.ToolContext, in city) (string, error) { return callToolText("get_weather", in) })
	tools := map[string]ai.ToolRef{
		"get_weather":      weather,
		"convert_currency": genkit.DefineTool(g, "convert_currency", "Convert US dollars", func(ctx *ai.ToolContext, in money) (any, error) { return callTool("convert_currency", in) }),
		"check_job":        genkit.DefineTool(g, "check_job", "The state of a job", func(ctx *ai.ToolContext, in job) (string, error) { return callToolText("check_job", in) }),
		"lookup_order": genkit.DefineTool(g, "lookup_order", "Where an order is", func(ctx *ai.ToolContext, in order) (string, error) {
			return callToolText("lookup_order", in)
		}),
	}
	specialist := genkit.DefineFlow(g, "travel_specialist_flow", func(ctx context.Context, question string) (string, error) {
		return genkit.GenerateText(ctx, g, ai.WithSystem("You are a travel specialist."), ai.WithPrompt(question), ai.WithTools(weather))
	})
	asked := genkit.DefineTool(g, "travel_specialist", "Knows what to pack", func(ctx *ai.ToolContext, in task) (string, error) { return specialist.Run(ctx, in.Task) })
	var documents []*ai.Document
	retriever := genkit.DefineRetriever(g, "faq", nil, func(ctx context.Context, req *ai.RetrieverRequest) (*ai.RetrieverResponse, error) {
		return &ai.RetrieverResponse{Documents: documents}, nil
	})

	var scenario Scenario
	var history []*ai.Message
	answer := func(ctx context.Context, question string, stream func(context.Context, *ai.ModelResponseChunk) error) (string, error) {
		options := []ai.GenerateOption{ai.WithSystem("You are a helpful assistant."), ai.WithMaxTurns(8)}
		if len(scenario.Documents) > 0 {
			found, err := genkit.Retrieve(ctx, g, ai.WithRetriever(retriever), ai.WithTextDocs(question))
			if err != nil {
				return "", err
			}
			options = append(options, ai.WithDocs(found.Documents...))
		}
		if scenario.SubAgent != "" {
			options = append(options, ai.WithTools(asked))
		} else {
			var given []ai.ToolRef
			for _, name := range scenario.Tools {
				given = append(given, tools[name])
			}
			options = append(options, ai.WithTools(given...))
		}
		if len(history) > 0 {
			options = append(options, ai.WithMessages(history...))
		}
		if stream != nil {
			options = append(options, ai.WithStreaming(stream))
		}
		response, err := genkit.Generate(ctx, g, append(options, ai.WithPrompt("%s", question))...)
		if err != nil {
			return "", err
		}
		if scenario.Session != "" {
			history = response.History()
		}
		return response.Text(), nil
	}
	chat := genkit.DefineFlow(g, "chatFlow", func(ctx context.Context, question string) (string, error) { return answer(ctx, question, nil) })
	streamed := genkit.DefineStreamingFlow(g, "chatStream", func(ctx context.Context, question string, send func(context.Context, string) error) (string, error) {
		return answer(ctx, question, func(ctx context.Context, chunk *ai.ModelResponseChunk) error { return send(ctx, chunk.Text()) })
	})

	list := os.Getenv("SCENARIOS")
	if list == "" {
		list = allScenarios
	}
	play(os.Getenv("SET"), "genkit go 1.4.0", list, func() { _ = provider.ForceFlush(ctx) }, func(now Scenario, question string) (string, error) {
		if now.Name != scenario.Name {
			history = nil
			documents = nil
			for _, document := range now.Documents {
				documents = append(documents, ai.DocumentFromText(document.Content, map[string]any{"id": document.ID}))
			}
		}
		scenario = now
		if os.Getenv("FLOW") == "off" {
			return answer(ctx, question, func() func(context.Context, *ai.ModelResponseChunk) error {
				if !now.Stream {
					return nil
				}
				return func(context.Context, *ai.ModelResponseChunk) error { return nil }
			}())
		}
		if !now.Stream {
			return chat.Run(ctx, question)
		}
		var said strings.Builder
		for chunk, err := range streamed.Stream(ctx, question) {
			if err != nil {
				return "", err
			}
			if chunk.Done {
				return chunk.Output, nil
			}
			said.WriteString(chunk.Stream)
		}
		return said.String(), nil
	})
}
