package app;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.core.http.StreamResponse;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionFunctionTool;
import com.openai.models.chat.completions.ChatCompletionMessage;
import com.openai.models.chat.completions.ChatCompletionMessageToolCall;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.context.Scope;
import io.opentelemetry.exporter.otlp.http.logs.OtlpHttpLogRecordExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.instrumentation.openai.v1_1.OpenAITelemetry;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.logs.export.BatchLogRecordProcessor;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

// openai-java 4.101.0 with OpenTelemetry's library instrumentation (openai-java.pom.xml): a loop of one's own below the span of a request.
public class OpenAiJava {
    private static final Map<String, List<String>> TOOLS = Map.of("get_weather", List.of("city"), "convert_currency", List.of("amount", "currency"),
        "lookup_order", List.of("order_id"), "check_job", List.of("job_id"), "travel_specialist", List.of("task"));
    private static OpenAIClient client;

    private static ChatCompletionCreateParams.Builder conversation(String system, List<String> tools) {
        ChatCompletionCreateParams.Builder asked = ChatCompletionCreateParams.builder().model("gpt-4.1-mini").addSystemMessage(system);
        tools.forEach(name -> asked.addTool(ChatCompletionFunctionTool.builder().function(FunctionDefinition.builder().name(name).parameters(FunctionParameters.builder()
            .putAdditionalProperty("type", JsonValue.from("object"))
            .putAdditionalProperty("properties", JsonValue.from(TOOLS.get(name).stream().collect(Collectors.toMap(key -> key, key -> Map.of("type", key.equals("amount") ? "number" : "string")))))
            .build()).build()).build()));
        return asked;
    }

    private static ChatCompletionMessage ask(ChatCompletionCreateParams asked, boolean stream) {
        if (!stream) {
            return client.chat().completions().create(asked).choices().get(0).message();
        }
        ChatCompletionAccumulator whole = ChatCompletionAccumulator.create();
        try (StreamResponse<ChatCompletionChunk> parts = client.chat().completions().createStreaming(asked.toBuilder().streamOptions(ChatCompletionStreamOptions.builder().includeUsage(true).build()).build())) {
            parts.stream().forEach(whole::accumulate);
        }
        return whole.chatCompletion().choices().get(0).message();
    }

    private static String loop(ChatCompletionCreateParams.Builder asked, boolean stream) throws Exception {
        while (true) {
            ChatCompletionMessage message = ask(asked.build(), stream);
            asked.addMessage(message);
            if (message.toolCalls().isEmpty() || message.toolCalls().get().isEmpty()) {
                return message.content().orElse("");
            }
            for (ChatCompletionMessageToolCall call : message.toolCalls().get()) {
                var function = call.asFunction();
                asked.addMessage(ChatCompletionToolMessageParam.builder().toolCallId(function.id()).content(run(function.function().name(), function.function().arguments())).build());
            }
        }
    }

    private static String run(String name, String arguments) throws Exception {
        Map<String, Object> given = new ObjectMapper().readValue(arguments, Map.class);
        if (name.equals("travel_specialist")) {
            return loop(conversation("You are a travel specialist.", List.of("get_weather")).addUserMessage((String) given.get("task")), false);
        }
        try {
            Object result = Stage.tool(name, given);
            return result instanceof String text ? text : new ObjectMapper().writeValueAsString(result);
        } catch (RuntimeException e) {
            return "Error: " + e.getMessage();
        }
    }

    public static void main(String[] args) throws Exception {
        Resource about = Resource.getDefault().merge(Resource.create(Attributes.of(AttributeKey.stringKey("service.name"), "assistant")));
        SdkTracerProvider tracing = SdkTracerProvider.builder().setResource(about)
            .addSpanProcessor(BatchSpanProcessor.builder(OtlpHttpSpanExporter.builder().setEndpoint(Stage.URL + "/v1/traces").build()).build()).build();
        SdkLoggerProvider logging = SdkLoggerProvider.builder().setResource(about)
            .addLogRecordProcessor(BatchLogRecordProcessor.builder(OtlpHttpLogRecordExporter.builder().setEndpoint(Stage.URL + "/v1/logs").build()).build()).build();
        OpenTelemetrySdk otel = OpenTelemetrySdk.builder().setTracerProvider(tracing).setLoggerProvider(logging).build();
        client = OpenAITelemetry.builder(otel).setCaptureMessageContent(System.getenv("OFF") == null).build()
            .wrap(OpenAIOkHttpClient.builder().apiKey("none").baseUrl(Stage.URL + "/v1").maxRetries(0).build());
        String list = System.getenv().getOrDefault("SCENARIOS", "s1,s2,s3,s4,s5,s6,s7,s8,s9,s9b,s10,s10b,s11");
        Map<String, ChatCompletionCreateParams.Builder> histories = new HashMap<>();
        Stage.SAID.put("no_agents", true);
        Stage.play(System.getenv("SET"), "openai-java 4.101.0, opentelemetry-openai-java-1.1 2.31.1-alpha", List.of(list.split(",")), (scenario, input) -> {
            Span request = otel.getTracer("shop").spanBuilder("POST /chat").setSpanKind(SpanKind.SERVER).setAttribute("http.request.method", "POST").setAttribute("http.route", "/chat").startSpan();
            try (Scope scope = request.makeCurrent()) {
                String documents = scenario.told().path("documents").findValuesAsText("content").stream().collect(Collectors.joining("\n\n"));
                List<String> tools = scenario.subAgent() ? List.of("travel_specialist") : scenario.tools();
                String system = scenario.documents() ? "Answer from these documents:\n\n" + documents : "You are a helpful assistant.";
                ChatCompletionCreateParams.Builder asked = scenario.session() == null ? conversation(system, tools) : histories.computeIfAbsent(scenario.session(), id -> conversation(system, tools));
                return loop(asked.addUserMessage(input), scenario.stream());
            } catch (Exception e) {
                request.recordException(e).setStatus(StatusCode.ERROR);
                throw e;
            } finally {
                request.end();
            }
        }, () -> {
            tracing.forceFlush().join(10, TimeUnit.SECONDS);
            logging.forceFlush().join(10, TimeUnit.SECONDS);
        });
        System.exit(0);
    }
}
