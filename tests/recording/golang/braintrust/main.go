// Record Braintrust's Go SDK: a loop around a traced OpenAI client, with spans of the application that carry Braintrust's attributes.
//
//	go mod init braintrust && go get github.com/braintrustdata/braintrust-sdk-go@63142de github.com/openai/openai-go@v1.12.0
//	go run . -stage http://127.0.0.1:8471
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"

	traceopenai "github.com/braintrustdata/braintrust-sdk-go/trace/contrib/openai"
	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

type object = map[string]any

var (
	stage  = flag.String("stage", "http://127.0.0.1:8471", "")
	client openai.Client
	tracer api.Tracer
	told   struct {
		Turns []struct {
			UserInput string `json:"user_input"`
		} `json:"turns"`
		Conversation string   `json:"conversation_id"`
		Documents    []object `json:"documents"`
		SubAgent     string   `json:"sub_agent"`
		Stream       bool     `json:"stream"`
		Tools        []string `json:"tools"`
	}
)

func post(path string, body any) (object, int) {
	raw, _ := json.Marshal(body)
	answer, err := http.Post(*stage+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if path == "/control/start" {
		told.SubAgent, told.Conversation, told.Documents = "", "", nil
		_ = json.Unmarshal(text, &told)
	}
	var found object
	_ = json.Unmarshal(text, &found)
	return found, answer.StatusCode
}

func setJSON(span api.Span, key string, value any) {
	raw, _ := json.Marshal(value)
	span.SetAttributes(attribute.String(key, string(raw)))
}

// traced runs a step of the application in a span of its own.
func traced(ctx context.Context, kind, name string, input any, run func(context.Context, api.Span) (any, error)) (any, error) {
	ctx, span := tracer.Start(ctx, name)
	defer span.End()
	setJSON(span, "braintrust.span_attributes", object{"type": kind, "name": name})
	setJSON(span, "braintrust.input_json", input)
	output, err := run(ctx, span)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
		return nil, err
	}
	setJSON(span, "braintrust.output_json", output)
	return output, nil
}

func callTool(ctx context.Context, name string, arguments object) (string, error) {
	found, err := traced(ctx, "tool", name, arguments, func(ctx context.Context, _ api.Span) (any, error) {
		if name == told.SubAgent {
			task, _ := arguments["task"].(string)
			return traced(ctx, "task", told.SubAgent, task, func(ctx context.Context, _ api.Span) (any, error) {
				messages := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are a travel specialist."), openai.UserMessage(task)}
				return loop(ctx, &messages, told.Tools)
			})
		}
		answer, code := post("/tools/"+name, arguments)
		if code != http.StatusOK {
			return nil, errors.New(answer["message"].(string))
		}
		return answer["result"], nil
	})
	if err != nil {
		return "", err
	}
	if text, ok := found.(string); ok {
		return text, nil
	}
	raw, _ := json.Marshal(found)
	return string(raw), nil
}

var parameters = map[string]object{
	"get_weather": {"city": object{"type": "string"}}, "lookup_order": {"order_id": object{"type": "string"}},
	"convert_currency": {"amount": object{"type": "number"}, "currency": object{"type": "string"}},
	"check_job":        {"job_id": object{"type": "string"}}, "travel_specialist": {"task": object{"type": "string"}},
}

func ask(ctx context.Context, given openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, error) {
	if !told.Stream {
		answer, err := client.Chat.Completions.New(ctx, given)
		if err != nil {
			return openai.ChatCompletionMessage{}, err
		}
		return answer.Choices[0].Message, nil
	}
	given.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := client.Chat.Completions.NewStreaming(ctx, given)
	whole := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		whole.AddChunk(stream.Current())
	}
	if stream.Err() != nil {
		return openai.ChatCompletionMessage{}, stream.Err()
	}
	return whole.Choices[0].Message, nil
}

func loop(ctx context.Context, messages *[]openai.ChatCompletionMessageParamUnion, tools []string) (string, error) {
	given := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini"}
	for _, name := range tools {
		schema := openai.FunctionParameters{"type": "object", "properties": parameters[name]}
		given.Tools = append(given.Tools, openai.ChatCompletionToolParam{Function: openai.FunctionDefinitionParam{Name: name, Parameters: schema}})
	}
	for {
		given.Messages = *messages
		message, err := ask(ctx, given)
		if err != nil {
			return "", err
		}
		*messages = append(*messages, message.ToParam())
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		for _, call := range message.ToolCalls {
			var arguments object
			_ = json.Unmarshal([]byte(call.Function.Arguments), &arguments)
			result, err := callTool(ctx, call.Function.Name, arguments)
			if err != nil {
				result = "Error: " + err.Error()
			}
			*messages = append(*messages, openai.ToolMessage(result, call.ID))
		}
	}
}

func handle(history *[]openai.ChatCompletionMessageParamUnion, question string) (any, error) {
	return traced(context.Background(), "task", "handle_message", question, func(ctx context.Context, span api.Span) (any, error) {
		if told.Conversation != "" {
			setJSON(span, "braintrust.metadata", object{"session_id": told.Conversation, "user_id": "u-7"})
		}
		tools := told.Tools
		if told.SubAgent != "" {
			tools = []string{told.SubAgent}
		}
		if len(told.Documents) > 0 {
			tools = nil
			found, _ := traced(ctx, "function", "search_docs", object{"query": question}, func(context.Context, api.Span) (any, error) { return told.Documents, nil })
			text := ""
			for _, document := range found.([]object) {
				text += "\n\n" + document["content"].(string)
			}
			*history = append(*history, openai.SystemMessage("Answer from these documents:"+text))
		}
		*history = append(*history, openai.UserMessage(question))
		return loop(ctx, history, tools)
	})
}

func main() {
	flag.Parse()
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(*stage+"/v1/traces"))
	if err != nil {
		panic(err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	tracer = otel.Tracer("shop")
	client = openai.NewClient(option.WithBaseURL(*stage+"/v1/"), option.WithAPIKey("x"), option.WithMaxRetries(0), option.WithMiddleware(traceopenai.NewMiddleware()))
	for _, scenario := range []string{"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s9b", "s10", "s10b", "s11"} {
		post("/control/start", object{"set": "braintrust-go-openai", "scenario": scenario})
		history := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are a helpful assistant. Use the tools when they help.")}
		for index, turn := range told.Turns {
			post("/control/turn", object{"index": index})
			before := len(history)
			answer, err := handle(&history, turn.UserInput)
			if err != nil {
				history = history[:before]
			}
			_ = provider.ForceFlush(context.Background())
			said := object{"answer": answer}
			if err != nil {
				said = object{"error": object{"type": fmt.Sprintf("%T", err), "message": err.Error()}}
			}
			post("/control/answer", said)
		}
		done, _ := post("/control/finish", object{"versions": object{"braintrust-sdk-go": "63142de", "openai-go": "1.12.0"}})
		fmt.Println(scenario, done)
	}
}
