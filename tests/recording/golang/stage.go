package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.26.0"
)

// Scenario is what stage.py tells of the scenario that is played.
type Scenario struct {
	Name  string
	Turns []struct {
		Input string `json:"user_input"`
	} `json:"turns"`
	Session   string `json:"conversation_id"`
	SubAgent  string `json:"sub_agent"`
	Stream    bool   `json:"stream"`
	Tools     []string
	Documents []struct{ ID, Content string }
}

// Has says whether the scenario needs a tool.
func (s Scenario) Has(tool string) bool {
	for _, name := range s.Tools {
		if name == tool {
			return true
		}
	}
	return false
}

var stageURL = os.Getenv("STAGE")

const allScenarios = "s1,s2,s3,s4,s5,s6,s7,s8,s9,s9b,s10,s10b,s11"

func post(path string, body any) (int, []byte) {
	raw, _ := json.Marshal(body)
	answer, err := http.Post(stageURL+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, said
}

// callTool is the body of a tool: its result, or the failure it returns.
func callTool(name string, arguments any) (any, error) {
	code, raw := post("/tools/"+name, arguments)
	var said struct {
		Result  any
		Message string
	}
	_ = json.Unmarshal(raw, &said)
	if code != 200 {
		return nil, errors.New(said.Message)
	}
	return said.Result, nil
}

func callToolText(name string, arguments any) (string, error) {
	result, err := callTool(name, arguments)
	if text, ok := result.(string); ok {
		return text, err
	}
	raw, _ := json.Marshal(result)
	return string(raw), err
}

// tracing is a provider that exports to the stage.
func tracing(ctx context.Context) *sdktrace.TracerProvider {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(stageURL+"/v1/traces"))
	if err != nil {
		panic(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(semconv.ServiceName("assistant"))))
	otel.SetTracerProvider(provider)
	return provider
}

// play runs the scenarios of a set.
func play(set, versions, scenarios string, flush func(), run func(Scenario, string) (string, error)) {
	for _, name := range strings.Split(scenarios, ",") {
		_, raw := post("/control/start", map[string]any{"set": set, "scenario": name})
		scenario := Scenario{Name: name}
		if err := json.Unmarshal(raw, &scenario); err != nil {
			panic(err)
		}
		for i, turn := range scenario.Turns {
			post("/control/turn", map[string]any{"index": i})
			said, err := run(scenario, turn.Input)
			if err != nil {
				fmt.Fprintln(os.Stderr, name, err)
				post("/control/answer", map[string]any{"error": map[string]any{"type": fmt.Sprintf("%T", err), "message": err.Error()}})
			} else {
				post("/control/answer", map[string]any{"answer": said})
			}
			flush()
		}
		_, done := post("/control/finish", map[string]any{"versions": versions})
		fmt.Println(set, name, string(done))
	}
}
