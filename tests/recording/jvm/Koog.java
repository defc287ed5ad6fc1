package app;

import ai.koog.agents.core.agent.AIAgent;
import ai.koog.agents.core.tools.ToolRegistry;
import ai.koog.agents.core.tools.ToolRegistryBuilder;
import ai.koog.agents.core.tools.annotations.LLMDescription;
import ai.koog.agents.core.tools.annotations.Tool;
import ai.koog.agents.core.tools.reflect.ToolSet;
import ai.koog.agents.features.opentelemetry.feature.OpenTelemetry;
import ai.koog.agents.features.opentelemetry.feature.OpenTelemetryConfig;
import ai.koog.http.client.ktor.KtorKoogHttpClient;
import ai.koog.prompt.executor.clients.ConnectionTimeoutConfig;
import ai.koog.prompt.executor.clients.openai.OpenAIClientSettings;
import ai.koog.prompt.executor.clients.openai.OpenAILLMClient;
import ai.koog.prompt.executor.clients.openai.OpenAIModels;
import ai.koog.prompt.executor.llms.MultiLLMPromptExecutor;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import java.util.List;
import java.util.Map;

// Koog 1.0.0 (koog.pom.xml), its OpenTelemetry feature; content is on with VERBOSE.
public class Koog {
    private static final boolean VERBOSE = System.getenv("VERBOSE") != null;
    private static final MultiLLMPromptExecutor MODELS = new MultiLLMPromptExecutor(new OpenAILLMClient("none", settings(), new KtorKoogHttpClient.Factory()));

    private static OpenAIClientSettings settings() {
        return new OpenAIClientSettings(Stage.URL, new ConnectionTimeoutConfig(10_000L, 10_000L, 10_000L), "v1/chat/completions", "v1/responses", "v1/embeddings", "v1/moderations", "v1/models");
    }

    public static class Weather implements ToolSet {
        @Tool(customName = "get_weather") @LLMDescription("The weather in a city")
        public String getWeather(String city) { return (String) Stage.tool("get_weather", Map.of("city", city)); }
    }

    public static class Currency implements ToolSet {
        @Tool(customName = "convert_currency") @LLMDescription("Convert US dollars")
        public Map<String, Object> convert(int amount, String currency) { return (Map<String, Object>) Stage.tool("convert_currency", Map.of("amount", amount, "currency", currency)); }
    }

    public static class Orders implements ToolSet {
        @Tool(customName = "lookup_order") @LLMDescription("Where an order is")
        public String lookup(String order_id) { return (String) Stage.tool("lookup_order", Map.of("order_id", order_id)); }
    }

    public static class Jobs implements ToolSet {
        @Tool(customName = "check_job") @LLMDescription("The state of a job")
        public String check(String job_id) { return (String) Stage.tool("check_job", Map.of("job_id", job_id)); }
    }

    public static class Specialist implements ToolSet {
        @Tool(customName = "travel_specialist") @LLMDescription("Knows what to pack")
        public String ask(String task) { return agent("travel_specialist", "You are a travel specialist.", List.of(new Weather())).run(task); }
    }

    static AIAgent<String, String> agent(String id, String system, List<ToolSet> tools) {
        ToolRegistryBuilder registry = ToolRegistry.builder();
        tools.forEach(registry::tools);
        return AIAgent.builder().id(id).promptExecutor(MODELS).llmModel(OpenAIModels.Chat.GPT4_1Mini).systemPrompt(system).toolRegistry(registry.build())
            .install(OpenTelemetry.Feature, (OpenTelemetryConfig config) -> {
                config.setServiceInfo("assistant", "1.0", null);
                config.setVerbose(VERBOSE);
                config.addSpanExporter(OtlpHttpSpanExporter.builder().setEndpoint(Stage.URL + "/v1/traces").build());
            }).build();
    }

    public static void main(String[] args) throws Exception {
        Map<String, ToolSet> tools = Map.of("get_weather", new Weather(), "convert_currency", new Currency(), "lookup_order", new Orders(), "check_job", new Jobs());
        String list = System.getenv().getOrDefault("SCENARIOS", "s1,s2,s3,s4,s6,s7,s8,s9,s9b,s11");
        Stage.play(System.getenv("SET"), "koog " + System.getenv().getOrDefault("KOOG", "1.0.0"), List.of(list.split(",")), (scenario, input) -> {
            List<ToolSet> given = scenario.subAgent() ? List.of(new Specialist()) : scenario.tools().stream().map(tools::get).toList();
            AIAgent<String, String> agent = agent("assistant", "You are a helpful assistant.", given);
            return scenario.session() == null ? agent.run(input) : agent.run(input, scenario.session());
        }, () -> {
            try {
                Thread.sleep(1500); // each agent has a provider of its own, with a batch processor
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        System.exit(0);
    }
}
