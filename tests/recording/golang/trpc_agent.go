// trpc-agent-go of August 2026, its own telemetry (telemetry/trace) over OTLP/HTTP.
package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/openai/openai-go/option"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/model/openai"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
	"trpc.group/trpc-go/trpc-agent-go/telemetry/trace"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	agenttool "trpc.group/trpc-go/trpc-agent-go/tool/agent"
	"trpc.group/trpc-go/trpc-agent-go/tool/function"
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

func made[In any](name, description string) tool.Tool {
	return function.NewFunctionTool(func(ctx context.Context, in In) (string, error) { return callToolText(name, in) }, function.WithName(name), function.WithDescription(description))
}

func convert(ctx context.Context, in money) (money, error) {
	result, err := callTool("convert_currency", in)
	if err != nil {
		return money{}, err
	}
	values := result.(map[string]any)
	return money{values["amount"].(float64), values["currency"].(string)}, nil
}

func main() {
	ctx := context.Background()
	clean, err := trace.Start(ctx, trace.WithEndpointURL(stageURL+"/v1/traces"), trace.WithProtocol("http"), trace.WithServiceName("assistant"))
	if err != nil {
		panic(err)
	}
	defer clean()
	llm := openai.New("gpt-4.1-mini", openai.WithBaseURL(stageURL+"/v1"), openai.WithAPIKey("none"), openai.WithOpenAIOptions(option.WithMaxRetries(0)))
	tools := map[string]tool.Tool{
		"get_weather": made[city]("get_weather", "The weather in a city"), "convert_currency": function.NewFunctionTool(convert, function.WithName("convert_currency"), function.WithDescription("Convert US dollars")),
		"lookup_order": made[order]("lookup_order", "Where an order is"), "check_job": made[job]("check_job", "The state of a job"),
	}
	list := os.Getenv("SCENARIOS")
	if list == "" {
		list = strings.ReplaceAll(allScenarios, "s5,", "")
	}
	runners := map[string]runner.Runner{}
	flush := func() {
		if provider, ok := trace.TracerProvider.(*sdktrace.TracerProvider); ok {
			_ = provider.ForceFlush(ctx)
		} else if provider, ok := otel.GetTracerProvider().(*sdktrace.TracerProvider); ok {
			_ = provider.ForceFlush(ctx)
		}
	}
	play(os.Getenv("SET"), "trpc-agent-go 0e352fdd (August 2026)", list, flush, func(now Scenario, question string) (string, error) {
		run, ok := runners[now.Name]
		if !ok {
			config := model.GenerationConfig{Stream: now.Stream}
			var given []tool.Tool
			for _, name := range now.Tools {
				given = append(given, tools[name])
			}
			if now.SubAgent != "" {
				specialist := llmagent.New(now.SubAgent, llmagent.WithModel(llm), llmagent.WithDescription("Knows what to pack"),
					llmagent.WithInstruction("You are a travel specialist."), llmagent.WithTools(given), llmagent.WithGenerationConfig(config))
				given = []tool.Tool{agenttool.NewTool(specialist)}
			}
			assistant := llmagent.New("assistant", llmagent.WithModel(llm), llmagent.WithInstruction("You are a helpful assistant."),
				llmagent.WithTools(given), llmagent.WithGenerationConfig(config))
			run = runner.NewRunner("shop", assistant, runner.WithSessionService(inmemory.NewSessionService()))
			runners[now.Name] = run
		}
		session := now.Session
		if session == "" {
			session = "s-" + now.Name + "-" + question[:4]
		}
		events, err := run.Run(ctx, "user-1", session, model.NewUserMessage(question))
		if err != nil {
			return "", err
		}
		answer := ""
		for event := range events {
			if event.Error != nil {
				err = errors.New(event.Error.Message)
			}
			if event.Response != nil && len(event.Response.Choices) > 0 && event.Author == "assistant" {
				message := event.Response.Choices[0].Message
				if message.Role == model.RoleAssistant && message.Content != "" && len(message.ToolCalls) == 0 {
					answer = message.Content
				}
			}
		}
		return answer, err
	})
}
