// ADK for Go 2 of August 2026; spans and log records by OTLP/HTTP. Content is on when CAPTURE is set.
package main

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log/global"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"
)

type city struct {
	City string `json:"city"`
}
type money struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}
type order struct {
	ID string `json:"order_id"`
}
type job struct {
	ID string `json:"job_id"`
}

func made[In any](name, description string) tool.Tool {
	made, err := functiontool.New(functiontool.Config{Name: name, Description: description}, func(ctx agent.Context, in In) (map[string]any, error) {
		result, err := callTool(name, in)
		if values, ok := result.(map[string]any); ok {
			return values, err
		}
		return map[string]any{"result": result}, err
	})
	if err != nil {
		panic(err)
	}
	return made
}

func main() {
	ctx := context.Background()
	provider := tracing(ctx)
	exporter, err := otlploghttp.New(ctx, otlploghttp.WithEndpointURL(stageURL+"/v1/logs"))
	if err != nil {
		panic(err)
	}
	logs := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	global.SetLoggerProvider(logs)
	os.Setenv("GOOGLE_GEMINI_BASE_URL", stageURL)
	llm, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{APIKey: "none", HTTPOptions: genai.HTTPOptions{BaseURL: stageURL}})
	if err != nil {
		panic(err)
	}
	tools := map[string]tool.Tool{
		"get_weather": made[city]("get_weather", "The weather in a city"), "convert_currency": made[money]("convert_currency", "Convert US dollars"),
		"lookup_order": made[order]("lookup_order", "Where an order is"), "check_job": made[job]("check_job", "The state of a job"),
	}
	list := os.Getenv("SCENARIOS")
	if list == "" {
		list = strings.ReplaceAll(allScenarios, "s5,", "")
	}
	runners := map[string]*runner.Runner{}
	flush := func() {
		_ = provider.ForceFlush(ctx)
		_ = logs.ForceFlush(ctx)
	}
	play(os.Getenv("SET"), "google.golang.org/adk/v2 0a51e153 (August 2026)", list, flush, func(now Scenario, question string) (string, error) {
		run, ok := runners[now.Name]
		if !ok {
			var given []tool.Tool
			for _, name := range now.Tools {
				given = append(given, tools[name])
			}
			if now.SubAgent != "" {
				specialist, err := llmagent.New(llmagent.Config{Name: now.SubAgent, Model: llm, Description: "Knows what to pack", Instruction: "You are a travel specialist.", Tools: given,
					InputSchema: &genai.Schema{Type: "OBJECT", Properties: map[string]*genai.Schema{"task": {Type: "STRING"}}}})
				if err != nil {
					return "", err
				}
				given = []tool.Tool{agenttool.New(specialist, nil)}
			}
			assistant, err := llmagent.New(llmagent.Config{Name: "assistant", Model: llm, Instruction: "You are a helpful assistant.", Tools: given})
			if err != nil {
				return "", err
			}
			if run, err = runner.NewInMemory("shop", assistant); err != nil {
				return "", err
			}
			runners[now.Name] = run
		}
		session := now.Session
		if session == "" {
			session = "s-" + now.Name + "-" + strings.ToLower(question[:4])
		}
		mode := agent.StreamingModeNone
		if now.Stream {
			mode = agent.StreamingModeSSE
		}
		answer := ""
		for event, err := range run.Run(ctx, "user-1", session, genai.NewContentFromText(question, genai.RoleUser), agent.RunConfig{StreamingMode: mode}) {
			if err != nil {
				return "", err
			}
			if event.IsFinalResponse() && !event.Partial && event.Content != nil {
				answer = ""
				for _, part := range event.Content.Parts {
					answer += part.Text
				}
			}
		}
		return answer, nil
	})
}
