package app;

import com.google.adk.agents.LlmAgent;
import com.google.adk.agents.RunConfig;
import com.google.adk.events.Event;
import com.google.adk.models.Gemini;
import com.google.adk.runner.InMemoryRunner;
import com.google.adk.sessions.Session;
import com.google.adk.tools.AgentTool;
import com.google.adk.tools.Annotations.Schema;
import com.google.adk.tools.FunctionTool;
import com.google.genai.Client;
import com.google.genai.types.Content;
import com.google.genai.types.HttpOptions;
import com.google.genai.types.HttpRetryOptions;
import com.google.genai.types.Part;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

// Google ADK for Java 1.8.0 (adk.pom.xml).
public class AdkJava {
    @Schema(name = "get_weather")
    public static Map<String, Object> getWeather(@Schema(name = "city") String city) {
        return Map.of("result", Stage.tool("get_weather", Map.of("city", city)));
    }

    @Schema(name = "convert_currency")
    public static Map<String, Object> convertCurrency(@Schema(name = "amount") int amount, @Schema(name = "currency") String currency) {
        return (Map<String, Object>) Stage.tool("convert_currency", Map.of("amount", amount, "currency", currency));
    }

    @Schema(name = "lookup_order")
    public static Map<String, Object> lookupOrder(@Schema(name = "order_id") String order_id) {
        try {
            return Map.of("result", Stage.tool("lookup_order", Map.of("order_id", order_id)));
        } catch (RuntimeException e) { // an exception would end the run
            return Map.of("status", "error", "error", e.getMessage());
        }
    }

    @Schema(name = "check_job")
    public static Map<String, Object> checkJob(@Schema(name = "job_id") String job_id) {
        return Map.of("result", Stage.tool("check_job", Map.of("job_id", job_id)));
    }

    public static void main(String[] args) throws Exception {
        SdkTracerProvider tracing = SdkTracerProvider.builder()
            .setResource(Resource.getDefault().merge(Resource.create(Attributes.of(AttributeKey.stringKey("service.name"), "assistant"))))
            .addSpanProcessor(BatchSpanProcessor.builder(OtlpHttpSpanExporter.builder().setEndpoint(Stage.URL + "/v1/traces").build()).build()).build();
        OpenTelemetrySdk.builder().setTracerProvider(tracing).buildAndRegisterGlobal();
        Client client = Client.builder().apiKey("none").httpOptions(HttpOptions.builder().baseUrl(Stage.URL)
            .retryOptions(HttpRetryOptions.builder().attempts(1).build()).build()).build();
        Gemini model = new Gemini("gemini-2.5-flash", client);
        Map<String, FunctionTool> tools = Map.of(
            "get_weather", FunctionTool.create(AdkJava.class, "getWeather"), "convert_currency", FunctionTool.create(AdkJava.class, "convertCurrency"),
            "lookup_order", FunctionTool.create(AdkJava.class, "lookupOrder"), "check_job", FunctionTool.create(AdkJava.class, "checkJob"));
        Map<String, Session> sessions = new ConcurrentHashMap<>();
        Map<String, InMemoryRunner> runners = new ConcurrentHashMap<>();
        String list = System.getenv().getOrDefault("SCENARIOS", "s1,s2,s3,s4,s6,s7,s8,s9,s9b,s10,s10b,s11");
        Stage.play(System.getenv("SET"), "google-adk (java) 1.8.0", List.of(list.split(",")), (scenario, input) -> {
            InMemoryRunner runner = runners.computeIfAbsent(scenario.name(), name -> {
                LlmAgent.Builder agent = LlmAgent.builder().name("assistant").model(model).instruction("You are a helpful assistant.");
                if (scenario.subAgent()) {
                    LlmAgent specialist = LlmAgent.builder().name("travel_specialist").description("Knows what to pack").model(model)
                        .instruction("You are a travel specialist.")
                        .inputSchema(com.google.genai.types.Schema.builder().type("OBJECT").properties(Map.of("task", com.google.genai.types.Schema.builder().type("STRING").build())).build())
                        .tools(tools.get("get_weather")).build();
                    agent.tools(AgentTool.create(specialist));
                } else {
                    List<Object> given = new ArrayList<>();
                    scenario.tools().forEach(tool -> given.add(tools.get(tool)));
                    agent.tools(given);
                }
                return new InMemoryRunner(agent.build(), "shop");
            });
            String key = scenario.name() + "/" + (scenario.session() == null ? String.valueOf(System.nanoTime()) : scenario.session());
            Session session = sessions.computeIfAbsent(key, k -> runner.sessionService()
                .createSession("shop", "user-1", (java.util.concurrent.ConcurrentMap<String, Object>) null, scenario.session()).blockingGet());
            RunConfig config = RunConfig.builder().streamingMode(scenario.stream() ? RunConfig.StreamingMode.SSE : RunConfig.StreamingMode.NONE).build();
            StringBuilder answer = new StringBuilder();
            for (Event event : runner.runAsync("user-1", session.id(), Content.fromParts(Part.fromText(input)), config).blockingIterable()) {
                if (event.finalResponse() && !event.partial().orElse(false)) {
                    answer.setLength(0);
                    answer.append(event.stringifyContent());
                }
            }
            return answer.toString();
        }, () -> {
            try {
                Thread.sleep(300); // streams end a little after their last event
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            tracing.forceFlush().join(10, TimeUnit.SECONDS);
        });
        System.exit(0);
    }
}
