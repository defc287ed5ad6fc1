package app;

import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.rag.DefaultRetrievalAugmentor;
import dev.langchain4j.rag.RetrievalAugmentor;
import dev.langchain4j.rag.content.Content;
import dev.langchain4j.service.MemoryId;
import dev.langchain4j.service.SystemMessage;
import dev.langchain4j.service.UserMessage;
import io.quarkiverse.langchain4j.RegisterAiService;
import io.quarkiverse.langchain4j.ToolBox;
import io.quarkus.runtime.QuarkusApplication;
import io.quarkus.runtime.annotations.QuarkusMain;
import io.smallrye.mutiny.Multi;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.context.control.ActivateRequestContext;
import jakarta.inject.Inject;
import jakarta.ws.rs.HeaderParam;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Supplier;

// Quarkus LangChain4j 1.5.0 with quarkus-opentelemetry (quarkus.pom.xml, quarkus.properties); with REST, each turn is a request to the application.
@QuarkusMain
public class Quarkus implements QuarkusApplication {
    private static final boolean REST = System.getenv("REST") != null;
    private static volatile Stage.Scenario now;

    @ApplicationScoped
    public static class Shop {
        @Tool(name = "get_weather", value = "The weather in a city")
        public String getWeather(String city) { return (String) Stage.tool("get_weather", Map.of("city", city)); }

        @Tool(name = "convert_currency", value = "Convert US dollars")
        public Map<String, Object> convert(int amount, String currency) { return (Map<String, Object>) Stage.tool("convert_currency", Map.of("amount", amount, "currency", currency)); }

        @Tool(name = "lookup_order", value = "Where an order is")
        public String lookup(String order_id) { return (String) Stage.tool("lookup_order", Map.of("order_id", order_id)); }

        @Tool(name = "check_job", value = "The state of a job")
        public String check(String job_id) { return (String) Stage.tool("check_job", Map.of("job_id", job_id)); }
    }

    @RegisterAiService
    public interface Specialist {
        @SystemMessage("You are a travel specialist.")
        @ToolBox(Shop.class)
        @Tool(name = "travel_specialist", value = "Knows what to pack")
        String ask(@UserMessage String task);
    }

    @ApplicationScoped
    @RegisterAiService(retrievalAugmentor = RegisterAiService.NoRetrievalAugmentorSupplier.class)
    public interface Assistant {
        @SystemMessage("You are a helpful assistant.")
        @ToolBox({Shop.class, Specialist.class})
        String chat(@MemoryId String id, @UserMessage String message);

        @SystemMessage("You are a helpful assistant.")
        @ToolBox(Shop.class)
        Multi<String> stream(@MemoryId String id, @UserMessage String message);
    }

    @RegisterAiService(retrievalAugmentor = Documents.class)
    public interface Desk {
        @SystemMessage("You answer from documents.")
        String answer(@UserMessage String question);
    }

    @ApplicationScoped
    public static class Documents implements Supplier<RetrievalAugmentor> {
        public RetrievalAugmentor get() {
            return DefaultRetrievalAugmentor.builder().contentRetriever(query -> {
                List<Content> found = new java.util.ArrayList<>();
                now.told().path("documents").forEach(d -> found.add(Content.from(d.path("content").asText())));
                return found;
            }).build();
        }
    }

    @Path("/ask")
    public static class Api {
        @Inject Assistant assistant;
        @Inject Desk desk;

        @POST
        public String ask(@HeaderParam("memory-id") String id, String input) {
            if (now.documents()) {
                return desk.answer(input);
            }
            return now.stream() ? String.join("", assistant.stream(id, input).collect().asList().await().indefinitely()) : assistant.chat(id, input);
        }
    }

    @Inject Api api;

    @Override
    @ActivateRequestContext
    public int run(String... args) throws Exception {
        String list = System.getenv().getOrDefault("SCENARIOS", "s1,s2,s3,s4,s5,s6,s7,s8,s9,s9b,s11,s10,s10b"); // a stream leaves its span current
        Stage.play(System.getenv("SET"), "quarkus-langchain4j 1.5.0", List.of(list.split(",")), (scenario, input) -> {
            now = scenario;
            String id = scenario.session() == null ? UUID.randomUUID().toString() : scenario.session();
            if (!REST) {
                return api.ask(id, input);
            }
            HttpResponse<String> answer = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:8692/ask"))
                .header("memory-id", id).POST(HttpRequest.BodyPublishers.ofString(input)).build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException("HTTP " + answer.statusCode());
            }
            return answer.body();
        }, () -> {
            try {
                Thread.sleep(800); // the batch processor's delay
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        return 0;
    }
}
