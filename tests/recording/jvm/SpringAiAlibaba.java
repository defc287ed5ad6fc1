package app;

import com.alibaba.cloud.ai.graph.CompileConfig;
import com.alibaba.cloud.ai.graph.RunnableConfig;
import com.alibaba.cloud.ai.graph.agent.AgentTool;
import com.alibaba.cloud.ai.graph.agent.Builder;
import com.alibaba.cloud.ai.graph.agent.ReactAgent;
import com.alibaba.cloud.ai.graph.checkpoint.config.SaverConfig;
import com.alibaba.cloud.ai.graph.checkpoint.savers.MemorySaver;
import com.alibaba.cloud.ai.graph.exception.GraphRunnerException;
import com.alibaba.cloud.ai.graph.observation.GraphObservationLifecycleListener;
import com.alibaba.cloud.ai.graph.streaming.StreamingOutput;
import io.micrometer.observation.ObservationRegistry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.instrumentation.logback.appender.v1_0.OpenTelemetryAppender;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.tool.annotation.Tool;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

// Spring AI Alibaba 1.1.0.0: ReactAgent with an observation registry (spring-ai-alibaba.pom.xml, spring-ai.properties, logback.xml).
@SpringBootApplication
public class SpringAiAlibaba {
    public static void main(String[] args) {
        SpringApplication.run(SpringAiAlibaba.class, args).close();
    }

    public static class Shop {
        @Tool(name = "get_weather", description = "The weather in a city")
        public Object getWeather(String city) { return Stage.tool("get_weather", Map.of("city", city)); }

        @Tool(name = "convert_currency", description = "Convert US dollars")
        public Object convert(int amount, String currency) { return Stage.tool("convert_currency", Map.of("amount", amount, "currency", currency)); }

        @Tool(name = "lookup_order", description = "Where an order is")
        public Object lookup(String order_id) { return Stage.tool("lookup_order", Map.of("order_id", order_id)); }

        @Tool(name = "check_job", description = "The state of a job")
        public Object check(String job_id) { return Stage.tool("check_job", Map.of("job_id", job_id)); }
    }

    private static Builder agent(String name, String system, ChatModel model, ObservationRegistry observations) {
        return ReactAgent.builder().name(name).model(model).systemPrompt(system).observationRegistry(observations).compileConfig(CompileConfig.builder()
            .saverConfig(SaverConfig.builder().register(new MemorySaver()).build()).observationRegistry(observations)
            .withLifecycleListener(new GraphObservationLifecycleListener(observations)).build());
    }

    private static String ask(ReactAgent agent, String input, RunnableConfig config, boolean stream) {
        try {
            if (!stream) {
                return agent.call(input, config).getText();
            }
            StringBuilder said = new StringBuilder();
            agent.stream(input, config).doOnNext(output -> {
                if (output instanceof StreamingOutput<?> part && part.chunk() != null) {
                    said.append(part.chunk());
                }
            }).blockLast();
            return said.toString();
        } catch (GraphRunnerException e) {
            throw new IllegalStateException(e);
        }
    }

    @Bean
    CommandLineRunner play(ChatModel model, ObservationRegistry observations, OpenTelemetry otel, SdkTracerProvider tracing, SdkLoggerProvider logging,
            @Value("${app.set}") String set, @Value("${app.scenarios:s1,s2,s3,s4,s6,s7,s8,s9,s9b,s10,s10b,s11}") List<String> scenarios) {
        return args -> {
            OpenTelemetryAppender.install(otel);
            Map<String, ReactAgent> agents = new HashMap<>();
            Stage.SAID.put("no_agents", true);
            Stage.play(set, "spring-ai-alibaba-agent-framework 1.1.0.0", scenarios, (scenario, input) -> {
                ReactAgent agent = agents.computeIfAbsent(scenario.name(), name -> {
                    Builder assistant = agent("assistant", "You are a helpful assistant.", model, observations);
                    if (!scenario.subAgent()) {
                        return assistant.methodTools(new Shop()).build();
                    }
                    ReactAgent specialist = agent("travel_specialist", "You are a travel specialist.", model, observations).description("Knows what to pack").methodTools(new Shop()).build();
                    return assistant.tools(AgentTool.getFunctionToolCallback(specialist)).build();
                });
                if (scenario.subAgent()) {
                    scenario.handOver("input");
                }
                RunnableConfig config = RunnableConfig.builder().threadId(scenario.session() == null ? UUID.randomUUID().toString() : scenario.session()).build();
                String said = CompletableFuture.supplyAsync(() -> ask(agent, input, config, scenario.stream()), work -> new Thread(work).start()).get(); // scopes stay open
                if (said.startsWith("Exception: ")) { // the framework's answer when its model fails
                    throw new IllegalStateException(said);
                }
                return said;
            }, () -> {
                try {
                    Thread.sleep(400); // a stream's spans end after its last word
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                tracing.forceFlush().join(10, TimeUnit.SECONDS);
                logging.forceFlush().join(10, TimeUnit.SECONDS);
            });
        };
    }
}
