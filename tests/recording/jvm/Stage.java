package app;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Talks to stage.py: plays each scenario of a set, turn by turn. */
public final class Stage {
    public static final String URL = System.getenv().getOrDefault("STAGE", "http://127.0.0.1:8471");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** More that goes into the truth, such as no_agents. */
    public static final Map<String, Object> SAID = new LinkedHashMap<>();

    /** One run of the agent: what the user says, and the scenario's facts. */
    public interface Agent {
        String run(Scenario scenario, String input) throws Exception;
    }

    public record Scenario(String name, JsonNode told) {
        public String session() { return told.path("conversation_id").asText(null); }
        public boolean stream() { return told.path("stream").asBoolean(); }
        public boolean documents() { return told.path("documents").size() > 0; }
        public boolean subAgent() { return told.path("sub_agent").isTextual(); }

        /** Script the sub-agent's task below the framework's own argument. */
        public void handOver(String argument) {
            JsonNode steps = told.path("steps").deepCopy();
            ObjectNode arguments = (ObjectNode) steps.at("/0/tool_calls/0/arguments");
            arguments.set(argument, arguments.remove("task"));
            send("/__script", Map.of("steps", steps, "salt", name));
        }

        /** Let the model say the framework's names of tools in this turn. */
        public void renameTools(int turn, String prefix) {
            JsonNode steps = told.path("all_steps").path(turn).deepCopy();
            steps.forEach(step -> step.path("tool_calls").forEach(call -> ((ObjectNode) call).put("name", prefix + call.path("name").asText())));
            send("/__script", Map.of("steps", steps, "salt", name + turn));
        }

        public List<String> tools() { return JSON.convertValue(told.path("tools"), List.class); }
    }

    public static HttpResponse<String> send(String path, Object body) {
        try {
            return HTTP.send(HttpRequest.newBuilder(URI.create(URL + path)).header("content-type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body))).build(), HttpResponse.BodyHandlers.ofString());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** A tool's body: its result, or the failure it raises. */
    public static Object tool(String name, Map<String, ?> arguments) {
        try {
            HttpResponse<String> answer = send("/tools/" + name, arguments);
            JsonNode body = JSON.readTree(answer.body());
            if (answer.statusCode() != 200) {
                throw new RuntimeException(body.path("message").asText());
            }
            return body.path("result").isTextual() ? body.path("result").asText() : JSON.convertValue(body.path("result"), Map.class);
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void play(String set, String version, List<String> scenarios, Agent agent, Runnable flush) throws Exception {
        for (String name : scenarios) {
            Scenario scenario = new Scenario(name, JSON.readTree(send("/control/start", Map.of("set", set, "scenario", name)).body()));
            int index = 0;
            for (JsonNode turn : scenario.told().path("turns")) {
                send("/control/turn", Map.of("index", index++));
                try {
                    String said = agent.run(scenario, turn.path("user_input").asText());
                    send("/control/answer", Map.of("answer", said == null ? "" : said));
                } catch (Exception e) {
                    System.err.println(name + ": " + e);
                    send("/control/answer", Map.of("error", Map.of("type", e.getClass().getSimpleName(), "message", String.valueOf(e.getMessage()))));
                }
                flush.run();
            }
            Map<String, Object> end = new LinkedHashMap<>(SAID);
            end.put("versions", version);
            System.out.println(set + "/" + name + " " + send("/control/finish", end).body());
        }
    }
}
