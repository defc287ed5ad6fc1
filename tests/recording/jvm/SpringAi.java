package app;

import io.micrometer.common.KeyValue;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationFilter;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.instrumentation.logback.appender.v1_0.OpenTelemetryAppender;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.client.advisor.MessageChatMemoryAdvisor;
import org.springframework.ai.chat.memory.ChatMemory;
import org.springframework.ai.chat.memory.MessageWindowChatMemory;
import org.springframework.ai.chat.observation.ChatModelObservationContext;
import org.springframework.ai.content.Content;
import org.springframework.ai.document.Document;
import org.springframework.ai.embedding.EmbeddingModel;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.ai.vectorstore.SimpleVectorStore;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;

// Spring AI 1.0.3 and 1.1.8 with Spring Boot 3.5.7, and 2.0.0 with 4.1.2 (spring-ai.pom.xml).
@SpringBootApplication
public class SpringAi {
    public static void main(String[] args) {
        SpringApplication.run(SpringAi.class, args).close();
    }

    /** Content as span attributes, the way Langfuse's guide for Spring AI shows it. */
    @Bean
    @ConditionalOnProperty("app.filter")
    ObservationFilter contentOnSpans() {
        return context -> {
            if (context instanceof ChatModelObservationContext chat) {
                String prompt = chat.getRequest().getInstructions().stream().map(Content::getText).map(String::valueOf).map(s -> '"' + s + '"').collect(Collectors.joining(", ", "[", "]"));
                chat.addHighCardinalityKeyValue(KeyValue.of("gen_ai.prompt", prompt));
                if (chat.getResponse() != null) {
                    String answer = chat.getResponse().getResults().stream().map(g -> g.getOutput().getText()).filter(t -> t != null && !t.isEmpty()).map(s -> '"' + s + '"').collect(Collectors.joining(", ", "[", "]"));
                    chat.addHighCardinalityKeyValue(KeyValue.of("gen_ai.completion", answer));
                }
            }
            return context;
        };
    }

    public static class Weather {
        @Tool(name = "get_weather", description = "The weather in a city")
        public Object getWeather(String city) { return Stage.tool("get_weather", Map.of("city", city)); }
    }

    public static class Currency {
        @Tool(name = "convert_currency", description = "Convert US dollars")
        public Object convert(int amount, String currency) { return Stage.tool("convert_currency", Map.of("amount", amount, "currency", currency)); }
    }

    public static class Orders {
        @Tool(name = "lookup_order", description = "Where an order is")
        public Object lookup(String order_id) { return Stage.tool("lookup_order", Map.of("order_id", order_id)); }
    }

    public static class Jobs {
        @Tool(name = "check_job", description = "The state of a job")
        public Object check(String job_id) { return Stage.tool("check_job", Map.of("job_id", job_id)); }
    }

    public static class Specialist {
        private final ChatClient client;
        public Specialist(ChatClient client) { this.client = client; }
        @Tool(name = "travel_specialist", description = "Knows what to pack")
        public String ask(String task) { return client.prompt().system("You are a travel specialist.").user(task).tools(new Weather()).call().content(); }
    }

    @Bean
    CommandLineRunner play(ChatClient.Builder builder, EmbeddingModel embeddings, OpenTelemetry otel, SdkTracerProvider tracing, SdkLoggerProvider logging,
            @Value("${app.set}") String set, @Value("${app.scenarios:s1,s2,s3,s4,s5,s6,s7,s8,s9,s9b,s10,s10b,s11}") List<String> scenarios, @Value("${app.versions}") String versions) {
        return args -> {
            OpenTelemetryAppender.install(otel);
            ChatClient client = builder.build();
            Map<String, Object> tools = Map.of("get_weather", new Weather(), "convert_currency", new Currency(), "lookup_order", new Orders(), "check_job", new Jobs());
            ChatMemory memory = MessageWindowChatMemory.builder().build();
            SimpleVectorStore store = SimpleVectorStore.builder(embeddings).build();
            Stage.play(set, versions, scenarios, (scenario, input) -> {
                ChatClient.ChatClientRequestSpec prompt = client.prompt().system("You are a helpful assistant.").user(input);
                if (!scenario.tools().isEmpty() && !scenario.subAgent()) {
                    prompt = prompt.tools(scenario.tools().stream().map(tools::get).toArray());
                }
                if (scenario.subAgent()) {
                    prompt = prompt.tools(new Specialist(client));
                }
                if (scenario.session() != null) {
                    prompt = prompt.advisors(MessageChatMemoryAdvisor.builder(memory).build()).advisors(a -> a.param(ChatMemory.CONVERSATION_ID, scenario.session()));
                }
                if (scenario.documents()) {
                    scenario.told().path("documents").forEach(d -> store.add(List.of(new Document(d.path("id").asText(), d.path("content").asText(), Map.of("source", "faq")))));
                    prompt = prompt.advisors(SpringAiRag.over(store));
                }
                return scenario.stream() ? prompt.stream().content().collectList().map(parts -> String.join("", parts)).block() : prompt.call().content();
            }, () -> {
                pause(); // a stream's spans end after its last word
                tracing.forceFlush().join(10, TimeUnit.SECONDS);
                logging.forceFlush().join(10, TimeUnit.SECONDS);
            });
        };
    }

    private static void pause() {
        try {
            Thread.sleep(400);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
